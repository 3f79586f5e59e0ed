//! Settings of this process in the kernel (prctl(2)).
#![allow(unsafe_code, reason = "no safe interface to prctl(2)")]

use std::io;

/// Makes the kernel kill this process when the thread that started it ends. The setting survives `exec` of a program
/// without capabilities of its own (prctl(2), `PR_SET_PDEATHSIG`).
///
/// # Errors
/// Returns `NotFound` if the parent has ended already.
pub fn end_with_parent() -> io::Result<()> {
    let parent = std::os::unix::process::parent_id();
    // SAFETY: the call has no pointer.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // A parent that ended before the call sends no signal.
    if std::os::unix::process::parent_id() == parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}
