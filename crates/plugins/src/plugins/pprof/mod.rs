//! Serves CPU profiles over HTTP, with the paths and the format of Go's profiler.

mod profile;

use core::error::Error;
use core::time::Duration;
use std::sync::Arc;

use config::options::{Manifest, Property, Usage};
use config::setup::{Page, PageContent, Part, Setup, SetupError};
use engine::LocalFuture;

use common_plugins::shared::option_helpers::listen_address;

pub use profile::{CpuProfile, Module, Stack};

pub static MANIFEST: Manifest<Config> =
    Manifest::new("pprof", "serve CPU profiles over HTTP", || Config { address: "localhost:6053".to_owned() }, build)
        .without_handler()
        .arguments("pprof [ADDRESS]", |config, args| {
            if let Some(address) = listen_address(args)? {
                config.address = address;
            }
            Ok(())
        })
        .properties(&[Property {
            usage: Usage("block [RATE]"),
            default: "",
            doc: "Accepted for compatibility with CoreDNS. There are no goroutines to profile.",
            set: |_, args| {
                if !args.rest().is_empty() {
                    args.number(i64::MIN..=i64::MAX)?;
                }
                Ok(())
            },
        }]);

/// Default duration of a profile in seconds, as in Go.
const SECONDS: u64 = 30;
/// Maximum duration of a profile in seconds. The client holds a connection meanwhile.
const SECONDS_MAX: u64 = 300;

/// CPU profiler of this process, provided by the process.
pub trait Profiler: Send + Sync {
    /// Samples the process for `span`.
    fn cpu(&self, span: Duration) -> LocalFuture<'static, Result<CpuProfile, ProfileError>>;

    /// Command line of the process.
    fn command_line(&self) -> Vec<String>;
}

/// Reason why no profile could be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Another profile is being taken. A process can take one at a time.
    #[error("another CPU profile is being taken, and a process can take one at a time; try again when it has ended")]
    Running,
    /// The profiler cannot start. A later attempt may succeed.
    #[error("no profile can be taken now: {0}")]
    Start(#[source] ProfilerError),
    /// The samples cannot be read.
    #[error("{0}")]
    Report(#[source] ProfilerError),
}

/// Error of a profiling library.
pub type ProfilerError = Box<dyn Error + Send + Sync>;

pub struct Config {
    address: String,
}

const INDEX: &str = "\
/debug/pprof/

profile?seconds=N  CPU profile of N seconds (default 30), for `go tool pprof`
cmdline            command line of the process
heap and Go's other pages are not supported; each names an alternative
";
const NO_HEAP: &str = "\
Heap profiles are not supported: this is not a Go process, and its allocator does not track allocations.
See /proc/PID/smaps_rollup for memory usage. Use `heaptrack -p PID` or `bpftrace` to trace allocations.
";
const NO_THREADS: &str = "\
This is not a Go process: it has no goroutines, only a fixed set of threads.
See /proc/PID/task for the threads. `gdb -p PID -batch -ex 'thread apply all bt'` shows their stacks.
";
const NO_LOCKS: &str = "\
This is not a Go process: lock contention is not recorded. `perf trace -s -p PID` shows waiting system calls.
";
const NO_TRACE: &str = "\
This is not a Go process: it has no execution tracer. `perf record -p PID` is the closest alternative.
";
const NO_SYMBOLS: &str = "\
Profiles of this process contain symbol names, so no lookup is needed.
";

/// Go's pages without a counterpart here, and the text of each.
const ABSENT: [(&str, &str); 8] = [
    ("/debug/pprof/heap", NO_HEAP),
    ("/debug/pprof/allocs", NO_HEAP),
    ("/debug/pprof/goroutine", NO_THREADS),
    ("/debug/pprof/threadcreate", NO_THREADS),
    ("/debug/pprof/block", NO_LOCKS),
    ("/debug/pprof/mutex", NO_LOCKS),
    ("/debug/pprof/trace", NO_TRACE),
    ("/debug/pprof/symbol", NO_SYMBOLS),
];

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let profiler: Option<Arc<dyn Profiler>> = setup.process.find();
    let words = profiler.as_ref().map(|profiler| profiler.command_line().join("\0")).unwrap_or_default();
    let pages = &mut setup.requests.pages;
    for Config { address } in configs {
        let words = words.clone();
        pages.push(Page::new(address.clone(), "/debug/pprof/", || PageContent::text(200, INDEX)));
        pages.push(Page::new(address.clone(), "/debug/pprof/cmdline", move || PageContent::text(200, words.clone())));
        for (path, text) in ABSENT {
            pages.push(Page::new(address.clone(), path, move || PageContent::text(501, text)));
        }
        let profiler = profiler.clone();
        let make = Arc::new(move |asked: &str| cpu_page(profiler.as_deref(), asked));
        pages.push(Page { address, path: "/debug/pprof/profile".into(), tls: None, make });
    }
    Ok(None)
}

/// Page with a CPU profile taken on request.
fn cpu_page(profiler: Option<&dyn Profiler>, asked: &str) -> LocalFuture<'static, PageContent> {
    let seconds = asked.split('&').find_map(|pair| pair.strip_prefix("seconds="));
    let seconds = seconds.map_or(Some(SECONDS), |text| text.parse().ok());
    let content = match (seconds.filter(|seconds| (1..=SECONDS_MAX).contains(seconds)), profiler) {
        (None, _) => PageContent::text(400, format!("seconds must be a number from 1 to {SECONDS_MAX}\n")),
        (_, None) => PageContent::text(501, "This process cannot be profiled.\n"),
        (Some(seconds), Some(profiler)) => {
            let profile = profiler.cpu(Duration::from_secs(seconds));
            return Box::pin(
                async move { profile.await.map_or_else(|error| not_taken(&error), |profile| taken(&profile)) },
            );
        }
    };
    Box::pin(core::future::ready(content))
}

fn taken(profile: &CpuProfile) -> PageContent {
    PageContent { status: 200, content_type: "application/octet-stream", body: profile.compressed().into() }
}

fn not_taken(error: &ProfileError) -> PageContent {
    PageContent::text(500, format!("{error}\n"))
}
