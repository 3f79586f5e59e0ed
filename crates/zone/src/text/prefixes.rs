//! Address prefixes of APL records (RFC 3123 §4), such as `1:192.168.32.0/21 !1:192.168.38.0/28`.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::error::ParseError;
use super::lex::Word;
use super::line::Line;

pub(super) const WHAT: &str =
    "an address prefix as `[!]1:IPV4/LENGTH` or `[!]2:IPV6/LENGTH`, with zeros after the prefix";
const IPV4: u16 = 1;
const IPV6: u16 = 2;
/// Bit of the length byte that makes an item an exception.
const NEGATION: u8 = 0x80;

/// Parses the prefixes from `first` to the end of the line.
pub(super) fn read<'a>(first: &Word<'a>, line: &mut Line<'a>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    line.each_from(first, |word| word.ascii().and_then(|text| write(text, data)).ok_or_else(|| word.unexpected(WHAT)))
}

/// Encodes a prefix, without the zero bytes at the end of its address.
fn write(text: &str, data: &mut Vec<u8>) -> Option<()> {
    let (negation, text) = text.strip_prefix('!').map_or((0, text), |text| (NEGATION, text));
    let (family, prefix) = text.split_once(':')?;
    let (address, length) = prefix.split_once('/')?;
    let family = number(family)?;
    let address = match family {
        IPV4 => address.parse::<Ipv4Addr>().ok()?.octets().to_vec(),
        IPV6 => address.parse::<Ipv6Addr>().ok()?.octets().to_vec(),
        _ => return None,
    };
    let length = u8::try_from(number(length)?).ok().filter(|length| usize::from(*length) <= address.len() * 8)?;
    if !is_zero_after(&address, usize::from(length)) {
        return None;
    }
    let used = address.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    data.extend(family.to_be_bytes());
    data.extend([length, negation | u8::try_from(used).ok()?]);
    data.extend(&address[..used]);
    Some(())
}

/// Parses a number without a sign, which Rust would accept.
fn number(text: &str) -> Option<u16> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns true if all bits of `address` after the first `length` are zero.
fn is_zero_after(address: &[u8], length: usize) -> bool {
    address.iter().enumerate().all(|(at, byte)| {
        let kept = length.saturating_sub(at * 8).min(8);
        u32::from(*byte) << kept & 0xff == 0
    })
}

/// Returns the length of the prefixes if they fill `data`. Their family and address may be anything.
pub(super) fn well_formed(data: &[u8]) -> Option<usize> {
    let mut rest = data;
    while !rest.is_empty() {
        (_, rest) = split_item(rest)?;
    }
    Some(data.len())
}

/// Prints well-formed prefixes. Returns `None` if one is not as [`write`] writes it.
pub(super) fn print(data: &[u8]) -> Option<String> {
    let (mut rest, mut words) = (data, Vec::new());
    while !rest.is_empty() {
        let (item, after) = split_item(rest)?;
        let word = print_item(item)?;
        let mut again = Vec::new();
        write(&word, &mut again).filter(|()| again == item)?;
        words.push(word);
        rest = after;
    }
    Some(words.join(" "))
}

fn print_item(item: &[u8]) -> Option<String> {
    let ([high, low, length, byte], used) = item.split_first_chunk()?;
    let sign = if byte & NEGATION == 0 { "" } else { "!" };
    let address = match u16::from_be_bytes([*high, *low]) {
        IPV4 => Ipv4Addr::from(padded::<4>(used)?).to_string(),
        IPV6 => Ipv6Addr::from(padded::<16>(used)?).to_string(),
        _ => return None,
    };
    Some(format!("{sign}{low}:{address}/{length}"))
}

fn padded<const LEN: usize>(used: &[u8]) -> Option<[u8; LEN]> {
    let mut address = [0; LEN];
    address.get_mut(..used.len())?.copy_from_slice(used);
    Some(address)
}

/// Splits `data` after its first item.
fn split_item(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = data.get(3)? & !NEGATION;
    data.split_at_checked(4 + usize::from(length))
}
