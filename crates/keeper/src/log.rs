//! Log lines of the keeper, in the format of the server, on standard error.

use std::fmt::{Arguments, Write as _};
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use host::time::rfc3339_nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Level of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Something went wrong, and the keeper continues.
    Warning,
    /// The keeper ends.
    Error,
}

/// Writes one line. A reader that has stopped costs the line: the keeper must not wait for it.
pub(crate) fn write(is_json: bool, level: Level, message: Arguments<'_>) {
    let errors = std::io::stderr();
    let mut ready = [PollFd::new(&errors, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if matches!(poll(&mut ready, Some(&now)), Ok(1..)) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let _ = errors.lock().write_all(line(is_json, level, time, &message.to_string()).as_bytes());
    }
}

/// Renders a line like the server (crate `process`, `log`), with its end.
fn line(is_json: bool, level: Level, since_1970: Duration, message: &str) -> String {
    if !is_json {
        let level = match level {
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
        };
        return format!("[{level}] keeper: {message}\n");
    }
    let level = match level {
        Level::Warning => "WARN",
        Level::Error => "ERROR",
    };
    let mut out = format!("{{\"time\":\"{}\",\"level\":\"{level}\",\"msg\":\"keeper: ", rfc3339_nanos(since_1970));
    for character in message.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            // Writing to a `String` cannot fail.
            control if control.is_control() => drop(write!(out, "\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push_str("\"}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_lines_like_the_server() {
        let time = Duration::new(1_795_366_335, 42_000_000);
        let text = "a \"server\"\nended";
        assert_eq!(line(false, Level::Warning, time, "ended"), "[WARNING] keeper: ended\n");
        assert_eq!(
            line(true, Level::Warning, time, text),
            "{\"time\":\"2026-11-22T16:52:15.042000000Z\",\"level\":\"WARN\",\
             \"msg\":\"keeper: a \\\"server\\\"\\u000aended\"}\n"
        );
    }
}
