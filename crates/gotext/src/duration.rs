//! Durations in Go's syntax: `30s`, `1h20m`, `1.5s`, `500ms`.

use core::error::Error;
use core::fmt;
use core::time::Duration;

/// Units of durations, in nanoseconds.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("\u{3bc}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// Parses a duration of zero or more: `30s`, `1h20m`, `1.5s`, `500ms`, `0`.
///
/// # Errors
/// The text is not a duration, or the duration is negative.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut nanos = 0.0;
    if rest.is_empty() {
        return Err(DurationError::NotADuration);
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(DurationError::NotADuration)?;
        let number: f64 = rest[..digits].parse().map_err(|_| DurationError::NotADuration)?;
        let unit_len = rest[digits..].find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len() - digits);
        let unit = &rest[digits..digits + unit_len];
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(DurationError::NotADuration)?;
        nanos += number * scale;
        rest = &rest[digits + unit_len..];
    }
    if negative && nanos > 0.0 {
        return Err(DurationError::Negative);
    }
    // The maximum of Go's type is 292 years.
    Duration::try_from_secs_f64(nanos / 1e9).ok().filter(|_| nanos < 9.2e18).ok_or(DurationError::NotADuration)
}

/// Formats a duration: `1h20m0s`, `1.5s`, `500ms`, `0s`.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}\u{b5}s", decimal(nanos, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(nanos, 6)),
        _ => {
            let (hours, minutes) = (duration.as_secs() / 3600, duration.as_secs() / 60 % 60);
            let seconds = decimal(nanos - u128::from(duration.as_secs() / 60 * 60) * 1_000_000_000, 9);
            match (hours, minutes) {
                (0, 0) => format!("{seconds}s"),
                (0, _) => format!("{minutes}m{seconds}s"),
                _ => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// Formats `number / 10^places` without trailing zeros.
fn decimal(number: u128, places: u32) -> String {
    let unit = 10u128.pow(places);
    let (whole, part) = (number / unit, number % unit);
    let part = format!("{part:0width$}", width = places as usize);
    let part = part.trim_end_matches('0');
    if part.is_empty() { whole.to_string() } else { format!("{whole}.{part}") }
}

/// Reason why a text is not a usable duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// Not a duration, or above the maximum of Go's type.
    NotADuration,
    /// Negative duration.
    Negative,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DurationError::NotADuration => "not a duration such as `30s` or `1h20m`",
            DurationError::Negative => "the duration is negative; the minimum is 0s",
        })
    }
}

impl Error for DurationError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_durations_like_go() {
        let cases = [
            ("30s", Ok(30_000)),
            ("1h20m", Ok(4_800_000)),
            ("500ms", Ok(500)),
            ("1.5s", Ok(1500)),
            ("0", Ok(0)),
            ("0s", Ok(0)),
            ("-0s", Ok(0)),
            ("+2s", Ok(2000)),
            (".5s", Ok(500)),
            ("-1s", Err(DurationError::Negative)),
            ("20", Err(DurationError::NotADuration)),
            ("1y", Err(DurationError::NotADuration)),
            ("s", Err(DurationError::NotADuration)),
            ("", Err(DurationError::NotADuration)),
            ("1s2", Err(DurationError::NotADuration)),
            ("999999999h", Err(DurationError::NotADuration)),
        ];
        for (text, millis) in cases {
            assert_eq!(parse_duration(text), millis.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn formats_durations_like_go() {
        let cases = [
            (0, "0s"),
            (17, "17ns"),
            (1_500, "1.5\u{b5}s"),
            (500_000_000, "500ms"),
            (1_050_000_000, "1.05s"),
            (60_000_000_000, "1m0s"),
            (4_800_000_000_000, "1h20m0s"),
            (3_600_500_000_000, "1h0m0.5s"),
        ];
        for (nanos, text) in cases {
            assert_eq!(format_duration(Duration::from_nanos(nanos)), text);
        }
    }
}
