//! Reading of files with a bound. A path from a configuration may name anything: a FIFO, which blocks until somebody
//! writes to it, or a device without an end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use host::invariant::holds;

/// Number of `/dev/null` (Linux, `Documentation/admin-guide/devices.txt`), which serves as an empty file.
const NULL_DEVICE: u64 = 1 << 8 | 3;

/// Maximum length of a file with certificates or keys in bytes. A bundle of all public authorities has 200 KiB.
pub const PEM_FILE_MAX: u64 = 4 << 20;

/// Returns the content of a regular file of at most `max` bytes, or nothing for `/dev/null`.
///
/// # Errors
/// Returns the error of the system, `InvalidInput` for a FIFO or another device, and `FileTooLarge` for a file that is
/// longer, also if it grows while it is read.
pub fn read_file(path: impl AsRef<Path>, max: u64) -> io::Result<Vec<u8>> {
    read_open(&open_regular(path.as_ref())?, max)
}

/// Opens a regular file, or `/dev/null`.
fn open_regular(path: &Path) -> io::Result<File> {
    // Without `O_NONBLOCK`, opening a FIFO waits for a writer. Regular files ignore the flag.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    let is_device = kind.is_block_device() || kind.is_char_device() && metadata.rdev() != NULL_DEVICE;
    let other = if kind.is_fifo() {
        "it is a FIFO, not a regular file"
    } else if is_device {
        "it is a device, not a regular file"
    } else {
        return Ok(file);
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, other))
}

/// Returns true if the path leads to this open file: nobody has replaced or removed it since.
///
/// # Errors
/// Returns the error of the system; `NotFound` if the path leads nowhere.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (open, named) = (file.metadata()?, std::fs::metadata(path)?);
    Ok((open.dev(), open.ino()) == (named.dev(), named.ino()))
}

/// Opens a regular file to read it, and if `appends`, to append to it.
///
/// # Errors
/// Returns the error of the system, and `InvalidInput` for what is no regular file.
pub fn open_log(path: impl AsRef<Path>, appends: bool) -> io::Result<File> {
    // Without `O_NONBLOCK`, opening a FIFO waits for its other end. Regular files ignore the flag.
    let file = OpenOptions::new().read(true).append(appends).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file)
}

/// Paths of open files of this process, such as the pipe of a shell's `<(command)`.
const DESCRIPTORS: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// Returns the text of a file that a command line names, under the conditions of [`read_text`]. The open files of this
/// process may also be pipes, which are read to their end.
///
/// # Errors
/// Fails like [`read_text`].
pub fn read_argument(path: impl AsRef<Path>, max: u64) -> io::Result<String> {
    let path = path.as_ref();
    if !DESCRIPTORS.iter().any(|descriptors| path.starts_with(descriptors)) {
        return read_text(path, max);
    }
    to_text(read_open(&File::open(path)?, max)?)
}

/// Returns the beginning of the text of a file that a command line names: at most `max` bytes, cut between characters.
///
/// # Errors
/// Fails like [`read_argument`], but not for a file that is longer.
pub fn read_beginning(path: impl AsRef<Path>, max: u64) -> io::Result<String> {
    let path = path.as_ref();
    let is_descriptor = DESCRIPTORS.iter().any(|descriptors| path.starts_with(descriptors));
    let file = if is_descriptor { File::open(path)? } else { open_regular(path)? };
    beginning(file, max)
}

/// Returns the beginning of a text, like [`read_beginning`].
///
/// # Errors
/// The error of the reader, and `InvalidData` if the beginning is not UTF-8.
pub fn beginning(from: impl Read, max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    let is_cut = from.take(max).read_to_end(&mut bytes)? as u64 == max;
    holds(bytes.len() as u64 <= max, "the beginning of a text is bounded");
    // A character at the end may be incomplete.
    if is_cut
        && let Err(error) = core::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    to_text(bytes)
}

/// Returns the content of an open file of at most `max` bytes.
fn read_open(file: &File, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more shows that the file is longer.
    let length = file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if length as u64 > max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {max} bytes")));
    }
    holds(bytes.len() == length, "a file is all that was read");
    Ok(bytes)
}

/// Returns the text of a file, under the conditions of [`read_file`].
///
/// # Errors
/// Fails like [`read_file`], and with `InvalidData` if the file is not UTF-8.
pub fn read_text(path: impl AsRef<Path>, max: u64) -> io::Result<String> {
    to_text(read_file(path, max)?)
}

fn to_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let message = host::errors::not_text(error.as_bytes(), error.utf8_error());
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("portolan-files-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn reads_regular_files_up_to_the_bound() {
        let folder = Folder::new("bound");
        let file = folder.file("four", b"four");
        assert_eq!(read_file(&file, 4).unwrap(), b"four");
        assert_eq!(read_file(&file, 3).unwrap_err().to_string(), "it is longer than 3 bytes");
        assert_eq!(read_text(&file, u64::MAX).unwrap(), "four");
        let wrong = read_text(folder.file("bytes", b"a\n\xc3\x9fb\xff\n"), 9).unwrap_err();
        assert_eq!(wrong.kind(), io::ErrorKind::InvalidData);
        assert_eq!(wrong.to_string(), "it is not UTF-8 text: byte 0xff at line 2, column 3");
        let first = read_text(folder.file("bytes", b"\xfe\xff"), 9).unwrap_err().to_string();
        assert_eq!(first, "it is not UTF-8 text: byte 0xfe at line 1, column 1");
        assert_eq!(read_file(folder.0.join("none"), 9).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read_file(&folder.0, 9).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn waits_for_no_writer_and_reads_no_endless_device() {
        let folder = Folder::new("kinds");
        let fifo = folder.0.join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert_eq!(read_file(&fifo, 9).unwrap_err().to_string(), "it is a FIFO, not a regular file");
        assert_eq!(read_file("/dev/null", 9).unwrap(), b"");
        for endless in ["/dev/zero", "/dev/full"] {
            assert_eq!(
                read_file(endless, 9).unwrap_err().to_string(),
                "it is a device, not a regular file",
                "{endless}"
            );
        }
        let _listener = std::os::unix::net::UnixListener::bind(folder.0.join("socket")).unwrap();
        assert!(read_file(folder.0.join("socket"), 9).is_err());
    }
}
