//! Profiles of this program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

use std::fs;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linux::sampler::{Names, Samples, Sampling, StartError};

const PERIOD: Duration = Duration::from_millis(1);
/// CPU time of a thread in which the timer takes some samples of it, even if the kernel counts in ticks of 10 ms.
const ENOUGH: Duration = Duration::from_millis(200);
/// There is one profile at a time in a process.
static ONE: Mutex<()> = Mutex::new(());

#[inline(never)]
fn compute_until(is_over: impl Fn() -> bool) {
    while !is_over() {
        black_box((0..100_000_u64).fold(0, |sum: u64, number| black_box(sum).wrapping_mul(31) ^ number));
    }
}

#[inline(never)]
fn called_by_a_thread() {
    compute_until(|| used() > ENOUGH);
    black_box(());
}

/// CPU time that this thread has used (proc(5), `schedstat`).
fn used() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("statistics of the scheduler");
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number"))
}

/// Takes a profile of this thread and of one that starts meanwhile.
fn profile_of_two_threads() -> Samples {
    let sampling = Sampling::start(PERIOD).expect("a profile starts");
    // It lives until the profile has its name.
    let [has_run, is_over] = [const { AtomicBool::new(false) }; 2];
    std::thread::scope(|scope| {
        let wait = || {
            called_by_a_thread();
            has_run.store(true, Ordering::Relaxed);
            compute_until(|| is_over.load(Ordering::Relaxed));
        };
        std::thread::Builder::new().name("busy".to_owned()).spawn_scoped(scope, wait).unwrap();
        let start = used();
        compute_until(|| used() - start > ENOUGH && has_run.load(Ordering::Relaxed));
        let samples = sampling.finish();
        is_over.store(true, Ordering::Relaxed);
        samples
    })
}

#[test]
fn names_the_functions_of_each_thread() {
    let _one = ONE.lock().unwrap();
    let samples = profile_of_two_threads();
    let names = Names::look_up(&samples.modules, samples.stacks.iter().flat_map(|stack| stack.addresses.clone()));
    let has = |stack: &linux::sampler::Stack, name: &str| {
        stack.addresses.iter().any(|address| names.name(*address).is_some_and(|function| function.contains(name)))
    };
    let all = |wanted: &[&str]| samples.stacks.iter().any(|stack| wanted.iter().all(|name| has(stack, name)));
    assert!(all(&["compute_until", "profile_of_two_threads", "names_the_functions_of_each_thread"]), "{names:#?}");
    let of_thread = |stack: &linux::sampler::Stack| stack.thread == "busy" && has(stack, "compute_until");
    assert!(samples.stacks.iter().any(of_thread), "{names:#?}");
}

#[test]
fn a_second_profile_at_the_same_time_is_refused() {
    let _one = ONE.lock().unwrap();
    let first = Sampling::start(PERIOD).expect("a profile starts");
    assert!(matches!(Sampling::start(PERIOD), Err(StartError::Running)));
    drop(first);
    drop(Sampling::start(PERIOD).expect("the first one has ended"));
}

#[test]
fn starts_and_ends_many_times_while_threads_run() {
    let _one = ONE.lock().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| compute_until(|| is_over.load(Ordering::Relaxed)));
        }
        let (mut seen, mut rounds) = (0, 0);
        while seen == 0 || rounds < 200 {
            let sampling = Sampling::start(PERIOD).expect("a profile starts");
            std::thread::sleep(Duration::from_millis(3));
            seen += sampling.finish().stacks.iter().map(|stack| stack.times).sum::<u64>();
            rounds += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
