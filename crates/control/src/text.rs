//! Numbers, durations and shares as people read them, the same in all commands.

/// Formats a count with commas: `101,200`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 problem`, `2 problems`.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(number))
}

/// Formats a rate per second: `0.4`, `37`, `42.1k`.
#[must_use]
pub fn rate(number: f64) -> String {
    match number {
        _ if number < 9.95 => format!("{number:.1}"),
        _ if number < 999.5 => format!("{number:.0}"),
        _ if number < 999_950.0 => format!("{:.1}k", number / 1e3),
        _ => format!("{:.1}M", number / 1e6),
    }
}

/// Formats a duration in its two largest units: `250 µs`, `2.1 ms`, `0.2 s`, `41 s`, `4 m 10 s`, `3 d 4 h`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if seconds < 0.0995 {
        return short_duration(seconds);
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a saturating cast of a positive number"
    )]
    let whole = seconds.round() as u64;
    let units = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let largest = units.iter().position(|(length, _)| whole >= *length).unwrap_or(units.len() - 1);
    let part = |(at, (length, name)): (usize, &(u64, &str))| {
        let rest = if at == 0 { whole } else { whole % units[at - 1].0 };
        (rest / length > 0).then(|| format!("{} {name}", rest / length))
    };
    units.iter().enumerate().skip(largest).take(2).filter_map(part).collect::<Vec<_>>().join(" ")
}

fn short_duration(seconds: f64) -> String {
    let micros = seconds * 1e6;
    match micros {
        _ if micros < 0.5 => "0 s".to_owned(),
        _ if micros < 999.5 => format!("{micros:.0} µs"),
        _ if micros < 9_950.0 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.0} ms", micros / 1e3),
    }
}

/// Formats a share as a percentage with two significant digits: `66`, `0.02`.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "two digits are shown")]
    let share = if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 };
    match share {
        _ if part == 0 => "0".to_owned(),
        _ if part < whole && share > 99.5 => "> 99".to_owned(),
        _ if share < 0.01 => "< 0.01".to_owned(),
        _ if share < 0.995 => format!("{share:.2}"),
        _ => format!("{share:.0}"),
    }
}

/// Formats bytes in MiB: `24.7 MiB`.
#[must_use]
pub fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", mebibytes_bare(bytes))
}

/// Formats bytes in MiB without the unit: `24.7`, `170`.
#[must_use]
pub fn mebibytes_bare(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let mebi = bytes as f64 / f64::from(1 << 20);
    if mebi < 99.95 && !bytes.is_multiple_of(1 << 20) { format!("{mebi:.1}") } else { format!("{mebi:.0}") }
}

/// Returns a text with control characters and those that change the direction of writing as escapes, for a terminal.
/// Names in queries can have any bytes.
#[must_use]
pub fn harmless(text: &str) -> String {
    let is_harmful = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_harmful(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// Leaves out the middle of a text that is longer than `width` characters: both ends of a name tell it from others.
#[must_use]
pub fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let half = width.saturating_sub(1) / 2;
    let start: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(length - half).collect();
    format!("{start}…{end}")
}

/// Returns the meaning of an Extended DNS Error (RFC 8914 §4) that this server or an upstream sends.
#[must_use]
pub const fn ede_meaning(code: u64) -> Option<&'static str> {
    Some(match code {
        3 | 19 => "answered from expired data",
        6..=12 => "DNSSEC validation failed",
        13 => "the failure is cached",
        14 => "not ready",
        15..=17 => "blocked by policy",
        18 => "the client may not ask",
        20 => "not authoritative",
        21 => "not supported",
        22 => "no usable answer of an upstream",
        23 => "network error",
        24 => "an upstream sent invalid data",
        _ => return None,
    })
}

/// Characters of a hash that are shown.
const HASH_SHOWN: usize = 4;

/// Shortens a hash.
pub(crate) fn shown_hash(hash: &str) -> String {
    format!("{}…", harmless(hash.get(..HASH_SHOWN).unwrap_or(hash)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_numbers_for_people() {
        assert_eq!([0, 999, 1000, 101_200, 1_234_567].map(count), ["0", "999", "1,000", "101,200", "1,234,567"]);
        assert_eq!([0.0, 9.94, 37.4, 42_100.0, 1_200_000.0].map(rate), ["0.0", "9.9", "37", "42.1k", "1.2M"]);
        assert_eq!(
            [0.0, 9e-6, 0.00025, 0.0021, 0.064, 0.2, 41.0, 60.0, 250.0, 7200.0, 273_600.0].map(duration),
            ["0 s", "9 µs", "250 µs", "2.1 ms", "64 ms", "0.2 s", "41 s", "1 m", "4 m 10 s", "2 h", "3 d 4 h"]
        );
        assert_eq!(
            [(0, 0), (0, 9), (66, 100), (2, 10_000), (1, 1_000_000), (9_999, 10_000), (5, 5)]
                .map(|(part, whole)| percent(part, whole)),
            ["0", "0", "66", "0.02", "< 0.01", "> 99", "100"]
        );
        assert_eq!([25_900_000, 170 << 20].map(mebibytes), ["24.7 MiB", "170 MiB"]);
        assert_eq!((counted(1, "block"), counted(2, "block")), ("1 block".to_owned(), "2 blocks".to_owned()));
    }

    #[test]
    fn escapes_characters_that_change_a_terminal() {
        assert_eq!(harmless("a\u{1b}[31m\u{202e}b\nc"), "a\\u{1b}[31m\\u{202e}b\\nc");
        assert_eq!(harmless("μ-name"), "μ-name");
    }
}
