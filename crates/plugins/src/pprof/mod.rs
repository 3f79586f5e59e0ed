//! Shows over HTTP where the process spends its time, at the paths of Go's profiler and in its format.

mod profile;

use core::time::Duration;
use std::sync::Arc;

use engine::LocalFuture;
use engine::options::{Manifest, Property, Usage};
use engine::setup::{Page, PageContent, Part, Setup, SetupError};

pub use profile::{CpuProfile, Frame, Stack};

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "pprof",
    "serve CPU profiles over HTTP",
    include_str!("README.md"),
    || Config { address: "localhost:6053".to_owned() },
    build,
)
.arguments("pprof [ADDRESS]", |config, args| {
    if let Some(address) = crate::listen_address(args)? {
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

/// How long a profile is taken unless the request says so, as in Go.
const SECONDS: u64 = 30;
/// The longest profile: who waits for it holds a connection.
const SECONDS_MAX: u64 = 300;

/// Takes profiles of this process: what the process offers.
pub trait Profiler: Send + Sync {
    /// Looks for as long again and again where the process is.
    fn cpu(&self, span: Duration) -> LocalFuture<'static, Result<CpuProfile, String>>;

    /// The words with which the process was started.
    fn command_line(&self) -> Vec<String>;
}

pub struct Config {
    address: String,
}

const INDEX: &str = "\
/debug/pprof/

profile?seconds=N  where the processor was for N seconds (30 unless given), for `go tool pprof`
cmdline            the words with which the process was started
heap and the rest of Go's pages: not in this build, each says what to use instead
";
const NO_HEAP: &str = "\
This build does not write down who has which memory: the process is not Go, and its allocator keeps no books.
The process's memory is in /proc/PID/smaps_rollup; who allocates is shown by `heaptrack -p PID` or `bpftrace`.
";
const NO_THREADS: &str = "\
This process is not Go: it has no goroutines, and some few threads that do not change.
They are in /proc/PID/task; what each is at, `gdb -p PID -batch -ex 'thread apply all bt'` shows.
";
const NO_LOCKS: &str = "\
This process is not Go: nobody writes down who waits for whom. `perf trace -s -p PID` shows who waits for the system.
";
const NO_TRACE: &str = "\
This process is not Go: it has no execution tracer. `perf record -p PID` comes nearest.
";
const NO_SYMBOLS: &str = "\
Profiles of this process have the names in them: nobody needs to ask for them.
";

/// Go's pages that have no counterpart, and what each says.
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
    let pages = &mut setup.needs.pages;
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

/// The page of a profile that is taken for it.
fn cpu_page(profiler: Option<&dyn Profiler>, asked: &str) -> LocalFuture<'static, PageContent> {
    let seconds = asked.split('&').find_map(|pair| pair.strip_prefix("seconds="));
    let seconds = seconds.map_or(Some(SECONDS), |text| text.parse().ok());
    let content = match (seconds.filter(|seconds| (1..=SECONDS_MAX).contains(seconds)), profiler) {
        (None, _) => PageContent::text(400, format!("seconds is a number from 1 to {SECONDS_MAX}\n")),
        (_, None) => PageContent::text(501, "No profile can be taken of this process.\n"),
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

fn not_taken(error: &str) -> PageContent {
    PageContent::text(500, format!("{error}\n"))
}
