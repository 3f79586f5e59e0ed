//! Commands and raw requests to the control socket of a server.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::{PATIENCE, Server};

/// Control socket of a server.
pub(crate) struct ControlSocket(pub(crate) String);

/// Result of a command.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl ControlSocket {
    /// Waits until the server listens on its control socket.
    pub(crate) fn of(server: &mut Server) -> ControlSocket {
        let line = server.wait_for(" for control");
        let name = line.split("listening on ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a name");
        ControlSocket(name.to_owned())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command.args(words).args(["--socket", &self.0]);
        command
    }

    /// Runs a command.
    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        self.command(words).output().expect("the command runs").into()
    }

    /// Runs a command whose standard output is this file.
    pub(crate) fn run_into(&self, words: &[&str], output: std::fs::File) -> Ran {
        self.command(words).stdout(output).output().expect("the command runs").into()
    }

    /// Starts a command, whose output can be read while it runs.
    pub(crate) fn spawn(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs")
    }

    /// Runs a command as another user.
    pub(crate) fn run_as(&self, user: u32, words: &[&str]) -> Ran {
        self.command(words).uid(user).output().expect("the command runs").into()
    }

    /// Runs a command and returns its standard output as bytes.
    pub(crate) fn bytes(&self, words: &[&str]) -> Vec<u8> {
        self.command(words).output().expect("the command runs").stdout
    }

    /// Runs a command with `--json` and parses its output.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let Ran { stdout, stderr, .. } = self.run(&[words, &["--json"]].concat());
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{words:?}: {error}: {stdout}{stderr}"))
    }

    /// Returns the status.
    pub(crate) fn status(&self) -> Value {
        self.json(&["status"])
    }

    /// Connects to the socket.
    pub(crate) fn connect(&self) -> UnixStream {
        let stream = match self.0.strip_prefix('@') {
            Some(name) => UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).expect("a name")),
            None => UnixStream::connect(&self.0),
        };
        let stream = stream.expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Sends a request and returns the status of the response with its body.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let stream = self.connect();
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        (&stream).write_all(head.as_bytes()).expect("a request leaves");
        // The server may refuse the request before it has read the whole body.
        let _ = (&stream).write_all(body.as_bytes());
        response(stream)
    }
}

/// Reads a response until the connection closes.
pub(crate) fn response(mut stream: impl Read) -> (u16, String) {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, text.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
}
