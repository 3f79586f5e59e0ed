//! Sampling CPU profiler for *pprof*: a signal interrupts the process a hundred times per second of CPU time and
//! records the stack.

use std::error::Error;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use config::setup::MemoryUse;
use engine::LocalFuture;
use io_text::mask::masked_arguments;
use plugins::{CpuProfile, Frame, ProfileError, Profiler, Stack};
use pprof::{ProfilerGuard, ProfilerGuardBuilder};

use crate::process_metrics::memory_use;

/// Samples per second of CPU time, as in Go.
const FREQUENCY: i32 = 100;
/// Libraries in which no stack is recorded, because they may hold locks that unwinding needs.
const PASSED_OVER: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];

/// Bytes that a profile takes at most: the table of stacks, which the library allocates at once, and the debug
/// information of the binary, which it reads to name functions. 258 MiB were measured.
const PROFILE_BYTES: u64 = 272 << 20;

/// Takes profiles of this process, one at a time.
pub(crate) struct Sampler;

/// The memory limit leaves too little for a profile.
#[derive(Debug)]
struct NoMemory(MemoryUse);

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [wanted, used, limit] = [PROFILE_BYTES, self.0.used, self.0.limit].map(|bytes| bytes >> 20);
        write!(
            f,
            "it takes up to {wanted} MiB, and the process uses {used} MiB of {limit} MiB; raise the memory limit of the \
             container while you profile, or run `perf record -p PID` on the node"
        )
    }
}

impl Error for NoMemory {}

/// Returns the error if a profile does not fit the memory limit of the process. Without a limit, it fits.
fn affordable(memory: Option<MemoryUse>) -> Result<(), NoMemory> {
    match memory {
        Some(memory) if memory.used.saturating_add(PROFILE_BYTES) > memory.limit => Err(NoMemory(memory)),
        _ => Ok(()),
    }
}

impl Profiler for Sampler {
    fn cpu(&self, span: Duration) -> LocalFuture<'static, Result<CpuProfile, ProfileError>> {
        Box::pin(async move {
            affordable(memory_use()).map_err(|error| ProfileError::Start(error.into()))?;
            let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let guard = ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&PASSED_OVER).build();
            let guard = guard.map_err(|error| match error {
                pprof::Error::Running => ProfileError::Running,
                error => ProfileError::Start(error.into()),
            })?;
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
        masked_arguments(std::env::args())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_profile_that_does_not_fit_the_memory_limit() {
        let memory = |used: u64, limit: u64| Some(MemoryUse { used: used << 20, limit: limit << 20 });
        for (used, limit, is_affordable) in [(20, 170, false), (20, 292, true), (21, 292, false), (300, 200, false)] {
            assert_eq!(affordable(memory(used, limit)).is_ok(), is_affordable, "{used} of {limit}");
        }
        assert!(affordable(None).is_ok(), "no limit");
        let text = affordable(memory(20, 170)).unwrap_err().to_string();
        assert!(text.contains("up to 272 MiB") && text.contains("uses 20 MiB of 170 MiB"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_profile_at_the_same_time_is_refused() {
        let first = ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&PASSED_OVER).build().unwrap();
        let error = Sampler.cpu(Duration::from_secs(1)).await.unwrap_err().to_string();
        drop(first);
        assert!(error.starts_with("another CPU profile is being taken"), "{error}");
    }
}
