//! Protobuf wire format (protobuf.dev/programming-guides/encoding): a sequence of fields, each with number and wire
//! type. Values are borrowed, and messages in them are only decoded on request.

use super::ProtobufError;

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// Integer or boolean.
    Number(u64),
    /// String, bytes, or message.
    Bytes(&'a [u8]),
    /// Fixed-size number, which none of the fields that we read has.
    Other,
}

impl<'a> Value<'a> {
    pub(super) fn as_bytes(self) -> Result<&'a [u8], ProtobufError> {
        if let Value::Bytes(bytes) = self {
            Ok(bytes)
        } else {
            Err(ProtobufError::Shape("expected a length-delimited field, found a varint"))
        }
    }

    pub(super) fn text(self) -> Result<&'a str, ProtobufError> {
        core::str::from_utf8(self.as_bytes()?).map_err(|_| ProtobufError::Syntax("a text is not UTF-8"))
    }

    pub(super) fn number(self) -> Result<u64, ProtobufError> {
        if let Value::Number(number) = self {
            Ok(number)
        } else {
            Err(ProtobufError::Shape("expected a varint, found a length-delimited field"))
        }
    }

    /// Returns the last field with this number in a message.
    pub(super) fn field(self, number: u64) -> Result<Option<Value<'a>>, ProtobufError> {
        let mut found = None;
        for field in Fields::of(self.as_bytes()?) {
            if let (at, value) = field?
                && at == number
            {
                found = Some(value);
            }
        }
        Ok(found)
    }

    /// Returns the value as a port or status code.
    pub(super) fn short(self) -> Result<u16, ProtobufError> {
        u16::try_from(self.number()?).map_err(|_| ProtobufError::Shape("a number is not within 0 and 65535"))
    }
}

/// Wire type of a field: how the length of its value is encoded. It is in the lowest three bits of the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Varint,
    /// Value of this many bytes.
    Fixed(usize),
    /// Value with a length prefix.
    Delimited,
}

/// Tag of a field: number and wire type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) number: u64,
    pub(super) wire: Wire,
}

impl Key {
    /// Decodes a tag. Returns `None` for wire types that are unknown or removed (groups), and for invalid field
    /// numbers.
    pub(super) const fn of(varint: u64) -> Option<Key> {
        let wire = match varint & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed(8),
            2 => Wire::Delimited,
            5 => Wire::Fixed(4),
            _ => return None,
        };
        let number = varint >> 3;
        if number == 0 || number > NUMBER_MAX { None } else { Some(Key { number, wire }) }
    }
}

/// Highest field number.
const NUMBER_MAX: u64 = (1 << 29) - 1;
/// Maximum size of a varint in bytes: 64 bits, 7 in each byte.
const VARINT_MAX: usize = 10;

/// Varint with its size in bytes: 7 bits in each byte, the lowest bits first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Varint {
    Whole(u64, usize),
    /// More bytes are needed.
    Cut,
    /// Longer than 64 bits allow.
    Endless,
}

impl Varint {
    pub(super) fn read(bytes: &[u8]) -> Varint {
        let mut value = 0;
        for (at, byte) in bytes.iter().take(VARINT_MAX).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Varint::Whole(value, at + 1);
            }
        }
        if bytes.len() < VARINT_MAX { Varint::Cut } else { Varint::Endless }
    }
}

/// Iterator over the fields of a message, in their order. It ends after the first error.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) const fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// Returns the number of fields with this number, up to the first error.
    pub(super) fn count_of(self, number: u64) -> usize {
        self.filter(|field| field.is_ok_and(|(found, _)| found == number)).count()
    }

    #[inline]
    fn field(&mut self) -> Result<(u64, Value<'a>), ProtobufError> {
        let key = Key::of(self.varint()?).ok_or(ProtobufError::Syntax("a field has no number, or no type"))?;
        let value = match key.wire {
            Wire::Varint => Value::Number(self.varint()?),
            Wire::Fixed(bytes) => self.take(bytes).map(|_| Value::Other)?,
            Wire::Delimited => {
                let length = usize::try_from(self.varint()?).map_err(|_| CUT)?;
                Value::Bytes(self.take(length)?)
            }
        };
        Ok((key.number, value))
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, ProtobufError> {
        // Nearly all varints are one byte.
        if let [byte @ 0..=0x7f, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        self.long_varint()
    }

    #[cold]
    fn long_varint(&mut self) -> Result<u64, ProtobufError> {
        match Varint::read(self.rest) {
            Varint::Whole(value, length) => self.take(length).map(|_| value),
            Varint::Cut => Err(CUT),
            Varint::Endless => Err(ProtobufError::Syntax("varint is longer than 10 bytes")),
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(taken)
    }
}

const CUT: ProtobufError = ProtobufError::Syntax("field extends past the end of its message");

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), ProtobufError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_fields_of_every_wire_type() {
        let fields = |bytes: &'static [u8]| Fields::of(bytes).collect::<Vec<_>>();
        let read = |bytes| fields(bytes).into_iter().collect::<Result<Vec<_>, _>>();
        assert_eq!(read(b"").unwrap(), []);
        assert_eq!(read(b"\x08\x96\x01").unwrap(), [(1, Value::Number(150))]);
        assert_eq!(read(b"\x12\x02hi\x12\x00").unwrap(), [(2, Value::Bytes(b"hi")), (2, Value::Bytes(b""))]);
        assert_eq!(read(b"\x0912345678\x1d1234\x08\x01").unwrap()[..2], [(1, Value::Other), (3, Value::Other)]);
        assert_eq!(read(b"\xf8\xff\xff\xff\x0f\x01").unwrap(), [(NUMBER_MAX, Value::Number(1))]);
        let negative = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(read(negative).unwrap(), [(1, Value::Number(u64::MAX))]);
    }

    #[test]
    fn ends_after_an_invalid_field() {
        for bytes in [
            &b"\x08"[..],                                        // no value
            b"\x80",                                             // half a tag
            b"\x08\x80",                                         // half a number
            b"\x12\x03hi",                                       // longer than the rest
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",     // longer than anything
            b"\x091234567",                                      // not eight bytes
            b"\x0b\x0c",                                         // a group
            b"\x0e",                                             // an undefined type
            b"\x00\x01",                                         // field 0
            b"\x80\x80\x80\x80\x10\x01",                         // field 2^29
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", // a number of eleven bytes
        ] {
            let found: Vec<_> = Fields::of(bytes).collect();
            assert!(matches!(found[..], [Err(ProtobufError::Syntax(_))]), "{bytes:?} {found:?}");
        }
        let mut after = Fields::of(b"\x08\x01\x0b\x08\x02");
        assert_eq!(
            (after.next(), after.next().is_some_and(|field| field.is_err())),
            (Some(Ok((1, Value::Number(1)))), true)
        );
        assert_eq!(after.next(), None);
    }

    #[test]
    fn refuses_values_of_another_type() {
        assert_eq!(Value::Bytes(b"a").text(), Ok("a"));
        assert!(matches!(Value::Bytes(b"\xff").text(), Err(ProtobufError::Syntax(_))));
        assert!(matches!(Value::Number(1).text(), Err(ProtobufError::Shape(_))));
        assert!(matches!(Value::Bytes(b"1").number(), Err(ProtobufError::Shape(_))));
        assert_eq!(Value::Number(65_535).short(), Ok(65_535));
        assert!(matches!(Value::Number(65_536).short(), Err(ProtobufError::Shape(_))));
        assert!(Value::Other.as_bytes().is_err() && Value::Other.number().is_err());
    }
}
