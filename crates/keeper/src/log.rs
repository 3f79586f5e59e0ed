//! Log lines of the keeper, in the format of the server, on standard error.

use std::fmt::{Arguments, Write as _};
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    let mut out = format!("{{\"time\":\"{}\",\"level\":\"{level}\",\"msg\":\"keeper: ", rfc3339(since_1970));
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

/// Formats a time according to RFC 3339 in UTC, with nanoseconds.
fn rfc3339(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:09}Z", since_1970.subsec_nanos())
}

/// Returns year, month and day of a number of days since 1970 (Gregorian calendar, in eras of 400 years from March on).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (400 * era + year_of_era + u64::from(month <= 2), month, day)
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

    #[test]
    fn knows_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000000Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), text);
        }
    }
}
