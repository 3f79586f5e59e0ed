//! Encodings of binary fields: hexadecimal, base32hex (RFC 4648 §7) and base64 (§4).

use super::error::ParseError;
use super::lex::Word;

/// Encoding of binary data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Hex,
    /// Extended hex alphabet (base32hex), without padding.
    Base32,
    Base64,
}

impl Base {
    const fn bits(self) -> u32 {
        match self {
            Base::Hex => 4,
            Base::Base32 => 5,
            Base::Base64 => 6,
        }
    }

    const fn digit(self, byte: u8) -> Option<u8> {
        let digit = match (self, byte) {
            (Base::Base64, b'A'..=b'Z') => byte - b'A',
            (Base::Base64, b'a'..=b'z') => byte - b'a' + 26,
            (Base::Base64, b'0'..=b'9') => byte - b'0' + 52,
            (Base::Base64, b'+') => 62,
            (Base::Base64, b'/') => 63,
            (Base::Hex | Base::Base32, b'0'..=b'9') => byte - b'0',
            (Base::Hex, b'a'..=b'f') | (Base::Base32, b'a'..=b'v') => byte - b'a' + 10,
            (Base::Hex, b'A'..=b'F') | (Base::Base32, b'A'..=b'V') => byte - b'A' + 10,
            _ => return None,
        };
        Some(digit)
    }

    const fn digits(self) -> &'static [u8] {
        match self {
            Base::Hex => b"0123456789abcdef",
            Base::Base32 => b"0123456789abcdefghijklmnopqrstuv",
            Base::Base64 => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        }
    }

    /// Encodes bytes. Pads base64.
    pub(super) fn print(self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len() * 2);
        let (mut bits, mut count) = (0u32, 0);
        let digit = |bits: u32| char::from(self.digits()[bits as usize & ((1 << self.bits()) - 1)]);
        for byte in bytes {
            bits = bits << 8 | u32::from(*byte);
            count += 8;
            while count >= self.bits() {
                count -= self.bits();
                text.push(digit(bits >> count));
            }
        }
        if count > 0 {
            text.push(digit(bits << (self.bits() - count)));
        }
        while matches!(self, Base::Base64) && !text.len().is_multiple_of(4) {
            text.push('=');
        }
        text
    }

    const fn what(self) -> &'static str {
        match self {
            Base::Hex => "hexadecimal digits, two per byte",
            Base::Base32 => "base32 digits",
            Base::Base64 => "base64 digits",
        }
    }
}

/// Decoder for digits that may be spread over several words.
pub(super) struct Digits {
    base: Base,
    /// Bits that do not yet form a complete byte.
    bits: u32,
    count: u32,
    padded: bool,
}

impl Digits {
    pub(super) const fn new(base: Base) -> Digits {
        Digits { base, bits: 0, count: 0, padded: false }
    }

    /// Decodes the digits of a word.
    pub(super) fn read(&mut self, word: &Word<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
        for byte in word.raw {
            if *byte == b'=' && matches!(self.base, Base::Base64) {
                self.padded = true;
                continue;
            }
            let digit = self.base.digit(*byte).filter(|_| !self.padded);
            let digit = digit.ok_or_else(|| word.unexpected(self.base.what()))?;
            self.bits = self.bits << self.base.bits() | u32::from(digit);
            self.count += self.base.bits();
            if self.count >= 8 {
                self.count -= 8;
                data.push((self.bits >> self.count & 0xff) as u8);
            }
        }
        Ok(())
    }

    /// Checks that the digits form whole bytes. `last` is the last word, for the error.
    pub(super) fn finish(&self, last: &Word<'_>) -> Result<(), ParseError> {
        let zeros = self.bits & ((1 << self.count) - 1) == 0;
        if zeros && self.count < self.base.bits() { Ok(()) } else { Err(last.unexpected(self.base.what())) }
    }
}

/// Decodes the digits of a single word.
pub(super) fn read(base: Base, word: &Word<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut digits = Digits::new(base);
    digits.read(word, data)?;
    digits.finish(word)
}
