//! Minimal Protocol Buffers encoder for the messages of *dnstap* and the profiles of *pprof*. Every function appends to
//! a byte buffer.

/// Wire type of varints.
const VARINT: u32 = 0;
/// Wire type of length-delimited bytes.
const DELIMITED: u32 = 2;
/// Wire type of 32-bit little-endian integers.
const FIXED: u32 = 5;

/// Appends an integer as a varint field.
pub(crate) fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field << 3 | VARINT));
    varint(out, value);
}

/// Appends an integer as a fixed 32-bit field.
pub(crate) fn fixed(out: &mut Vec<u8>, field: u32, value: u32) {
    varint(out, u64::from(field << 3 | FIXED));
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends bytes as a length-delimited field.
pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    varint(out, u64::from(field << 3 | DELIMITED));
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends the bytes that `write` produces as one field. The length is appended after them and rotated to the front, so
/// that no second buffer is needed.
pub(crate) fn written(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    varint(out, u64::from(field << 3 | DELIMITED));
    let start = out.len();
    write(out);
    let end = out.len();
    varint(out, (end - start) as u64);
    let moved = out.len() - end;
    out[start..].rotate_right(moved);
}

/// Appends a varint without a field tag, as in a packed list.
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of the encoding's documentation, and a field whose length takes two bytes.
    #[test]
    fn encodes_the_examples_of_the_specification() {
        let write = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            out
        };
        assert_eq!(write(&|out| number(out, 1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(write(&|out| bytes(out, 2, b"testing")), b"\x12\x07testing");
        assert_eq!(write(&|out| written(out, 3, |inner| number(inner, 1, 150))), [0x1a, 3, 0x08, 0x96, 0x01]);
        assert_eq!(write(&|out| fixed(out, 9, 0x0102_0304)), [0x4d, 4, 3, 2, 1]);
        let long = write(&|out| written(out, 14, |inner| inner.extend_from_slice(&[7; 300])));
        assert_eq!(long, [&[0x72, 0xac, 0x02][..], &[7; 300]].concat());
    }
}
