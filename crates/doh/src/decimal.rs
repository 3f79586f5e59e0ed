//! Numbers in HTTP header fields.

/// Parses decimal digits. A number above the maximum counts as the maximum, as RFC 9111 §1.2.2 asks for seconds.
pub(crate) fn number(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(digits.iter().fold(0, add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_digits_alone_and_bounds_large_numbers() {
        let max = u64::MAX;
        let digits = [("0", 0), ("007", 7), (" 12\t", 12), ("18446744073709551614", max - 1)];
        let large = ["18446744073709551615", "18446744073709551616", "99999999999999999999999999"];
        for (text, expected) in digits.into_iter().chain(large.map(|text| (text, max))) {
            assert_eq!(number(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", " ", "+1", "-1", "1.5", "1 2", "0x1", "\u{661}"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }
}
