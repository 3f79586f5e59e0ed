//! Decoder for base64url without padding (RFC 4648 §5), the encoding of the parameter `dns` (RFC 8484 §4.1.1).

/// Decodes `text`. Returns `None` for padding, for characters outside the alphabet and for impossible lengths. Unused
/// bits of the last character are ignored, as in CoreDNS.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() % 4 == 1 {
        return None;
    }
    let mut decoded = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0u32, 0);
    for &character in text {
        bits = bits << 6 | u32::from(value(character)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            decoded.push((bits >> count & 0xff) as u8);
        }
    }
    Some(decoded)
}

const fn value(character: u8) -> Option<u8> {
    match character {
        b'A'..=b'Z' => Some(character - b'A'),
        b'a'..=b'z' => Some(character - b'a' + 26),
        b'0'..=b'9' => Some(character - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_the_examples_of_the_standard_without_padding() {
        let examples =
            [("", ""), ("Zg", "f"), ("Zm8", "fo"), ("Zm9v", "foo"), ("Zm9vYg", "foob"), ("Zm9vYmFy", "foobar")];
        for (text, bytes) in examples {
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        assert_eq!(decode(b"-_-_"), Some(vec![0xfb, 0xff, 0xbf]));
    }

    #[test]
    fn refuses_padding_other_alphabets_and_impossible_lengths() {
        for text in ["Zg==", "Zm8=", "+/+/", "Z", "Zm9vY", "Zm 9", "Zm9v\n", "Zmé"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
