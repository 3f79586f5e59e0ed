//! Protobuf as it is on the wire: fields one after the other, each with its number and its type
//! (protobuf.dev/programming-guides/encoding). Nothing is copied, and nothing is looked into that nobody asks for.

use super::Wrong;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A number, or a truth value.
    Number(u64),
    /// A text, octets, or a message.
    Octets(&'a [u8]),
    /// Of a type that no field has which we read.
    Other,
}

impl<'a> Value<'a> {
    pub(super) fn octets(self) -> Result<&'a [u8], Wrong> {
        if let Value::Octets(octets) = self { Ok(octets) } else { Err(Wrong::Shape("a number stands for a text")) }
    }

    pub(super) fn text(self) -> Result<&'a str, Wrong> {
        core::str::from_utf8(self.octets()?).map_err(|_| Wrong::Syntax("a text is not UTF-8"))
    }

    pub(super) fn number(self) -> Result<u64, Wrong> {
        if let Value::Number(number) = self { Ok(number) } else { Err(Wrong::Shape("a text stands for a number")) }
    }

    /// The last field of this number in a message.
    pub(super) fn field(self, number: u64) -> Result<Option<Value<'a>>, Wrong> {
        let mut found = None;
        for field in Fields::of(self.octets()?) {
            if let (at, value) = field?
                && at == number
            {
                found = Some(value);
            }
        }
        Ok(found)
    }

    /// A port, or the code of a Status.
    pub(super) fn short(self) -> Result<u16, Wrong> {
        u16::try_from(self.number()?).map_err(|_| Wrong::Shape("a number is not within 0 and 65535"))
    }
}

/// How the octets of a field are told from those behind it; the lowest three bits of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Varint,
    /// So many octets.
    Fixed(usize),
    /// Its length stands before it.
    Delimited,
}

/// The number and the type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) number: u64,
    pub(super) wire: Wire,
}

impl Key {
    /// `None` if there is no such type (any more), or no such number.
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

/// The greatest number of a field.
const NUMBER_MAX: u64 = (1 << 29) - 1;
/// Octets of the longest number: 64 bits, seven in an octet.
const VARINT_MAX: usize = 10;

/// A number in octets of seven bits, the lowest first, and how many octets it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Varint {
    Whole(u64, usize),
    /// Its end is not there.
    Cut,
    /// It is longer than any number.
    Endless,
}

impl Varint {
    pub(super) fn read(octets: &[u8]) -> Varint {
        let mut value = 0;
        for (at, octet) in octets.iter().take(VARINT_MAX).enumerate() {
            value |= u64::from(octet & 0x7f) << (7 * at);
            if octet & 0x80 == 0 {
                return Varint::Whole(value, at + 1);
            }
        }
        if octets.len() < VARINT_MAX { Varint::Cut } else { Varint::Endless }
    }
}

/// The fields of a message, in the order in which they stand there; ends after the first that cannot be read.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) const fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// How many fields have this number, as far as they can be read.
    pub(super) fn count_of(self, number: u64) -> usize {
        self.filter(|field| field.is_ok_and(|(found, _)| found == number)).count()
    }

    #[inline]
    fn field(&mut self) -> Result<(u64, Value<'a>), Wrong> {
        let key = Key::of(self.varint()?).ok_or(Wrong::Syntax("a field has no number, or no type"))?;
        let value = match key.wire {
            Wire::Varint => Value::Number(self.varint()?),
            Wire::Fixed(octets) => self.take(octets).map(|_| Value::Other)?,
            Wire::Delimited => {
                let length = usize::try_from(self.varint()?).map_err(|_| CUT)?;
                Value::Octets(self.take(length)?)
            }
        };
        Ok((key.number, value))
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Wrong> {
        // Nearly all numbers are one octet.
        if let [octet @ 0..=0x7f, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*octet));
        }
        self.long_varint()
    }

    #[cold]
    fn long_varint(&mut self) -> Result<u64, Wrong> {
        match Varint::read(self.rest) {
            Varint::Whole(value, length) => self.take(length).map(|_| value),
            Varint::Cut => Err(CUT),
            Varint::Endless => Err(Wrong::Syntax("a number has no end")),
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(taken)
    }
}

const CUT: Wrong = Wrong::Syntax("a field is longer than what it is in");

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Wrong>;

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
    fn fields_of_every_type_are_told_apart() {
        let fields = |octets: &'static [u8]| Fields::of(octets).collect::<Vec<_>>();
        let read = |octets| fields(octets).into_iter().collect::<Result<Vec<_>, _>>();
        assert_eq!(read(b"").unwrap(), []);
        assert_eq!(read(b"\x08\x96\x01").unwrap(), [(1, Value::Number(150))]);
        assert_eq!(read(b"\x12\x02hi\x12\x00").unwrap(), [(2, Value::Octets(b"hi")), (2, Value::Octets(b""))]);
        assert_eq!(read(b"\x0912345678\x1d1234\x08\x01").unwrap()[..2], [(1, Value::Other), (3, Value::Other)]);
        assert_eq!(read(b"\xf8\xff\xff\xff\x0f\x01").unwrap(), [(NUMBER_MAX, Value::Number(1))]);
        let negative = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(read(negative).unwrap(), [(1, Value::Number(u64::MAX))]);
    }

    #[test]
    fn what_is_no_field_ends_them() {
        for octets in [
            &b"\x08"[..],                                        // no value
            b"\x80",                                             // half a key
            b"\x08\x80",                                         // half a number
            b"\x12\x03hi",                                       // longer than what is there
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",     // longer than anything
            b"\x091234567",                                      // not eight octets
            b"\x0b\x0c",                                         // a group
            b"\x0e",                                             // a type that never was
            b"\x00\x01",                                         // field 0
            b"\x80\x80\x80\x80\x10\x01",                         // field 2^29
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", // a number of eleven octets
        ] {
            let found: Vec<_> = Fields::of(octets).collect();
            assert!(matches!(found[..], [Err(Wrong::Syntax(_))]), "{octets:?} {found:?}");
        }
        let mut after = Fields::of(b"\x08\x01\x0b\x08\x02");
        assert_eq!(
            (after.next(), after.next().is_some_and(|field| field.is_err())),
            (Some(Ok((1, Value::Number(1)))), true)
        );
        assert_eq!(after.next(), None);
    }

    #[test]
    fn values_are_what_they_are() {
        assert_eq!(Value::Octets(b"a").text(), Ok("a"));
        assert!(matches!(Value::Octets(b"\xff").text(), Err(Wrong::Syntax(_))));
        assert!(matches!(Value::Number(1).text(), Err(Wrong::Shape(_))));
        assert!(matches!(Value::Octets(b"1").number(), Err(Wrong::Shape(_))));
        assert_eq!(Value::Number(65_535).short(), Ok(65_535));
        assert!(matches!(Value::Number(65_536).short(), Err(Wrong::Shape(_))));
        assert!(Value::Other.octets().is_err() && Value::Other.number().is_err());
    }
}
