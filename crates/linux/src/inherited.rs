//! Descriptor that the process has inherited from its parent.
#![allow(unsafe_code, reason = "a descriptor known by its number has no owner yet")]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Least number of a descriptor that is no standard stream.
const FIRST: RawFd = 3;

/// Takes ownership of a descriptor that the parent process has left open for this one, and closes it in programs that
/// this process starts. Only the first call in a process can succeed.
///
/// # Errors
/// Returns `InvalidInput` unless the descriptor is open and inherited. This process opens all of its own descriptors
/// close-on-exec, so one without that flag came from the parent, and has no owner here.
pub fn take_descriptor(number: RawFd) -> io::Result<OwnedFd> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    // SAFETY: the call has no pointer and changes nothing.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    let is_inherited = number >= FIRST && flags >= 0 && flags & libc::FD_CLOEXEC == 0;
    if !is_inherited || IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the call has no pointer, and the descriptor is open.
    if unsafe { libc::fcntl(number, libc::F_SETFD, flags | libc::FD_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, it came from the parent, and this code runs once, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests open a file and run a program")]
mod tests {
    use std::os::fd::{AsRawFd, IntoRawFd};

    use super::*;

    #[test]
    fn takes_only_a_descriptor_that_was_inherited_and_only_once() {
        let own = std::fs::File::open("/dev/null").unwrap();
        assert!(take_descriptor(own.as_raw_fd()).is_err(), "closed on exec");
        assert!(take_descriptor(0).is_err() && take_descriptor(-1).is_err() && take_descriptor(1 << 20).is_err());
        // SAFETY: duplicates a descriptor of this test; `dup` leaves it open on exec.
        let inherited = unsafe { libc::dup(own.as_raw_fd()) };
        let taken = take_descriptor(inherited).unwrap();
        assert_eq!(taken.as_raw_fd(), inherited);
        assert!(take_descriptor(taken.into_raw_fd()).is_err(), "taken before");
    }
}
