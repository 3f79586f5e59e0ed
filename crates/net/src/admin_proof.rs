//! Proof that the process at the other end of a Unix socket has the capability `NET_ADMIN`.
//!
//! Every process in a network namespace can connect to an abstract Unix socket, and many containers run as user 0
//! without capabilities, so the user ID proves nothing. Capabilities of a process in another PID namespace cannot be
//! read. Instead, the verifier passes a socket of its own, and the prover sets an option on it that the kernel reserves
//! for `NET_ADMIN` (`SO_PREFER_BUSY_POLL`, Linux 5.11). The option has no effect, because nothing ever arrives at the
//! socket.
//!
//! A process in the middle could relay the challenge to a process with the capability. Therefore the socket of the
//! challenge is bound to an abstract name that starts with its purpose, which the kernel reports and nobody can change.
//! A prover meets only challenges for its own purpose.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rand::TryRng;
use rand::rngs::SysRng;

/// Challenge to a process to show that it has the capability `NET_ADMIN`.
#[derive(Debug)]
pub struct AdminChallenge(UnixDatagram);

impl AdminChallenge {
    /// Creates a challenge for this purpose, which is the start of an abstract name.
    ///
    /// # Errors
    /// Fails if the purpose is longer than about 90 bytes, or with the error of a system call. `ENOPROTOOPT` means that
    /// the kernel is older than 5.11.
    pub fn new(purpose: &str) -> io::Result<AdminChallenge> {
        // Random, so that no process can occupy the name first.
        let number = SysRng.try_next_u64().map_err(io::Error::other)?;
        let name = SocketAddr::from_abstract_name(format!("{}{number:016x}", prefix(purpose)))?;
        let challenge = AdminChallenge(UnixDatagram::bind_addr(&name)?);
        challenge.is_met().map(|_| challenge)
    }

    /// Returns true if the challenge has been met.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn is_met(&self) -> io::Result<bool> {
        let mut value: libc::c_int = 0;
        let mut length = OPTION_LEN;
        // SAFETY: the kernel writes at most `length` bytes to a live integer of this length.
        let outcome = unsafe {
            let (level, option) = (libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL);
            libc::getsockopt(self.0.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length)
        };
        if outcome == 0 { Ok(value != 0) } else { Err(io::Error::last_os_error()) }
    }
}

impl AsFd for AdminChallenge {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Meets a challenge for this purpose.
///
/// # Errors
/// Returns `InvalidData` if the socket is no challenge for this purpose, and `PermissionDenied` without the capability.
pub fn meet_challenge(socket: OwnedFd, purpose: &str) -> io::Result<()> {
    let socket = UnixDatagram::from(socket);
    let address = socket.local_addr()?;
    let name = address.as_abstract_name().unwrap_or_default();
    if !name.starts_with(prefix(purpose).as_bytes()) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its challenge has another purpose"));
    }
    let on: libc::c_int = 1;
    // SAFETY: the option value points at a live integer of the length given.
    let outcome = unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL);
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const on).cast(), OPTION_LEN)
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the start of the names of challenges for a purpose.
fn prefix(purpose: &str) -> String {
    format!("{purpose}/challenge-")
}

/// Length of the option value in bytes.
const OPTION_LEN: libc::socklen_t = 4;
const _: () = assert!(OPTION_LEN as usize == size_of::<libc::c_int>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_to_meet_the_challenge_of_another_purpose() {
        let challenge = match AdminChallenge::new("portolan-test/server") {
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                return eprintln!("SKIPPED: a challenge needs Linux 5.11");
            }
            challenge => challenge.unwrap(),
        };
        let copy = || challenge.as_fd().try_clone_to_owned().unwrap();
        for purpose in ["portolan-test/client", "portolan-test/serve", "portolan-test/server/challenge-"] {
            assert_eq!(meet_challenge(copy(), purpose).unwrap_err().kind(), io::ErrorKind::InvalidData, "{purpose}");
        }
        assert!(!challenge.is_met().unwrap());
        let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(meet_challenge(other.into(), "portolan-test/server").is_err(), "a socket of another family");
        // Without the capability, the kernel refuses.
        match meet_challenge(copy(), "portolan-test/server") {
            Ok(()) => assert!(challenge.is_met().unwrap()),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                assert!(!challenge.is_met().unwrap());
            }
        }
    }
}
