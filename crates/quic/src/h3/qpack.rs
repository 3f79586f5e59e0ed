//! Header sections (RFC 9204 §4.5), with the static table only: the server announces a dynamic table of 0 bytes, so a
//! section never refers to one.

use host::invariant::holds;

use super::huffman;
use super::static_table::ENTRIES;

/// Memory that the standard counts for each field besides its name and value (RFC 9114 §4.2.2).
const FIELD_COST: usize = 32;

/// Failure to decode a header section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SectionError {
    /// The section is invalid, or needs the dynamic table.
    #[error("the header section is invalid")]
    Invalid,
    /// The fields are longer than allowed.
    #[error("the header section is too long")]
    TooLong,
}

/// Decodes a header section and passes each field to `take`.
pub(crate) fn decode(section: &[u8], size_max: usize, mut take: impl FnMut(&[u8], &[u8])) -> Result<(), SectionError> {
    holds(size_max <= INTEGER_MAX, "a string that is longer is no integer");
    let mut input = section;
    // The required insert count must be 0; the base then has no meaning.
    if integer(&mut input, 8)? != 0 {
        return Err(SectionError::Invalid);
    }
    integer(&mut input, 7)?;
    let (mut name, mut value) = (Vec::new(), Vec::new());
    let mut left = size_max;
    while !input.is_empty() {
        let (known_name, known_value) = field(&mut input, &mut name, &mut value, left)?;
        let (name, value) = (known_name.unwrap_or(&name), known_value.unwrap_or(&value));
        left = left.checked_sub(name.len() + value.len() + FIELD_COST).ok_or(SectionError::TooLong)?;
        take(name, value);
    }
    Ok(())
}

/// Name and value, where they come from the static table.
type Known = (Option<&'static [u8]>, Option<&'static [u8]>);

/// Reads one field line. A part that is not in the static table is written to `name` or `value`.
fn field(input: &mut &[u8], name: &mut Vec<u8>, value: &mut Vec<u8>, length_max: usize) -> Result<Known, SectionError> {
    let first = *input.first().ok_or(SectionError::Invalid)?;
    match first {
        // Indexed field line, static.
        0xc0..=0xff => {
            let (name, value) = entry(integer(input, 6)?)?;
            Ok((Some(name), Some(value)))
        }
        // Literal field line with a name from the static table.
        0x50..=0x5f | 0x70..=0x7f => {
            let (name, _) = entry(integer(input, 4)?)?;
            string(input, 7, value, length_max)?;
            Ok((Some(name), None))
        }
        // Literal field line with a literal name.
        0x20..=0x3f => {
            string(input, 3, name, length_max)?;
            string(input, 7, value, length_max)?;
            Ok((None, None))
        }
        // All others refer to the dynamic table.
        _ => Err(SectionError::Invalid),
    }
}

fn entry(index: usize) -> Result<(&'static [u8], &'static [u8]), SectionError> {
    let (name, value) = ENTRIES.get(index).ok_or(SectionError::Invalid)?;
    Ok((name.as_bytes(), value.as_bytes()))
}

/// Reads a string whose length has this many bits in the first byte, below the bit for Huffman coding.
fn string(input: &mut &[u8], bits: u32, output: &mut Vec<u8>, length_max: usize) -> Result<(), SectionError> {
    let first = *input.first().ok_or(SectionError::Invalid)?;
    let is_coded = first >> bits & 1 == 1;
    let length = integer(input, bits)?;
    let (coded, rest) = input.split_at_checked(length).ok_or(SectionError::Invalid)?;
    *input = rest;
    output.clear();
    if is_coded {
        // A string that is too long is reported as such, not as invalid.
        if coded.len() > length_max {
            return Err(SectionError::TooLong);
        }
        huffman::decode(coded, output, length_max).ok_or(SectionError::Invalid)
    } else if coded.len() > length_max {
        Err(SectionError::TooLong)
    } else {
        output.extend_from_slice(coded);
        Ok(())
    }
}

/// Largest integer that a header section needs. It keeps the sum below from overflowing.
const INTEGER_MAX: usize = 1 << 24;

/// Reads an integer whose first part has this many bits (RFC 7541 §5.1).
fn integer(input: &mut &[u8], bits: u32) -> Result<usize, SectionError> {
    let (first, mut rest) = input.split_first().ok_or(SectionError::Invalid)?;
    let mask = (1usize << bits) - 1;
    let mut value = usize::from(*first) & mask;
    if value == mask {
        let mut shift = 0;
        loop {
            let (byte, after) = rest.split_first().ok_or(SectionError::Invalid)?;
            rest = after;
            if shift > 21 {
                return Err(SectionError::Invalid);
            }
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *input = rest;
    if value > INTEGER_MAX { Err(SectionError::Invalid) } else { Ok(value) }
}

/// Appends the prefix of a header section that does not use the dynamic table.
pub(crate) fn put_prefix(output: &mut Vec<u8>) {
    output.extend_from_slice(&[0, 0]);
}

/// Appends a field of the static table.
pub(crate) fn put_indexed(output: &mut Vec<u8>, index: usize) {
    holds(index < ENTRIES.len(), "a field is in the static table");
    put_integer(output, 0xc0, 6, index);
}

/// Appends a field whose name is in the static table.
pub(crate) fn put_literal(output: &mut Vec<u8>, name_index: usize, value: &[u8]) {
    holds(name_index < ENTRIES.len(), "a name is in the static table");
    put_integer(output, 0x50, 4, name_index);
    put_integer(output, 0, 7, value.len());
    output.extend_from_slice(value);
}

/// Appends a field whose name is not in the static table.
pub(crate) fn put_named(output: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    put_integer(output, 0x20, 3, name.len());
    output.extend_from_slice(name);
    put_integer(output, 0, 7, value.len());
    output.extend_from_slice(value);
}

/// Appends an integer whose first part has this many bits, below those of `mark`.
fn put_integer(output: &mut Vec<u8>, mark: u8, bits: u32, value: usize) {
    let mask = (1usize << bits) - 1;
    holds(usize::from(mark) & mask == 0, "the mark is above the bits of the integer");
    holds(value <= INTEGER_MAX, "an integer is one that can be read");
    let low = |value: usize| value.to_le_bytes()[0];
    if value < mask {
        return output.push(mark | low(value));
    }
    output.push(mark | low(mask));
    let mut rest = value - mask;
    while rest >= 0x80 {
        output.push(low(rest & 0x7f) | 0x80);
        rest >>= 7;
    }
    output.push(low(rest));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(section: &[u8]) -> Result<Vec<(String, String)>, SectionError> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut fields = Vec::new();
        decode(section, 16 << 10, |name, value| fields.push((text(name), text(value))))?;
        Ok(fields)
    }

    fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn decodes_the_example_of_the_standard() {
        // RFC 9204 appendix B.1: literal field line with name reference.
        let section = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(decoded(section), Ok(pairs(&[(":path", "/index.html")])));
    }

    #[test]
    fn decodes_what_it_encodes() {
        let mut section = Vec::new();
        put_prefix(&mut section);
        put_indexed(&mut section, 17);
        put_indexed(&mut section, 98);
        put_literal(&mut section, 95, &[b'x'; 300]);
        put_named(&mut section, b"a-long-name", b"");
        let long = "x".repeat(300);
        let expected =
            [(":method", "GET"), ("x-frame-options", "sameorigin"), ("user-agent", &long), ("a-long-name", "")];
        assert_eq!(decoded(&section), Ok(pairs(&expected)));
    }

    #[test]
    fn refuses_references_to_the_dynamic_table() {
        for section in
            [&[1, 0][..], &[0, 0, 0x80], &[0, 0, 0x10], &[0, 0, 0x40, 0], &[0, 0, 0x00, 0], &[0, 0, 0xff, 100]]
        {
            assert_eq!(decoded(section), Err(SectionError::Invalid), "{section:?}");
        }
    }

    #[test]
    fn refuses_sections_that_are_cut_or_too_long() {
        for section in
            [&[][..], &[0], &[0, 0, 0x51], &[0, 0, 0x51, 5, b'x'], &[0, 0, 0x27, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]]
        {
            assert_eq!(decoded(section), Err(SectionError::Invalid), "{section:?}");
        }
        let mut section = vec![0, 0];
        (0..400).for_each(|_| put_indexed(&mut section, 17));
        assert_eq!(decoded(&section), Err(SectionError::TooLong));
        let mut section = vec![0, 0];
        put_literal(&mut section, 95, &[b'x'; 17 << 10]);
        assert_eq!(decoded(&section), Err(SectionError::TooLong));
    }
}
