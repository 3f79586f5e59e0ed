//! Base64url without padding (RFC 4648 §5), the encoding of the parameter `dns` (RFC 8484 §4.1.1).

/// Characters by value.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes `bytes`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..=group.len() {
            text.push(char::from(ALPHABET[bits >> (18 - 6 * at) & 0x3f]));
        }
    }
    text
}

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
    fn encodes_and_decodes_the_examples_of_the_standard_without_padding() {
        let examples =
            [("", ""), ("Zg", "f"), ("Zm8", "fo"), ("Zm9v", "foo"), ("Zm9vYg", "foob"), ("Zm9vYmFy", "foobar")];
        for (text, bytes) in examples {
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()), "{text}");
            assert_eq!(encode(bytes.as_bytes()), text);
        }
        assert_eq!(decode(b"-_-_"), Some(vec![0xfb, 0xff, 0xbf]));
        assert_eq!(encode(&[0xfb, 0xff, 0xbf]), "-_-_");
    }

    #[test]
    fn refuses_padding_other_alphabets_and_impossible_lengths() {
        for text in ["Zg==", "Zm8=", "+/+/", "Z", "Zm9vY", "Zm 9", "Zm9v\n", "Zmé"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }

    /// Decodes a group of up to four characters as RFC 4648 §5 says, through a text of binary digits.
    fn reference(text: &[u8]) -> Option<Vec<u8>> {
        let mut bits = String::new();
        for character in text {
            bits += &format!("{:06b}", ALPHABET.iter().position(|known| known == character)?);
        }
        let whole = bits.len() / 8 * 8;
        // One character alone has too few bits for a byte.
        let is_possible = bits.len() - whole < 6;
        is_possible.then(|| (0..whole).step_by(8).map(|at| u8::from_str_radix(&bits[at..at + 8], 2).unwrap()).collect())
    }

    #[test]
    fn all_short_texts_are_decoded_as_the_standard_says() {
        // The ends of each range of the alphabet, and the characters beside them.
        let alphabet = b"AZ@[az`{09/:-,._^=+ \x80\xff";
        let mut decodable = 0;
        for length in 0..=4 {
            for number in 0..alphabet.len().pow(length) {
                let at = |place| alphabet[number / alphabet.len().pow(place) % alphabet.len()];
                let text: Vec<u8> = (0..length).map(at).collect();
                let decoded = decode(&text);
                assert_eq!(decoded, reference(&text), "{text:?}");
                decodable += usize::from(decoded.is_some());
            }
        }
        assert_eq!(decodable, 1 + 8 * 8 + 8 * 8 * 8 + 8 * 8 * 8 * 8);
    }

    #[test]
    fn all_bytes_are_encoded_so_that_they_are_decoded_again() {
        for number in 0..=u16::MAX {
            let [first, second] = number.to_be_bytes();
            for bytes in [&[first][..], &[first, second], &[0, first, second], &[second, 0xff, first, second]] {
                let text = encode(bytes);
                assert_eq!(text.len(), (bytes.len() * 8).div_ceil(6));
                assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes), "{text}");
            }
        }
    }
}
