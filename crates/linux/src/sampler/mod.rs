//! Sampling CPU profiler of the own process.
//!
//! A timer interrupts the process after each span of CPU time ([`Sampling::start`]). The signal handler walks the stack
//! of the interrupted thread with the unwinding tables of the binary, and stores the addresses in a buffer that was
//! allocated before: it neither allocates nor waits. The names of functions are looked up afterwards ([`Names`]), in
//! the symbol table of the file alone, so that a profile costs little memory.
//!
//! Linux on x86_64 and aarch64 only, as [`framehop`].
#![allow(unsafe_code, reason = "a signal handler, its registers and the loaded modules have no safe wrapper")]

mod handler;
mod modules;
mod names;

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::time::Duration;

pub use modules::Module;
pub use names::Names;

/// Frames of a stack that are recorded at most; outer ones are left out. Async code of this process is 40 to 80 deep.
pub const DEPTH_MAX: usize = 128;

/// Bytes of the buffer for samples: 40 frames in a stack on average, 100 samples per second of CPU time, and 130
/// seconds of one CPU. Later samples are counted as lost. Pages that are not written take no memory.
pub const BUFFER_BYTES: usize = 4 << 20;

/// A profile that is being taken. There is at most one in the process.
#[derive(Debug)]
pub struct Sampling {
    modules: Vec<Module>,
}

/// Reason why no profile starts.
#[derive(Debug)]
pub enum StartError {
    /// Another profile is being taken.
    Running,
    /// The system refused the timer, the signal handler, or to copy memory of this process (`process_vm_readv`).
    System(io::Error),
}

/// Samples of a profile.
#[derive(Debug)]
pub struct Samples {
    /// Different stacks with their counts.
    pub stacks: Vec<Stack>,
    /// Samples without a place in the buffer, or that came while another thread was writing one.
    pub lost: u64,
    /// Modules of the process: the binary and its libraries.
    pub modules: Vec<Module>,
}

/// Call stack.
#[derive(Debug, PartialEq, Eq)]
pub struct Stack {
    /// Addresses of instructions, innermost first. All but the first are those of the calls, not of the returns.
    pub addresses: Vec<u64>,
    /// Name of the thread; its number if it has ended.
    pub thread: String,
    /// Number of samples.
    pub times: u64,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Running => f.write_str("another profile is being taken"),
            StartError::System(error) => error.fmt(f),
        }
    }
}

impl Error for StartError {}

impl Sampling {
    /// Starts a profile with a sample after each `period` of CPU time of the process.
    ///
    /// # Errors
    ///
    /// Returns an error if another profile runs, or the system refuses.
    pub fn start(period: Duration) -> Result<Sampling, StartError> {
        let modules = modules::loaded();
        handler::start(&modules, period)?;
        Ok(Sampling { modules })
    }

    /// Ends the profile and returns its samples.
    #[must_use]
    pub fn finish(mut self) -> Samples {
        let (words, lost) = handler::stop().unwrap_or_default();
        Samples { stacks: stacks(&words), lost, modules: std::mem::take(&mut self.modules) }
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        handler::stop();
    }
}

/// Counts the different stacks of a buffer.
fn stacks(words: &[u64]) -> Vec<Stack> {
    let mut counts: HashMap<&[u64], u64> = HashMap::new();
    let mut rest = words;
    while let Some((head, after)) = rest.split_first() {
        let (_, length) = handler::parts(*head);
        // Thread and addresses are the key, so the head is part of it.
        let (sample, after) = rest.split_at((length + 1).min(after.len() + 1));
        *counts.entry(sample).or_default() += 1;
        rest = after;
    }
    let mut threads = HashMap::new();
    let stack = |(sample, times): (&[u64], u64)| {
        let (thread, _) = handler::parts(sample[0]);
        let thread: &String = threads.entry(thread).or_insert_with(|| thread_name(thread));
        Stack { addresses: sample[1..].to_vec(), thread: thread.clone(), times }
    };
    counts.into_iter().map(stack).collect()
}

#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
fn thread_name(thread: u32) -> String {
    let name = fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
    name.map_or_else(|_| thread.to_string(), |name| name.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_equal_stacks_of_a_thread() {
        let head = |thread, length| handler::head(thread, length);
        let words = [head(7, 2), 1, 2, head(7, 1), 1, head(7, 2), 1, 2, head(8, 2), 1, 2, head(7, 0)];
        let mut all = stacks(&words);
        all.sort_by_key(|stack| (stack.thread.clone(), stack.addresses.clone()));
        let all: Vec<_> = all.iter().map(|stack| (&*stack.addresses, stack.times)).collect();
        assert_eq!(all, [(&[][..], 1), (&[1], 1), (&[1, 2], 2), (&[1, 2], 1)]);
    }
}
