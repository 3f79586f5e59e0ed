//! CRC-32 (the polynomial of IEEE 802.3) of a record, eight bytes at a time.

/// Reversed polynomial.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// `TABLES[n][byte]` is the remainder of `byte` followed by `n` zero bytes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte: u32 = 0;
    while byte < 256 {
        let (mut remainder, mut bit) = (byte, 0);
        while bit < 8 {
            remainder = if remainder & 1 == 1 { remainder >> 1 ^ POLYNOMIAL } else { remainder >> 1 };
            bit += 1;
        }
        tables[0][byte as usize] = remainder;
        byte += 1;
    }
    let mut number = 1;
    while number < 8 {
        byte = 0;
        while byte < 256 {
            let before = tables[number - 1][byte as usize];
            tables[number][byte as usize] = before >> 8 ^ tables[0][before as usize & 0xff];
            byte += 1;
        }
        number += 1;
    }
    tables
}

/// Returns the checksum of some bytes.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let mut remainder = u32::MAX;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for chunk in chunks {
        let [a, b, c, d, e, f, g, h] = *chunk;
        let [w, x, y, z] = (remainder ^ u32::from_le_bytes([a, b, c, d])).to_le_bytes();
        remainder = [z, y, x, w].into_iter().zip(4..).fold(0, |sum, (byte, number)| sum ^ at(number, byte));
        remainder ^= at(3, e) ^ at(2, f) ^ at(1, g) ^ at(0, h);
    }
    for byte in rest {
        let [low, ..] = remainder.to_le_bytes();
        remainder = remainder >> 8 ^ at(0, low ^ byte);
    }
    !remainder
}

fn at(number: usize, byte: u8) -> u32 {
    TABLES[number][usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_check_value_and_with_single_bytes() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        let bytes: Vec<u8> = (0..100_u8).map(|byte| byte.wrapping_mul(37)).collect();
        let slow = bytes.iter().fold(u32::MAX, |sum, byte| sum >> 8 ^ at(0, sum.to_le_bytes()[0] ^ byte));
        assert_eq!(crc32(&bytes), !slow);
    }
}
