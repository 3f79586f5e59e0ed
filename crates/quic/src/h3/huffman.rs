//! Huffman code of strings (RFC 7541 Appendix B), which QPACK shares with HPACK.
//!
//! The code is canonical: codes of the same length are consecutive, in the order of their symbols. The lengths
//! therefore define it completely.

use host::invariant::holds;

/// Length of the code of each symbol in bits. The last symbol ends a string and must not occur in one.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// Number of symbols: all bytes, and the end.
const SYMBOLS: usize = 257;
/// Symbol of the end.
const END: u16 = 256;
/// Length of the shortest code in bits.
const SHORTEST: usize = 5;
/// Length of the longest code in bits.
const LONGEST: usize = 30;

/// Codes of one length.
#[derive(Clone, Copy)]
struct Group {
    /// First code that is longer, aligned to the left of 32 bits.
    end: u32,
    /// First code of this length.
    first: u32,
    /// Index of its symbol in [`Table::symbols`].
    at: usize,
}

/// Decoding table.
struct Table {
    /// Groups by length.
    groups: [Group; LONGEST + 1],
    /// Symbols in the order of their codes.
    symbols: [u16; SYMBOLS],
}

static TABLE: Table = table();

#[allow(clippy::cast_possible_truncation, reason = "there are 257 symbols")]
const fn table() -> Table {
    let mut table = Table { groups: [Group { end: 0, first: 0, at: 0 }; LONGEST + 1], symbols: [0; SYMBOLS] };
    let (mut code, mut at, mut length) = (0u32, 0, SHORTEST);
    while length <= LONGEST {
        table.groups[length].first = code;
        table.groups[length].at = at;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                table.symbols[at] = symbol as u16;
                at += 1;
                code += 1;
            }
            symbol += 1;
        }
        // The last code is all ones: its successor does not fit into 32 bits.
        table.groups[length].end = if length == LONGEST { u32::MAX } else { code << (32 - length) };
        code <<= 1;
        length += 1;
    }
    assert!(at == SYMBOLS, "each symbol has a code");
    assert!(code == 1 << (LONGEST + 1), "each code has a symbol");
    table
}

/// Appends the decoded string to `output`, at most until it has `length_max` bytes. Returns `None` if the code is
/// invalid or the string too long.
pub(crate) fn decode(coded: &[u8], output: &mut Vec<u8>, length_max: usize) -> Option<()> {
    let mut input = coded.iter();
    let (mut bits, mut count) = (0u64, 0usize);
    loop {
        while count <= 32
            && let Some(byte) = input.next()
        {
            bits = bits << 8 | u64::from(*byte);
            count += 8;
        }
        let Some((symbol, length)) = next_symbol(bits, count) else {
            // The rest is padding: fewer than eight bits, all ones (RFC 7541 §5.2).
            let ones = (1u64 << count.min(8)) - 1;
            return (count < 8 && bits & ones == ones).then_some(());
        };
        let byte = u8::try_from(symbol).ok()?;
        if output.len() >= length_max {
            return None;
        }
        output.push(byte);
        holds(SHORTEST <= length && length <= count, "a code is within the bits that were read");
        count -= length;
        bits &= (1u64 << count) - 1;
    }
}

/// Decodes the first symbol of the lowest `count` bits. Returns `None` if they do not contain a whole code.
fn next_symbol(bits: u64, count: usize) -> Option<(u16, usize)> {
    let window = if count >= 32 { bits >> (count - 32) } else { bits << (32 - count) };
    let window = u32::try_from(window & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    let length = (SHORTEST..=LONGEST).find(|length| window < TABLE.groups[*length].end).unwrap_or(LONGEST);
    if length > count {
        return None;
    }
    let group = TABLE.groups[length];
    let index = group.at + ((window >> (32 - length)) - group.first) as usize;
    Some((*TABLE.symbols.get(index).unwrap_or(&END), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut output = Vec::new();
        decode(coded, &mut output, 100)?;
        Some(output)
    }

    /// Encodes with the codes of the table, padded with ones.
    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut bits: Vec<bool> = Vec::new();
        for byte in text {
            let at = TABLE.symbols.iter().position(|symbol| *symbol == u16::from(*byte)).unwrap();
            let length = usize::from(LENGTHS[usize::from(*byte)]);
            let code = TABLE.groups[length].first + u32::try_from(at - TABLE.groups[length].at).unwrap();
            bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
        }
        bits.resize(bits.len().next_multiple_of(8), true);
        bits.chunks(8).map(|byte| byte.iter().fold(0, |value, bit| value << 1 | u8::from(*bit))).collect()
    }

    #[test]
    fn decodes_the_examples_of_the_standard() {
        let examples: [(&[u8], &str); 4] = [
            (&[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff], "www.example.com"),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f], "custom-key"),
            (&[0x64, 0x02], "302"),
        ];
        for (coded, text) in examples {
            assert_eq!(decoded(coded).as_deref(), Some(text.as_bytes()));
            assert_eq!(encoded(text.as_bytes()), coded);
        }
        assert_eq!(decoded(&[]), Some(Vec::new()));
    }

    #[test]
    fn decodes_every_byte() {
        let all: Vec<u8> = (0..=255).collect();
        for part in all.chunks(50) {
            assert_eq!(decoded(&encoded(part)).as_deref(), Some(part));
        }
    }

    #[test]
    fn refuses_wrong_padding_the_end_symbol_and_long_strings() {
        // Padding with zeros, with a whole byte, and the end symbol itself.
        for coded in [&[0b0001_1000][..], &[0xff][..], &[0x64, 0x02, 0xff][..], &[0xff, 0xff, 0xff, 0xff][..]] {
            assert_eq!(decoded(coded), None, "{coded:?}");
        }
        assert_eq!(decode(&encoded(&[b'0'; 101]), &mut Vec::new(), 100), None);
    }
}
