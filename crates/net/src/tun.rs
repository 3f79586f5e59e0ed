//! TUN interface that exists as long as a process holds it. When the last holder has ended, for whatever reason, the
//! kernel removes the interface with its addresses.
//!
//! No packet ever passes through the device, because the kernel delivers packets to local addresses itself.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

const DEVICE: &str = "/dev/net/tun";
/// Number of the device (Linux, `Documentation/admin-guide/devices.txt`).
const DEVICE_NUMBER: (u32, u32) = (10, 200);

/// `struct ifreq` as used by `TUNSETIFF`: name, flags, and the rest of its union.
#[repr(C)]
struct Wanted {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// Opens the interface with this name, and creates it if it does not exist. Several processes may hold it.
///
/// Creates the device file if it is missing, as in a container without a mount for it.
///
/// # Errors
/// Fails if the device cannot be opened (missing, or no permission), if the name is too long, or if an interface of
/// another kind has this name.
pub fn hold_interface(name: &str) -> io::Result<OwnedFd> {
    let device = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create_device().and_then(|()| open())?,
        outcome => outcome?,
    };
    let mut wanted = Wanted { name: [0; libc::IFNAMSIZ], flags: 0, rest: [0; 22] };
    // The kernel needs a terminating zero byte.
    if name.len() >= wanted.name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    wanted.name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    // Several queues allow several processes to hold the interface during a handover.
    const FLAGS: libc::c_int = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_MULTI_QUEUE;
    #[allow(clippy::cast_possible_truncation, reason = "the kernel's field is as wide as these flags")]
    {
        wanted.flags = FLAGS as libc::c_short;
    }
    // SAFETY: the descriptor is open, and `wanted` is a complete `struct ifreq` that outlives the call.
    let outcome = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut wanted) };
    if outcome == 0 { Ok(device.into()) } else { Err(io::Error::last_os_error()) }
}

fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)
}

/// Creates the device file. Container runtimes allow the device, and by default the capability `MKNOD`.
fn create_device() -> io::Result<()> {
    if let Some(folder) = Path::new(DEVICE).parent() {
        std::fs::create_dir_all(folder)?;
    }
    let (major, minor) = DEVICE_NUMBER;
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, DEVICE, FileType::CharacterDevice, mode, makedev(major, minor)).map_err(Into::into)
}
