//! Host identities of HIP records (RFC 8005 §5), such as `2 200100107B1A74DF365639CC39F1D578 AwEAAbdx`: algorithm,
//! host identity tag in hexadecimal digits, and public key in base64, each of them one word.

use super::base::{self, Base};
use super::error::ParseError;
use super::lex::Word;
use super::line::Line;

/// Length of the fields before the tag: length of the tag, algorithm, length of the key.
const HEAD_LEN: usize = 4;

/// Parses an identity. `first` is the algorithm.
pub(super) fn read<'a>(first: &Word<'a>, line: &mut Line<'a>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let algorithm = first.parse("a number from 0 to 255")?;
    let tag = line.word("a host identity tag in hexadecimal digits")?;
    let key = line.word("a public key in base64")?;
    let head = data.len();
    data.extend([0, algorithm, 0, 0]);
    base::read(Base::Hex, &tag, data)?;
    let tag_len = data.len() - head - HEAD_LEN;
    data[head] = u8::try_from(tag_len).map_err(|_| tag.unexpected("a tag of at most 255 bytes"))?;
    base::read(Base::Base64, &key, data)?;
    let key_len = data.len() - head - HEAD_LEN - tag_len;
    let key_len = u16::try_from(key_len).map_err(|_| key.unexpected("a key of at most 65535 bytes"))?;
    data[head + 2..head + HEAD_LEN].copy_from_slice(&key_len.to_be_bytes());
    Ok(())
}

/// Returns the length of an identity at the start of `data`.
pub(super) fn len(data: &[u8]) -> Option<usize> {
    let ([tag_len, _, key_len @ ..], _) = data.split_first_chunk::<HEAD_LEN>()?;
    Some(HEAD_LEN + usize::from(*tag_len) + usize::from(u16::from_be_bytes(*key_len)))
}

/// Prints an identity. Returns `None` if a part is empty, because a word cannot be.
pub(super) fn print(data: &[u8]) -> Option<String> {
    let ([tag_len, algorithm, _, _], rest) = data.split_first_chunk()?;
    let (tag, key) = rest.split_at_checked(usize::from(*tag_len))?;
    let is_printable = !tag.is_empty() && !key.is_empty();
    is_printable.then(|| format!("{algorithm} {} {}", Base::Hex.print(tag), Base::Base64.print(key)))
}
