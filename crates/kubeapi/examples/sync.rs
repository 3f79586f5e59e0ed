//! Keeps an index of a cluster and prints its cost: `sync URL`, `sync KUBECONFIG.conf`, `sync FOLDER` or `sync
//! in-cluster`.
//!
//! Prints the time until the index is complete and the memory after that, then a line whenever the counts change. With
//! `SNAPSHOT=FILE`, starts from the snapshot and writes it.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example"
)]

#[path = "../tests/edge/log.rs"]
#[allow(dead_code, reason = "tests read the lines again")]
mod log;

use cluster::{Request, Source};
use std::path::Path;
use std::time::{Duration, Instant};

use kubeapi::Subscriber;
use log::Log;
use metrics::Registry;

fn main() {
    let start = Instant::now();
    tracing::subscriber::set_global_default(Log::new(true)).unwrap();
    let argument = std::env::args().nth(1).unwrap_or_else(|| "in-cluster".to_owned());
    let source = match argument.as_str() {
        "in-cluster" => Source::InCluster,
        url if url.contains("://") => Source::Endpoint { url: url.to_owned(), tls: None },
        file if file.ends_with(".conf") => Source::Kubeconfig { file: file.into(), context: None },
        path => Source::Manifests(vec![Path::new(path).to_owned()]),
    };
    let mut request = Request::new(source);
    request.pods = std::env::var("PODS").is_ok();
    request.snapshot = std::env::var_os("SNAPSHOT").map(Into::into);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let registry = Registry::new();
    let subscriber = Subscriber::new(&registry);
    let local = tokio::task::LocalSet::new();
    runtime.block_on(local.run_until(async {
        let subscription = match subscriber.subscribe(&request) {
            Ok(subscription) => subscription,
            Err(problem) => return println!("{problem}"),
        };
        let index = &subscription.index;
        let known = if index.is_remembered() { "from the snapshot" } else { "empty" };
        println!("subscribed after {:?}, {known}; resident {} KiB", start.elapsed(), resident("VmRSS"));
        while !index.is_synced() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        println!("synced after {:?}; cpu {:?}", start.elapsed(), cpu());
        println!("resident {} KiB, at most {} KiB", resident("VmRSS"), resident("VmHWM"));
        println!("anonymous {} KiB", resident("RssAnon"));
        let mut counts = cluster::Counts::default();
        loop {
            if index.counts() != counts {
                counts = index.counts();
                println!("{counts:?} serial {}; anonymous {} KiB", index.serial(), resident("RssAnon"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }));
}

/// Returns a value of `/proc/self/status` in KiB.
fn resident(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

/// Returns the CPU time of the process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<i64> = stat.split(' ').filter_map(|field| field.parse().ok()).collect();
    // Of the fields that are integers, user and system time are the 12th and 13th, in 1/100 s.
    let hundredths: i64 = fields.get(11..13).map_or(0, |times| times.iter().sum());
    Duration::from_millis(10 * u64::try_from(hundredths).unwrap_or_default())
}
