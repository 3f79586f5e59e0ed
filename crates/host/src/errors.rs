//! Texts of I/O errors for users: in lower case and without the number of the system.
//!
//! All messages use these functions, so that the same error has the same text everywhere. Pure crates display an
//! [`io::Error`] directly: the implementations of `config::setup::Files` and `corefile::Loader` pass every
//! error through [`plain`] first.

use core::str::Utf8Error;
use std::io;
use std::path::Path;

/// Returns the text of an error, for example `no such file or directory` or `it is a directory`.
#[must_use]
pub fn describe(error: &io::Error) -> String {
    match (error.kind(), error.get_ref(), error.raw_os_error()) {
        (_, Some(inner), _) => inner.to_string(),
        (io::ErrorKind::IsADirectory, ..) => "it is a directory".to_owned(),
        (io::ErrorKind::NotADirectory, ..) => "it is not a directory".to_owned(),
        // Errors without a number come from file systems of tests, and must look like those of the system.
        (io::ErrorKind::NotFound, _, None) => "no such file or directory".to_owned(),
        _ => without_numbers(&error.to_string()).to_ascii_lowercase(),
    }
}

/// Returns a text in which no error of the system has its number, such as ` (os error 2)`. For errors of libraries
/// whose text contains that of an [`io::Error`].
#[must_use]
pub fn without_numbers(text: &str) -> String {
    let mut parts = text.split(NUMBER);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or("", |(_, rest)| rest))
}

/// Start of the number that Rust adds to the texts of the system. Digits and a closing parenthesis follow.
const NUMBER: &str = " (os error ";

/// Returns an error of the same kind that displays as [`describe`].
#[must_use]
#[allow(clippy::needless_pass_by_value, reason = "used as `map_err(plain)`")]
pub fn plain(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), describe(&error))
}

/// Returns the message for bytes that are not text, with the place of the first one that is wrong:
/// `it is not UTF-8 text: byte 0xff at line 2, column 8`. Columns count characters.
#[must_use]
pub fn not_text(bytes: &[u8], error: Utf8Error) -> String {
    let (before, rest) = bytes.split_at(error.valid_up_to());
    let before = core::str::from_utf8(before).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let byte = rest.first().copied().unwrap_or_default();
    format!("it is not UTF-8 text: byte {byte:#04x} at line {line}, column {column}")
}

/// Returns the message for a file or directory that cannot be read: `cannot open PATH: no such file or directory`.
#[must_use]
pub fn cannot_open(path: impl AsRef<Path>, error: &io::Error) -> String {
    format!("cannot open {}: {}", path.as_ref().display(), describe(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_numbers_from_texts_of_libraries() {
        for (text, expected) in [
            ("connect: Refused (os error 111)", "connect: Refused"),
            ("a (os error 2): b (os error 3): c", "a: b: c"),
            ("plain", "plain"),
            ("cut (os error 2", "cut"),
        ] {
            assert_eq!(without_numbers(text), expected);
        }
    }

    #[test]
    fn omits_the_number_of_the_system() {
        for (error, expected) in [
            (io::Error::from_raw_os_error(2), "no such file or directory"),
            (io::Error::from_raw_os_error(21), "it is a directory"),
            (io::Error::from_raw_os_error(20), "it is not a directory"),
            (io::Error::from_raw_os_error(13), "permission denied"),
            (io::ErrorKind::NotFound.into(), "no such file or directory"),
            (io::Error::other("File too large"), "File too large"),
        ] {
            let kind = error.kind();
            assert_eq!(cannot_open("/a b", &error), format!("cannot open /a b: {expected}"));
            let plain = plain(plain(error));
            assert_eq!((plain.kind(), plain.to_string().as_str()), (kind, expected));
        }
    }
}
