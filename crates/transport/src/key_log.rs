//! File with the secrets of TLS sessions, in the format that Wireshark reads (`SSLKEYLOGFILE`).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustls::KeyLog;

/// Open file. Anyone who reads it can decrypt the connections, so only its owner may.
#[derive(Debug)]
pub(crate) struct KeyLogFile(Mutex<File>);

impl KeyLogFile {
    /// Opens a file to append to it, and creates it if it does not exist.
    pub(crate) fn open(path: &Path) -> io::Result<KeyLogFile> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(KeyLogFile(Mutex::new(file)))
    }
}

impl KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        // A full disk must not end connections.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}
