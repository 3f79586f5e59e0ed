//! Octets as digits: hexadecimal, base 32 (RFC 4648 §7) and base 64 (§4).

use super::error::Error;
use super::lex::Word;

/// How octets are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Hex,
    /// The extended hex alphabet, without padding.
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

    const fn digit(self, octet: u8) -> Option<u8> {
        let digit = match (self, octet) {
            (Base::Base64, b'A'..=b'Z') => octet - b'A',
            (Base::Base64, b'a'..=b'z') => octet - b'a' + 26,
            (Base::Base64, b'0'..=b'9') => octet - b'0' + 52,
            (Base::Base64, b'+') => 62,
            (Base::Base64, b'/') => 63,
            (Base::Hex | Base::Base32, b'0'..=b'9') => octet - b'0',
            (Base::Hex, b'a'..=b'f') | (Base::Base32, b'a'..=b'v') => octet - b'a' + 10,
            (Base::Hex, b'A'..=b'F') | (Base::Base32, b'A'..=b'V') => octet - b'A' + 10,
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

    /// Octets as digits; base 64 is padded.
    pub(super) fn print(self, octets: &[u8]) -> String {
        let mut text = String::with_capacity(octets.len() * 2);
        let (mut bits, mut count) = (0u32, 0);
        let digit = |bits: u32| char::from(self.digits()[bits as usize & ((1 << self.bits()) - 1)]);
        for octet in octets {
            bits = bits << 8 | u32::from(*octet);
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
            Base::Hex => "hexadecimal digits, two for each octet",
            Base::Base32 => "base 32 digits",
            Base::Base64 => "base 64 digits",
        }
    }
}

/// Reads digits that may come in several words.
pub(super) struct Digits {
    base: Base,
    /// Bits that are no octet yet.
    bits: u32,
    count: u32,
    padded: bool,
}

impl Digits {
    pub(super) const fn new(base: Base) -> Digits {
        Digits { base, bits: 0, count: 0, padded: false }
    }

    /// Reads the digits of a word.
    pub(super) fn read(&mut self, word: &Word<'_>, data: &mut Vec<u8>) -> Result<(), Error> {
        for octet in word.raw {
            if *octet == b'=' && matches!(self.base, Base::Base64) {
                self.padded = true;
                continue;
            }
            let digit = self.base.digit(*octet).filter(|_| !self.padded);
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

    /// The digits are whole octets, with `last` the last word of them.
    pub(super) fn finish(&self, last: &Word<'_>) -> Result<(), Error> {
        let zeros = self.bits & ((1 << self.count) - 1) == 0;
        if zeros && self.count < self.base.bits() { Ok(()) } else { Err(last.unexpected(self.base.what())) }
    }
}

/// The digits of one word.
pub(super) fn read(base: Base, word: &Word<'_>, data: &mut Vec<u8>) -> Result<(), Error> {
    let mut digits = Digits::new(base);
    digits.read(word, data)?;
    digits.finish(word)
}
