//! The server as a program: how to build it, and ports for it.

use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Command;

use crate::{Failed, root};

/// Builds the server with a cargo profile, and returns its path.
pub fn build(profile: &str) -> Result<PathBuf, Failed> {
    let status = Command::new("cargo")
        .args(["build", "--profile", profile, "--quiet", "--package", "portolan"])
        .current_dir(root())
        .status()
        .map_err(|error| format!("cargo build: {error}"))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    // The folder of the profile `dev` has another name.
    let folder = if profile == "dev" { "debug" } else { profile };
    if status.success() {
        Ok(target.join(folder).join("portolan"))
    } else {
        Err("the server cannot be built".to_owned())
    }
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
