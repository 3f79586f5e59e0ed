//! Corefiles with many server blocks, zones and lines: time and memory grow with their size, not with its square.
//!
//! Each shape is planned and built at two sizes. The CPU time of this thread is compared, which other work on the
//! machine hardly changes; the bounds lie between linear and quadratic growth.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use config::setup::{Capabilities, MemoryGuard, MemoryUse, ReloadState};
use config::{BuildContext, Planning};
use corefile::{Diagnostic, NoFiles};
use metrics::Registry;
use rustix::time::{ClockId, clock_gettime};
use testkit::World;

/// Sizes that are compared.
const SMALL: usize = 500;
const LARGE: usize = 4 * SMALL;
/// Ratio of the times that linear growth stays below. Quadratic growth has 16.
const RATIO_MAX: u32 = 9;
/// Measurements of each size, of which the fastest counts.
const ROUNDS: usize = 2;

/// Returns a Corefile with this number of the parts that a shape repeats.
type Shape = fn(usize) -> String;

fn repeated(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let _ = write!(text, "{}", part(number));
        text
    })
}

fn zones(count: usize) -> String {
    repeated(count, |number| format!(" z{number}.example"))
}

/// Returns server blocks with an address of its own on one port each, which forward to `upstream`.
fn bound(count: usize, upstream: &str) -> String {
    let port = if upstream.ends_with(":53") { 53 } else { 5301 };
    repeated(count, |at| {
        let address = format!("127.1.{}.{}", at / 256, at % 256);
        format!("z{at}.example:{port} {{\nbind {address}\nforward . {upstream}\n}}\n")
    })
}

const SHAPES: [(&str, Shape); 16] = [
    ("server blocks", |count| repeated(count, |at| format!("z{at}.example {{\nwhoami\n}}\n"))),
    ("ports", |count| repeated(count, |at| format!("z.example:{} {{\nwhoami\n}}\n", 1024 + at))),
    ("views", |count| {
        repeated(count, |at| format!(". {{\nview v{at} {{\nexpr name() == 'a{at}.example.'\n}}\nwhoami\n}}\n"))
    }),
    ("imports", |count| {
        format!("(s) {{\nwhoami\n}}\n{}", repeated(count, |at| format!("z{at}.example {{\nimport s\n}}\n")))
    }),
    ("caches", |count| {
        repeated(count, |at| format!("z{at}.example {{\nerrors\ncache\nforward . 127.0.0.1:5301\n}}\n"))
    }),
    ("forwarders to each other", |count| {
        repeated(count, |at| format!(".:{} {{\nforward . 127.0.0.1:{}\n}}\n", 1024 + at, 1025 + at))
    }),
    ("keys", |count| format!("{} {{\nwhoami\n}}\n", zones(count))),
    ("keys that are forwarded", |count| format!("{} {{\nforward . 127.0.0.1:53\n}}\n", zones(count))),
    ("zones of a cache", |count| format!(". {{\ncache 30{}\nwhoami\n}}\n", zones(count))),
    ("zones that fall through", |count| {
        format!(". {{\nhosts {{\n10.0.0.1 a.b\nfallthrough{}\n}}\nwhoami\n}}\n", zones(count))
    }),
    ("zones that are not forwarded", |count| {
        format!(". {{\nforward . 127.0.0.1:5301 {{\nexcept{}\n}}\n}}\n", zones(count))
    }),
    ("lines of forward", |count| {
        format!(". {{\n{}}}\n", repeated(count, |at| format!("forward z{at}.example 127.0.0.1:5301\n")))
    }),
    ("lines of template", |count| {
        let line = |at| format!("template IN A z{at}.example {{\nrcode NXDOMAIN\nfallthrough z{at}.example\n}}\n");
        format!(". {{\n{}}}\n", repeated(count, line))
    }),
    ("lines of rewrite", |count| {
        format!(". {{\n{}whoami\n}}\n", repeated(count, |at| format!("rewrite name a{at}.example b{at}.example\n")))
    }),
    ("addresses of one port", |count| bound(count, "127.0.0.1:53")),
    ("addresses of one port that are forwarded to", |count| bound(count, "127.1.0.0:5301")),
];

/// Plans and builds a Corefile with this memory guard, and returns its errors.
fn errors(text: String, memory: Option<&MemoryGuard>) -> Vec<Diagnostic> {
    let parsed = corefile::parse(Path::new("Corefile"), text, &NoFiles);
    let mut problems = parsed.diagnostics;
    let planning = Planning { entries: plugins::DIRECTIVES.entries(), dns_port: 53, interface: &|_| None, memory };
    let plan = config::plan(&parsed.corefile, &planning, &mut problems);
    problems.retain(Diagnostic::is_error);
    let Some(plan) = plan else { return problems };
    let (registry, world, mut process) = (Registry::new(), World::default(), Capabilities::default());
    if let Some(memory) = memory {
        process.provide(memory.clone());
    }
    let context =
        BuildContext { registry: &registry, files: &world, process: &process, reload_state: ReloadState::default() };
    plan.build(context).err().unwrap_or_default()
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

fn fastest(shape: Shape, count: usize) -> Duration {
    let measure = |_| {
        let text = shape(count);
        let begin = cpu_time();
        let found = errors(text, None);
        assert!(found.is_empty(), "{:?}", found.first());
        cpu_time() - begin
    };
    (0..ROUNDS).map(measure).min().unwrap()
}

#[test]
fn time_grows_with_the_size_of_the_corefile() {
    let ratios = SHAPES.map(|(name, shape)| (name, fastest(shape, SMALL), fastest(shape, LARGE)));

    let steep: Vec<_> = ratios.iter().filter(|(_, small, large)| *large > *small * RATIO_MAX).collect();
    assert!(steep.is_empty(), "{steep:?}");
}

#[test]
fn refuses_what_does_not_fit_the_memory() {
    // Takes a mebibyte at each look.
    let looks = Arc::new(AtomicU32::new(0));
    let guard = |start: u64| {
        looks.store(0, Ordering::Relaxed);
        let looks = Arc::clone(&looks);
        MemoryGuard(Arc::new(move || {
            let used = start + u64::from(looks.fetch_add(1, Ordering::Relaxed));
            Some(MemoryUse { used: used << 20, limit: 170 << 20 })
        }))
    };
    let blocks = SHAPES[0].1;
    assert!(errors(blocks(100), Some(&guard(30))).is_empty());
    assert!(errors(blocks(100), Some(&guard(160))).is_empty(), "an ordinary Corefile while the process is large");
    let found = errors(blocks(LARGE), Some(&guard(30)));
    assert_eq!(found.iter().map(|problem| problem.code.name()).collect::<Vec<_>>(), ["setup/too-large"]);
    assert!(found[0].message.contains("170 MiB"), "{}", found[0].message);
    // One block with many zones is refused before they are laid out.
    let found = errors(SHAPES[6].1(20 * LARGE), Some(&guard(30)));
    assert_eq!(found.iter().map(|problem| problem.code.name()).collect::<Vec<_>>(), ["setup/too-large"]);
}
