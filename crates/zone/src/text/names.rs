//! Names in RDATA: in wire form and never compressed.

use wire::{Name, NameRef};

use super::error::ParseError;
use super::lex::Word;

/// Parses a name. One without a final dot is relative to `origin`.
pub(super) fn read(word: &Word<'_>, origin: NameRef<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut name = Name::root();
    word.name(origin, &mut name)?;
    data.extend_from_slice(name.as_bytes());
    Ok(())
}

/// Returns the length of the names if they fill `data`.
pub(super) fn well_formed(data: &[u8]) -> Option<usize> {
    let mut rest = data;
    while !rest.is_empty() {
        rest = rest.get(name_at_start(rest)?.len()..)?;
    }
    Some(data.len())
}

/// Returns the uncompressed name at the start of `data`.
pub(crate) fn name_at_start(data: &[u8]) -> Option<NameRef<'_>> {
    let mut end = 0;
    loop {
        let length = *data.get(end)?;
        end += 1 + usize::from(length);
        if length == 0 {
            return NameRef::from_bytes(data.get(..end)?).ok();
        }
    }
}
