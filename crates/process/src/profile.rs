//! CPU profiler for *pprof*, within the memory limit.

use std::error::Error;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use config::setup::MemoryUse;
use engine::LocalFuture;
use host::mask::masked_arguments;
use linux::sampler::{Names, Samples, Sampling, StartError};
use plugins::{CpuProfile, Module, ProfileError, Profiler, Stack};

use crate::limit_hits;
use crate::process_metrics::memory_use;

/// Time between two samples: 100 per second of CPU time, as in Go.
const PERIOD: Duration = Duration::from_millis(10);

/// Bytes that a profile takes at most: the buffer of samples, the same again for the different stacks and for the
/// response, and the symbol table of the binary, of which a release build has 4 MiB.
const PROFILE_BYTES: u64 = 3 * linux::sampler::BUFFER_BYTES as u64 + (8 << 20);

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
            affordable(memory_use()).map_err(|error| {
                limit_hits::count(|limits| limits.profiles);
                ProfileError::Start(error.into())
            })?;
            let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let sampling = Sampling::start(PERIOD).map_err(|error| match error {
                StartError::Running => ProfileError::Running,
                StartError::System(error) => ProfileError::Start(error.into()),
            })?;
            tokio::time::sleep(span).await;
            // The lookup of names reads files, so it runs on a blocking thread.
            let profile = tokio::task::spawn_blocking(move || profile(sampling.finish())).await;
            let profile = profile.map_err(|error| ProfileError::Report(error.into()))?;
            Ok(CpuProfile { start_since_1970: start, took: span, period: PERIOD, ..profile })
        })
    }

    fn command_line(&self) -> Vec<String> {
        masked_arguments(std::env::args())
    }
}

/// Adds the names of the functions.
fn profile(samples: Samples) -> CpuProfile {
    let addresses = || samples.stacks.iter().flat_map(|stack| stack.addresses.iter().copied());
    let names = Names::look_up(&samples.modules, addresses());
    let functions = addresses().filter_map(|address| Some((address, names.name(address)?.to_owned())));
    let module = |module: &linux::sampler::Module| Module {
        path: module.path.display().to_string(),
        code: module.start..module.end,
        offset: module.offset,
        build_id: module.build_id.clone(),
    };
    CpuProfile {
        functions: functions.collect(),
        modules: samples.modules.iter().map(module).collect(),
        lost: samples.lost,
        stacks: samples.stacks.into_iter().map(stack).collect(),
        ..CpuProfile::default()
    }
}

fn stack(stack: linux::sampler::Stack) -> Stack {
    Stack { addresses: stack.addresses, thread: stack.thread, times: stack.times }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_profile_that_does_not_fit_the_memory_limit() {
        let memory = |used: u64, limit: u64| Some(MemoryUse { used: used << 20, limit: limit << 20 });
        for (used, limit, is_affordable) in [(20, 39, false), (20, 40, true), (20, 170, true), (300, 200, false)] {
            assert_eq!(affordable(memory(used, limit)).is_ok(), is_affordable, "{used} of {limit}");
        }
        assert!(affordable(None).is_ok(), "no limit");
        let text = affordable(memory(160, 170)).unwrap_err().to_string();
        assert!(text.contains("up to 20 MiB") && text.contains("uses 160 MiB of 170 MiB"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_profile_at_the_same_time_is_refused() {
        let first = Sampling::start(PERIOD).unwrap();
        let error = Sampler.cpu(Duration::from_secs(1)).await.unwrap_err().to_string();
        drop(first);
        assert!(error.starts_with("another CPU profile is being taken"), "{error}");
    }
}
