//! Limits of the operating system for this process: what an error at the start means, and signals that end a process.

use core::error::Error;
use std::io;

use rustix::process::{Resource, getrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Descriptors that a server with few listeners needs to start, without its workers.
const DESCRIPTORS: usize = 24;
/// Descriptors that each worker needs: its runtime, and the sockets of one listener.
const DESCRIPTORS_PER_WORKER: usize = 8;
/// Threads besides the workers: the main one, the log, the control API, and one that reads files.
const THREADS: usize = 4;

/// Keeps the system from ending the process if it writes beyond the maximum size of a file (`RLIMIT_FSIZE`), such as
/// its log in a shell: the write fails instead, and the lines are lost. Must be called within a tokio runtime.
pub(crate) fn survive_file_size_limit() -> io::Result<Signal> {
    signal(SignalKind::from_raw(libc::SIGXFSZ))
}

/// Checks that the system allows one more thread, as files need that are read while the server runs.
///
/// # Errors
/// It does not.
pub(crate) fn check_threads() -> io::Result<()> {
    let thread = std::thread::Builder::new().spawn(|| ())?;
    thread.join().map_err(|_| io::Error::other("a thread ended early"))
}

/// Returns what to do about an error at the start of a server with this number of workers, if a limit is its cause.
pub(crate) fn advice(error: &(dyn Error + 'static), workers: usize) -> Option<String> {
    let number = std::iter::successors(Some(error), |&error| error.source())
        .find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error())?;
    let limit = |resource| getrlimit(resource).current.map_or("unlimited".to_owned(), |limit| limit.to_string());
    match number {
        libc::EMFILE => Some(format!(
            "the limit of open files is {}, and this server needs about {} to start; raise it, for example with \
             `ulimit -n` or `LimitNOFILE=`",
            limit(Resource::Nofile),
            DESCRIPTORS + DESCRIPTORS_PER_WORKER * workers
        )),
        libc::EAGAIN => Some(format!(
            "the system refuses another thread: the limit of processes of this user is {}, and this server needs about {}; \
             raise it (`ulimit -u`), or that of the container (`pids.max`)",
            limit(Resource::Nproc),
            THREADS + workers
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_limit_behind_an_error() {
        let advice = |number: i32| advice(&io::Error::from_raw_os_error(number), 2);
        assert!(advice(libc::EMFILE).unwrap().contains("needs about 40 to start"));
        assert!(advice(libc::EAGAIN).unwrap().contains("needs about 6"));
        assert_eq!(advice(libc::EACCES), None);
    }
}
