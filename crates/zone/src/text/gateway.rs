//! Gateways of IPSECKEY records (RFC 4025) and relays of AMTRELAY records (RFC 8777). Both are nothing, an address or a
//! name, and a number before them says which.
//!
//! Names here are never compressed (RFC 3597 §4). Data with a number above 3 have the generic text form alone.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::error::ParseError;
use super::lex::Word;
use super::line::Line;
use super::names::{self, name_at_start};

const NONE: u8 = 0;
const V4: u8 = 1;
const V6: u8 = 2;
const NAME: u8 = 3;
/// Bit of an AMTRELAY record that is set if the relay may be found without it (RFC 8777 §4.2.2).
const DISCOVERY: u8 = 0x80;
const BYTE: &str = "a number from 0 to 255";
const HOST_TYPE: &str = "0 (none), 1 (IPv4 address), 2 (IPv6 address) or 3 (name)";

/// Parses the fields of an IPSECKEY record before its key. `first` is the precedence.
pub(super) fn read<'a>(first: &Word<'a>, line: &mut Line<'a>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let precedence = first.parse(BYTE)?;
    let host_type = read_type(line)?;
    let algorithm = line.word(BYTE)?.parse(BYTE)?;
    data.extend([precedence, host_type, algorithm]);
    read_host(host_type, line, data)
}

/// Parses the fields of an AMTRELAY record. `first` is the precedence.
pub(super) fn read_relay<'a>(first: &Word<'a>, line: &mut Line<'a>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    const WHAT: &str = "the discovery bit, 0 or 1";
    let precedence = first.parse(BYTE)?;
    let word = line.word(WHAT)?;
    let discovery = match word.raw {
        b"0" => 0,
        b"1" => DISCOVERY,
        _ => return Err(word.unexpected(WHAT)),
    };
    let host_type = read_type(line)?;
    data.extend([precedence, discovery | host_type]);
    read_host(host_type, line, data)
}

fn read_type(line: &mut Line<'_>) -> Result<u8, ParseError> {
    let word = line.word(HOST_TYPE)?;
    let number = word.parse(HOST_TYPE)?;
    if number > NAME { Err(word.unexpected(HOST_TYPE)) } else { Ok(number) }
}

fn read_host(host_type: u8, line: &mut Line<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let what = match host_type {
        V4 => "an IPv4 address",
        V6 => "an IPv6 address",
        NAME => "a name",
        _ => "`.`, as the type before it is 0",
    };
    let word = line.word(what)?;
    match host_type {
        V4 => data.extend(word.parse::<Ipv4Addr>(what)?.octets()),
        V6 => data.extend(word.parse::<Ipv6Addr>(what)?.octets()),
        NAME => names::read(&word, line.origin.as_ref(), data)?,
        _ if word.raw == b"." => {}
        _ => return Err(word.unexpected(what)),
    }
    Ok(())
}

/// Returns the length of the fields of an IPSECKEY record before its key at the start of `data`.
pub(super) fn len(data: &[u8]) -> Option<usize> {
    let ([_, host_type, _], host) = data.split_first_chunk()?;
    Some(3 + len_of_host(*host_type, host)?)
}

/// Returns the length of the fields of an AMTRELAY record at the start of `data`.
pub(super) fn len_of_relay(data: &[u8]) -> Option<usize> {
    let ([_, host_type], host) = data.split_first_chunk()?;
    Some(2 + len_of_host(host_type & !DISCOVERY, host)?)
}

fn len_of_host(host_type: u8, host: &[u8]) -> Option<usize> {
    match host_type {
        NONE => Some(0),
        V4 => Some(4),
        V6 => Some(16),
        NAME => Some(name_at_start(host)?.len()),
        _ => Some(host.len()),
    }
}

/// Prints the fields of an IPSECKEY record before its key.
pub(super) fn print(data: &[u8]) -> Option<String> {
    let ([precedence, host_type, algorithm], host) = data.split_first_chunk()?;
    Some(format!("{precedence} {host_type} {algorithm} {}", print_host(*host_type, host)?))
}

/// Prints the fields of an AMTRELAY record.
pub(super) fn print_relay(data: &[u8]) -> Option<String> {
    let ([precedence, byte], host) = data.split_first_chunk()?;
    let (discovery, host_type) = (byte >> 7, byte & !DISCOVERY);
    Some(format!("{precedence} {discovery} {host_type} {}", print_host(host_type, host)?))
}

fn print_host(host_type: u8, host: &[u8]) -> Option<String> {
    match host_type {
        NONE => Some(".".to_owned()),
        V4 => Some(Ipv4Addr::from(*host.first_chunk()?).to_string()),
        V6 => Some(Ipv6Addr::from(*host.first_chunk()?).to_string()),
        NAME => Some(name_at_start(host)?.to_string()),
        _ => None,
    }
}
