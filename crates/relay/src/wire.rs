//! Protobuf wire format (protobuf.dev/programming-guides/encoding), to be read and written without types.
//!
//! [`Fields`] also hands out the bytes of a whole field, so that a message can be copied field by field.

/// Bytes that are not valid protobuf, or not the expected message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WireError(pub(crate) &'static str);

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// Integer or boolean.
    Number(u64),
    /// String, bytes, or message.
    Bytes(&'a [u8]),
    /// Fixed-size number, which none of the known fields has.
    Fixed,
}

impl<'a> Value<'a> {
    /// Returns the content of a length-delimited field.
    pub(crate) fn bytes(self) -> Result<&'a [u8], WireError> {
        if let Value::Bytes(bytes) = self { Ok(bytes) } else { Err(WireError("expected a length-delimited field")) }
    }

    /// Returns a text.
    pub(crate) fn text(self) -> Result<&'a str, WireError> {
        core::str::from_utf8(self.bytes()?).map_err(|_| WireError("a text is not UTF-8"))
    }

    /// Returns an integer.
    pub(crate) fn number(self) -> Result<u64, WireError> {
        if let Value::Number(number) = self { Ok(number) } else { Err(WireError("expected a varint")) }
    }
}

/// Field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) number: u64,
    pub(crate) value: Value<'a>,
    /// The whole field: tag, length and value.
    pub(crate) raw: &'a [u8],
}

/// Iterator over the fields of a message. It ends after an error.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) const fn of(message: &'a [u8]) -> Fields<'a> {
        Fields(message)
    }

    fn read(&mut self) -> Result<Field<'a>, WireError> {
        const CUT: WireError = WireError("a field extends past the end of its message");
        let (tag, size) = varint(self.0)?;
        let (number, rest) = (tag >> 3, self.0.get(size..).ok_or(CUT)?);
        if number == 0 || number > NUMBER_MAX {
            return Err(WireError("a field has an invalid number"));
        }
        let (value, length) = match tag & 7 {
            0 => {
                let (value, length) = varint(rest)?;
                (Value::Number(value), length)
            }
            1 => (Value::Fixed, 8),
            5 => (Value::Fixed, 4),
            2 => {
                let (length, prefix) = varint(rest)?;
                let length = usize::try_from(length).map_err(|_| CUT)?;
                let end = prefix.checked_add(length).ok_or(CUT)?;
                (Value::Bytes(rest.get(prefix..end).ok_or(CUT)?), end)
            }
            _ => return Err(WireError("a field has an unknown type")),
        };
        let raw = self.0.get(..size + length).ok_or(CUT)?;
        self.0 = rest.get(length..).ok_or(CUT)?;
        Ok(Field { number, value, raw })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.0 = &[];
        }
        Some(read)
    }
}

/// Highest field number.
const NUMBER_MAX: u64 = (1 << 29) - 1;

/// Decodes a varint. Returns it with its size in bytes.
fn varint(bytes: &[u8]) -> Result<(u64, usize), WireError> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, at + 1));
        }
    }
    Err(WireError("a varint has no end"))
}

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Appends a length-delimited field.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_head(out, number, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends tag and length of a length-delimited field, whose content follows.
pub(crate) fn put_head(out: &mut Vec<u8>, number: u64, length: usize) {
    put_varint(out, number << 3 | 2);
    put_varint(out, length as u64);
}

/// Appends an integer field.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(out, number << 3);
    put_varint(out, value);
}

/// Size of tag and length of a length-delimited field with a number below 16.
pub(crate) const fn head_size(length: usize) -> usize {
    let mut size = 2;
    let mut rest = length >> 7;
    while rest > 0 {
        size += 1;
        rest >>= 7;
    }
    size
}

/// Decodes an entry of a map from text to text.
pub(crate) fn entry(bytes: &[u8]) -> Result<(&str, &str), WireError> {
    let (mut key, mut content) = ("", "");
    for field in Fields::of(bytes) {
        match field? {
            Field { number: 1, value, .. } => key = value.text()?,
            Field { number: 2, value, .. } => content = value.text()?,
            _ => {}
        }
    }
    Ok((key, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_out_whole_fields() {
        let mut message = Vec::new();
        put_number(&mut message, 1, 300);
        put_bytes(&mut message, 20, b"ab");
        message.extend_from_slice(b"\x1d1234");
        let found: Vec<_> = Fields::of(&message).map(Result::unwrap).collect();
        assert_eq!(found.iter().flat_map(|field| field.raw.to_vec()).collect::<Vec<_>>(), message);
        assert_eq!(found.iter().map(|field| field.number).collect::<Vec<_>>(), [1, 20, 3]);
        assert_eq!((found[0].value, found[1].value), (Value::Number(300), Value::Bytes(b"ab")));
    }

    #[test]
    fn stops_at_an_error() {
        for bytes in [
            &b"\x08"[..],
            b"\x0a\x05ab",
            b"\x0b",
            b"\x00\x00",
            b"\x09abc",
            &[0x80; 11],
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ] {
            let found: Vec<_> = Fields::of(bytes).collect();
            assert!(matches!(found[..], [Err(_)]), "{bytes:?} {found:?}");
        }
    }

    #[test]
    fn knows_the_size_of_a_head() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 1 << 21] {
            let mut out = Vec::new();
            put_head(&mut out, 15, length);
            assert_eq!(out.len(), head_size(length), "{length}");
        }
    }
}
