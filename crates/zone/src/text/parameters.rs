//! Service parameters of SVCB and HTTPS records (RFC 9460 §2.1, §7, §14.3.2).

use core::net::{Ipv4Addr, Ipv6Addr};

use super::base::{self, Base};
use super::error::ParseError;
use super::lex::Word;
use super::line::Line;

/// Key names (IANA "Service Parameter Keys"), indexed by number.
const KEYS: [&str; 9] =
    ["mandatory", "alpn", "no-default-alpn", "port", "ipv4hint", "ech", "ipv6hint", "dohpath", "ohttp"];
const WHAT: &str = "a service parameter, as KEY or KEY=VALUE";

/// Parses the parameters from `first` to the end of the line and writes them in ascending order of their keys.
pub(super) fn read<'a>(first: &Word<'a>, line: &mut Line<'a>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut parameters: Vec<(u16, Vec<u8>)> = Vec::new();
    line.each_from(first, |word| {
        let (key, value) = parameter(word)?;
        if parameters.iter().any(|(known, _)| *known == key) {
            return Err(word.unexpected("each key only once"));
        }
        parameters.push((key, value));
        Ok(())
    })?;
    parameters.sort_unstable();
    for (key, value) in parameters {
        data.extend(key.to_be_bytes());
        // With a longer value, the record is longer than RDATA can be, and the caller refuses it.
        data.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        data.extend(value);
    }
    Ok(())
}

fn parameter(word: &Word<'_>) -> Result<(u16, Vec<u8>), ParseError> {
    let sign = word.raw.iter().position(|byte| *byte == b'=');
    let (name, value) = word.raw.split_at(sign.unwrap_or(word.raw.len()));
    let key = key(name).ok_or_else(|| word.unexpected(WHAT))?;
    let value = value.strip_prefix(b"=").unwrap_or(value);
    let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
    let value = Word { raw: value, quoted: true, position: word.position };
    let mut bytes = Vec::new();
    self::value(key, &value, &mut bytes)?;
    if bytes.len() > usize::from(u16::MAX) {
        return Err(word.unexpected("a value of at most 65535 bytes"));
    }
    Ok((key, bytes))
}

fn key(name: &[u8]) -> Option<u16> {
    let text = core::str::from_utf8(name).ok()?;
    let known = KEYS.iter().position(|known| text.eq_ignore_ascii_case(known));
    known.and_then(|key| u16::try_from(key).ok()).or_else(|| text.strip_prefix("key")?.parse().ok())
}

/// Encodes the value of a key.
fn value(key: u16, word: &Word<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    match KEYS.get(usize::from(key)) {
        Some(&"mandatory") => {
            let mut keys = list(word, self::key, "a comma-separated list of keys")?;
            keys.sort_unstable();
            data.extend(keys.into_iter().flat_map(u16::to_be_bytes));
        }
        Some(&"alpn") => return protocols(word, data),
        Some(&("no-default-alpn" | "ohttp")) if !word.raw.is_empty() => return Err(word.unexpected("no value")),
        Some(&"port") => data.extend(word.parse::<u16>("a port from 0 to 65535")?.to_be_bytes()),
        Some(&"ipv4hint") => {
            let addresses = list(word, parsed::<Ipv4Addr>, "a comma-separated list of IPv4 addresses")?;
            data.extend(addresses.into_iter().flat_map(|address| address.octets()));
        }
        Some(&"ipv6hint") => {
            let addresses = list(word, parsed::<Ipv6Addr>, "a comma-separated list of IPv6 addresses")?;
            data.extend(addresses.into_iter().flat_map(|address| address.octets()));
        }
        Some(&"ech") => return base::read(Base::Base64, word, data),
        _ => return word.unescaped(|byte| data.push(byte)),
    }
    Ok(())
}

fn parsed<T: core::str::FromStr>(item: &[u8]) -> Option<T> {
    core::str::from_utf8(item).ok()?.parse().ok()
}

fn list<T>(word: &Word<'_>, read: impl Fn(&[u8]) -> Option<T>, what: &'static str) -> Result<Vec<T>, ParseError> {
    let items: Option<Vec<T>> = word.raw.split(|byte| *byte == b',').map(read).collect();
    items.ok_or_else(|| word.unexpected(what))
}

/// Parses a comma-separated list of protocol names. A comma in a name is written `\\,` (RFC 9460 §A.1).
fn protocols(word: &Word<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut text = Vec::new();
    word.unescaped(|byte| text.push(byte))?;
    let mut names = vec![Vec::new()];
    let mut bytes = text.into_iter();
    while let Some(byte) = bytes.next() {
        match (byte, names.last_mut()) {
            (b',', _) => names.push(Vec::new()),
            (b'\\', Some(name)) => name.extend(bytes.next()),
            (_, Some(name)) => name.push(byte),
            (_, None) => {}
        }
    }
    for name in names {
        let length = u8::try_from(name.len()).ok().filter(|length| *length > 0);
        data.push(length.ok_or_else(|| word.unexpected("a comma-separated list of protocols"))?);
        data.extend(name);
    }
    Ok(())
}

/// Returns the length of the parameters if they fill `data` and are in ascending order of their keys.
pub(super) fn well_formed(data: &[u8]) -> Option<usize> {
    let (mut rest, mut last) = (data, None);
    while let [key_high, key_low, len_high, len_low, after @ ..] = rest {
        let key = Some(u16::from_be_bytes([*key_high, *key_low]));
        if key <= last {
            return None;
        }
        last = key;
        rest = after.get(usize::from(u16::from_be_bytes([*len_high, *len_low]))..)?;
    }
    rest.is_empty().then_some(data.len())
}
