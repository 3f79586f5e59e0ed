//! Signals that a thread reads from a descriptor (signalfd(2)), so that it can wait for them and for sockets in one
//! call.
#![allow(unsafe_code, reason = "signal masks and signalfd have no safe wrapper")]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Queue of signals that this thread has blocked. A blocked signal is queued even for the first process of a container,
/// for which the kernel ignores signals without a handler.
#[derive(Debug)]
pub struct SignalQueue(OwnedFd);

/// Signal from the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Number of the signal.
    pub signal: i32,
    /// True if the kernel sent it, such as the terminal for Ctrl-C, and not a process.
    pub is_from_kernel: bool,
}

impl SignalQueue {
    /// Blocks these signals in this thread and in those that it starts, and queues them. A program that the thread
    /// starts inherits that; see [`unblock_in`].
    ///
    /// # Errors
    /// Fails if the kernel refuses a signal or a descriptor.
    pub fn new(signals: &[i32]) -> io::Result<SignalQueue> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the set is initialised by `sigemptyset` before anything reads it, and lives until the last call.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in signals {
                if libc::sigaddset(set.as_mut_ptr(), *signal) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            let error = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            if error != 0 {
                return Err(io::Error::from_raw_os_error(error));
            }
            let descriptor = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(SignalQueue(OwnedFd::from_raw_fd(descriptor)))
        }
    }

    /// Takes the next signal, or returns `None` if no signal has arrived.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn take(&self) -> io::Result<Option<Received>> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let length = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `length` bytes into `info`, which has as many.
        let read = unsafe { libc::read(self.0.as_raw_fd(), info.as_mut_ptr().cast(), length) };
        if read < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        // SAFETY: all bits of the structure are integers, and it was zeroed.
        let info = unsafe { info.assume_init() };
        let Ok(signal) = i32::try_from(info.ssi_signo) else { return Ok(None) };
        Ok(Some(Received { signal, is_from_kernel: info.ssi_code == SI_KERNEL }))
    }
}

/// Makes a program start with no signal blocked.
pub fn unblock_in(command: &mut Command) {
    let unblock = || {
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the set, and both calls are allowed between fork and exec
        // (signal-safety(7)).
        let outcome = unsafe {
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
        };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: the function calls nothing that is not allowed between fork and exec, and allocates nothing.
    unsafe { command.pre_exec(unblock) };
}

/// Code of a signal from the kernel. The crate libc does not define it for each C library.
const SI_KERNEL: i32 = 0x80;

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests open a file and run a program")]
mod tests {
    use super::*;

    #[test]
    fn queues_a_signal_of_a_process() {
        let queue = SignalQueue::new(&[libc::SIGUSR2]).unwrap();
        assert_eq!(queue.take().unwrap(), None);
        // To this thread only: another test's thread would end the process.
        // SAFETY: the thread exists, and it has blocked the signal.
        assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR2) }, 0);
        assert_eq!(queue.take().unwrap(), Some(Received { signal: libc::SIGUSR2, is_from_kernel: false }));
        assert_eq!(queue.take().unwrap(), None);
    }

    #[test]
    fn a_program_starts_without_blocked_signals() {
        let _queue = SignalQueue::new(&[libc::SIGUSR1]).unwrap();
        let blocked = |command: &mut Command| {
            let output = command.args(["SigBlk", "/proc/self/status"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().rsplit('\t').next().unwrap().to_owned()
        };
        assert_ne!(blocked(&mut Command::new("grep")), "0000000000000000", "the mask is inherited");
        let mut command = Command::new("grep");
        unblock_in(&mut command);
        assert_eq!(blocked(&mut command), "0000000000000000");
    }

    #[test]
    fn refuses_a_number_that_is_no_signal() {
        assert!(SignalQueue::new(&[4096]).is_err());
    }
}
