//! A network interface that is there for as long as somebody holds it: when the last process that does has ended, however it
//! ended, the kernel removes the interface and its addresses.
//!
//! It is a TUN device; no packet ever goes through it, as what is sent to an address of this machine stays within it.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

const DEVICE: &str = "/dev/net/tun";

/// What the kernel's `struct ifreq` is for `TUNSETIFF`: the name, the flags, and the rest of its union.
#[repr(C)]
struct Wanted {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// Holds the interface of this name; makes it if there is none yet. Several processes may.
///
/// # Errors
/// If the device cannot be opened (there is none, or no right), if the name is too long, or if there is such an interface
/// of another kind.
pub fn hold_interface(name: &str) -> io::Result<OwnedFd> {
    let device = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)?;
    let mut wanted = Wanted { name: [0; libc::IFNAMSIZ], flags: 0, rest: [0; 22] };
    // The kernel wants a zero behind it.
    if name.len() >= wanted.name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    wanted.name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    // With several queues, several processes can hold it: one takes over from the other.
    const FLAGS: libc::c_int = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_MULTI_QUEUE;
    #[allow(clippy::cast_possible_truncation, reason = "the kernel's field is as wide as these flags")]
    {
        wanted.flags = FLAGS as libc::c_short;
    }
    // SAFETY: the descriptor is open, and `wanted` is a whole `struct ifreq` that lives until the call is over.
    let outcome = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut wanted) };
    if outcome == 0 { Ok(device.into()) } else { Err(io::Error::last_os_error()) }
}
