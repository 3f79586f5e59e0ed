//! Reverse names: conversion between addresses and names below in-addr.arpa (RFC 1035 §3.5) or ip6.arpa
//! (RFC 3596 §2.5).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{Name, NameRef};

/// Returns the owner name of an address's PTR records.
#[must_use]
pub fn reverse_name(address: IpAddr) -> Name {
    let mut name = Name::root();
    // The longest of these names has 74 bytes, so no push can fail.
    let mut push = |label: &[u8]| {
        let _ = name.push_label(label);
    };
    match address {
        IpAddr::V4(v4) => {
            for byte in v4.octets().iter().rev() {
                let mut text = [0; 3];
                push(decimal(*byte, &mut text));
            }
            push(b"in-addr");
        }
        IpAddr::V6(v6) => {
            for byte in v6.octets().iter().rev() {
                push(&[HEX[usize::from(byte & 0xf)]]);
                push(&[HEX[usize::from(byte >> 4)]]);
            }
            push(b"ip6");
        }
    }
    push(b"arpa");
    name
}

/// Returns the address of a full reverse name, or `None` for any other name.
#[must_use]
pub fn address_of(name: NameRef<'_>) -> Option<IpAddr> {
    let mut labels = name.labels();
    match name.labels().count() {
        6 => {
            let mut bytes = [0; 4];
            for byte in bytes.iter_mut().rev() {
                *byte = decimal_value(labels.next()?)?;
            }
            ends_in(labels, b"in-addr").then(|| Ipv4Addr::from(bytes).into())
        }
        34 => {
            let mut bytes = [0; 16];
            for byte in bytes.iter_mut().rev() {
                *byte = nibble(labels.next()?)? | nibble(labels.next()?)? << 4;
            }
            ends_in(labels, b"ip6").then(|| Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// Returns true if `name` is a proper suffix of full reverse names, but not `in-addr.arpa` or `ip6.arpa` itself.
#[must_use]
pub fn is_above_addresses(name: NameRef<'_>) -> bool {
    let Some(above) = name.labels().count().checked_sub(2) else { return false };
    let (own, tree) = (|| name.labels().take(above), || name.labels().skip(above));
    match above {
        1..4 if ends_in(tree(), b"in-addr") => own().all(|label| decimal_value(label).is_some()),
        1..32 if ends_in(tree(), b"ip6") => own().all(|label| nibble(label).is_some()),
        _ => false,
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn ends_in<'n>(mut labels: impl Iterator<Item = &'n [u8]>, tree: &[u8]) -> bool {
    labels.next().is_some_and(|label| label.eq_ignore_ascii_case(tree))
        && labels.next().is_some_and(|label| label.eq_ignore_ascii_case(b"arpa"))
}

fn decimal(byte: u8, text: &mut [u8; 3]) -> &[u8] {
    *text = [b'0' + byte / 100, b'0' + byte / 10 % 10, b'0' + byte % 10];
    match byte {
        100.. => &text[..],
        10.. => &text[1..],
        _ => &text[2..],
    }
}

/// Parses one label of an in-addr.arpa name: a decimal number up to 255 without leading zeros.
fn decimal_value(label: &[u8]) -> Option<u8> {
    if label.len() > 1 && label[0] == b'0' {
        return None;
    }
    core::str::from_utf8(label).ok().filter(|text| !text.starts_with('+'))?.parse().ok()
}

fn nibble(label: &[u8]) -> Option<u8> {
    match label {
        [digit @ b'0'..=b'9'] => Some(digit - b'0'),
        [letter @ (b'a'..=b'f' | b'A'..=b'F')] => Some((letter | 0x20) - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_addresses() {
        for text in ["10.96.0.1", "0.0.0.0", "255.9.10.100", "fd00:96::14", "::", "2001:db8::ffff"] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(address_of(reverse_name(address).as_ref()), Some(address));
        }
        assert_eq!(reverse_name("10.96.0.1".parse().unwrap()).to_string(), "1.0.96.10.in-addr.arpa.");
    }

    #[test]
    fn rejects_names_that_are_not_full_reverse_names() {
        for text in [
            "0.96.10.in-addr.arpa.",
            "1.0.0.96.10.in-addr.arpa.",
            "01.0.96.10.in-addr.arpa.",
            "256.0.96.10.in-addr.arpa.",
            "+1.0.96.10.in-addr.arpa.",
            "1.0.96.10.in-addr.arp.",
            "1.0.96.10.ip6.arpa.",
        ] {
            assert_eq!(address_of(Name::from_text(text).unwrap().as_ref()), None, "{text}");
        }
        assert!(address_of(Name::from_text("1.0.96.10.IN-ADDR.Arpa.").unwrap().as_ref()).is_some());
    }

    #[test]
    fn recognizes_suffixes_of_reverse_names() {
        for (text, is_above) in [
            ("10.in-addr.arpa.", true),
            ("0.96.10.IN-ADDR.arpa.", true),
            ("1.0.96.10.in-addr.arpa.", false),
            ("256.10.in-addr.arpa.", false),
            ("x.10.in-addr.arpa.", false),
            ("10.in-addr.example.", false),
            ("10.11.example.org.", false),
            ("a.b.c.d.example.org.", false),
            ("0.0.d.f.ip6.arpa.", true),
            ("00.d.f.ip6.arpa.", false),
            ("in-addr.arpa.", false),
            ("arpa.", false),
            (".", false),
        ] {
            assert_eq!(is_above_addresses(Name::from_text(text).unwrap().as_ref()), is_above, "{text}");
        }
        let address = reverse_name("fd00::1".parse().unwrap());
        let names: Vec<_> = address.as_ref().ancestors().map(is_above_addresses).collect();
        assert_eq!(names.iter().filter(|is_above| **is_above).count(), 31);
    }
}
