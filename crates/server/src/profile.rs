//! Sampling CPU profiler for *pprof*: a signal interrupts the process a hundred times per second of CPU time and
//! records the stack.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::LocalFuture;
use plugins::{CpuProfile, Frame, ProfileError, Profiler, Stack};
use pprof::{ProfilerGuard, ProfilerGuardBuilder};

/// Samples per second of CPU time, as in Go.
const FREQUENCY: i32 = 100;
/// Libraries in which no stack is recorded, because they may hold locks that unwinding needs.
const PASSED_OVER: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];

/// Takes profiles of this process, one at a time.
pub(crate) struct Sampler;

impl Profiler for Sampler {
    fn cpu(&self, span: Duration) -> LocalFuture<'static, Result<CpuProfile, ProfileError>> {
        Box::pin(async move {
            let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let guard = ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&PASSED_OVER).build();
            let guard = guard.map_err(|error| ProfileError::Start(error.into()))?;
            tokio::time::sleep(span).await;
            // Symbol lookup is slow, so it runs on a blocking thread.
            let stacks = tokio::task::spawn_blocking(move || stacks(&guard)).await;
            let stacks = stacks.map_err(|error| ProfileError::Report(error.into()))?;
            let stacks = stacks.map_err(|error| ProfileError::Report(error.into()))?;
            let period = Duration::from_secs(1) / FREQUENCY.unsigned_abs();
            Ok(CpuProfile { stacks, start_since_1970: start, took: span, period })
        })
    }

    fn command_line(&self) -> Vec<String> {
        std::env::args().collect()
    }
}

fn stacks(guard: &ProfilerGuard<'_>) -> pprof::Result<Vec<Stack>> {
    let report = guard.report().build()?;
    let stacks = report.data.iter().map(|(seen, times)| Stack {
        frames: seen.frames.iter().flatten().map(frame).collect(),
        thread: seen.thread_name_or_id(),
        times: times.unsigned_abs() as u64,
    });
    Ok(stacks.collect())
}

fn frame(symbol: &pprof::Symbol) -> Frame {
    Frame { function: symbol.name(), file: symbol.filename().into_owned(), line: symbol.lineno() }
}
