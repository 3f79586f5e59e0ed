//! The server as a program: how to build it, and ports for it.

use std::net::TcpListener;
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

/// Returns a port on loopback that is currently free.
pub fn free_port() -> Result<u16, Failed> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}
