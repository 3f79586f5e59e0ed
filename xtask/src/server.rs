//! The server as a program: how to build it, ports for it, and how to ask it over TCP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::{Failed, root};

/// Builds the server with a cargo profile, and returns its path.
pub fn build(profile: &str) -> Result<PathBuf, Failed> {
    let status = Command::new("cargo")
        .args(["build", "--profile", profile, "--quiet", "--package", "portolan"])
        .current_dir(root())
        .status()
        .map_err(|error| format!("cargo build: {error}"))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    if status.success() {
        Ok(target.join(profile_folder(profile)).join("portolan"))
    } else {
        Err("the server cannot be built".to_owned())
    }
}

/// Returns the name of the folder for the output of a profile. That of `dev` has another name.
pub(crate) fn profile_folder(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

/// Number of ports that [`free_port`] tries.
const PORT_TRIES: usize = 100;

/// Returns a port on loopback that is currently free for UDP and TCP.
///
/// # Errors
/// No port that is free for UDP and TCP was found in 100 attempts, or the system refused a socket.
pub fn free_port() -> Result<u16, Failed> {
    let pair = || {
        let address = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
        TcpListener::bind(address).map(|_| address.port())
    };
    let mut outcome = pair();
    for _ in 1..PORT_TRIES {
        if outcome.is_ok() {
            break;
        }
        outcome = pair();
    }
    outcome.map_err(|error| format!("no port is free: {error}"))
}

/// Sends a query over a new TCP connection, and returns the response (RFC 1035 §4.2.2). `timeout` is that of the
/// connection, and of each read.
///
/// # Errors
/// The query is longer than 65,535 bytes, or the connection failed or timed out.
pub fn over_tcp(server: SocketAddr, query: &[u8], timeout: Duration) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    let length = u16::try_from(query.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_all(&[&length.to_be_bytes(), query].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
