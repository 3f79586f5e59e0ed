//! Conversion between IP addresses and labels such as `10-1-0-6` and `fd00-1--22`, the names of pods and of endpoints
//! without a hostname.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::LABEL_MAX;

/// Buffer for one label.
pub type LabelBuffer = [u8; LABEL_MAX];

/// Writes an address with dashes in place of dots and colons: the label of a pod.
pub fn write(address: IpAddr, buffer: &mut LabelBuffer) -> &[u8] {
    let len = match address {
        IpAddr::V4(v4) => write_v4(v4, buffer),
        IpAddr::V6(v6) => write_v6(v6, buffer),
    };
    &buffer[..len]
}

/// Writes the label of an endpoint. Same as [`write()`], with a `0` appended if it would end in a dash, which a host
/// name must not.
pub(crate) fn write_endpoint(address: IpAddr, buffer: &mut LabelBuffer) -> &[u8] {
    let len = write(address, buffer).len();
    if buffer[len - 1] != b'-' {
        return &buffer[..len];
    }
    buffer[len] = b'0';
    &buffer[..=len]
}

/// Parses a label as an address, in any spelling. Three dashes, none adjacent to another, mean IPv4; anything else
/// means IPv6.
#[must_use]
pub fn read(label: &[u8]) -> Option<IpAddr> {
    let mut text = [0; TEXT_MAX];
    let text = text.get_mut(..label.len())?;
    text.copy_from_slice(label);
    let dashes = label.iter().filter(|&&byte| byte == b'-').count();
    let is_v4 = dashes == 3 && !label.windows(2).any(|pair| pair == b"--");
    let separator = if is_v4 { b'.' } else { b':' };
    for byte in &mut *text {
        *byte = match *byte {
            b'-' => separator,
            // Colons are accepted like dashes. Dots are not, since no label contains them.
            b':' if !is_v4 => b':',
            other if other.is_ascii_hexdigit() => other,
            _ => return None,
        };
    }
    let text = std::str::from_utf8(text).ok()?;
    if is_v4 { text.parse().ok().map(IpAddr::V4) } else { text.parse().ok().map(IpAddr::V6) }
}

/// Parses the label of an endpoint. Accepts only the spelling that [`write_endpoint`] produces.
#[must_use]
pub(crate) fn read_endpoint(label: &[u8]) -> Option<IpAddr> {
    read(label).filter(|&address| write_endpoint(address, &mut [0; LABEL_MAX]) == label)
}

/// Parses the label of a pod. Accepts only the spelling that [`write()`] produces.
#[must_use]
pub fn read_pod(label: &[u8]) -> Option<IpAddr> {
    read(label).filter(|&address| write(address, &mut [0; LABEL_MAX]) == label)
}

/// Length in bytes of the longest address text: eight groups of four digits and seven colons.
const TEXT_MAX: usize = 39;

fn write_v4(address: Ipv4Addr, buffer: &mut LabelBuffer) -> usize {
    let mut len = 0;
    let mut push = |byte| {
        buffer[len] = byte;
        len += 1;
    };
    for (at, byte) in address.octets().into_iter().enumerate() {
        if at > 0 {
            push(b'-');
        }
        if byte >= 100 {
            push(b'0' + byte / 100);
        }
        if byte >= 10 {
            push(b'0' + byte / 10 % 10);
        }
        push(b'0' + byte % 10);
    }
    len
}

fn write_v6(address: Ipv6Addr, buffer: &mut LabelBuffer) -> usize {
    use std::io::Write;
    let mut rest = &mut buffer[..];
    // The longest text has 39 bytes, so the write cannot fail.
    let _ = write!(rest, "{address}");
    let len = LABEL_MAX - rest.len();
    for byte in &mut buffer[..len] {
        if matches!(*byte, b':' | b'.') {
            *byte = b'-';
        }
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip_through_labels() {
        for (address, pod, endpoint) in [
            ("10.1.0.6", "10-1-0-6", "10-1-0-6"),
            ("0.0.0.0", "0-0-0-0", "0-0-0-0"),
            ("255.99.100.9", "255-99-100-9", "255-99-100-9"),
            ("fd00:1::22", "fd00-1--22", "fd00-1--22"),
            ("2001:db8::", "2001-db8--", "2001-db8--0"),
            ("::", "--", "--0"),
            ("::1", "--1", "--1"),
            (
                "1111:2222:3333:4444:5555:6666:7777:8888",
                "1111-2222-3333-4444-5555-6666-7777-8888",
                "1111-2222-3333-4444-5555-6666-7777-8888",
            ),
        ] {
            let (mut one, mut two) = ([0; LABEL_MAX], [0; LABEL_MAX]);
            let ip: IpAddr = address.parse().unwrap();
            assert_eq!(write(ip, &mut one), pod.as_bytes());
            assert_eq!(write_endpoint(ip, &mut two), endpoint.as_bytes());
            assert_eq!(read_pod(pod.as_bytes()), Some(ip), "{pod}");
            assert_eq!(read_endpoint(endpoint.as_bytes()), Some(ip), "{endpoint}");
            assert_eq!(pod == endpoint, read_pod(endpoint.as_bytes()).is_some());
        }
    }

    #[test]
    fn other_spellings_parse_but_name_no_pod_or_endpoint() {
        for (label, address) in [
            ("2001-db8-0-0-0-0-0-1", "2001:db8::1"),
            ("FD00--1", "fd00::1"),
            ("fd00--01", "fd00::1"),
            ("--ffff-102-304", "::ffff:1.2.3.4"),
            ("::1", "::1"),
        ] {
            assert_eq!(read(label.as_bytes()), Some(address.parse().unwrap()), "{label}");
            assert_eq!((read_pod(label.as_bytes()), read_endpoint(label.as_bytes())), (None, None), "{label}");
        }
    }

    #[test]
    fn refuses_labels_that_are_not_addresses() {
        let long = "1".repeat(LABEL_MAX);
        for label in [
            "",
            "-",
            "web",
            "p-0",
            "1-2-3",
            "1-2-3-256",
            "01-2-3-4",
            "1-2-3-4-5",
            "1.2.3.4",
            "fd00--1--2",
            "+1-2-3-4",
            "1-2-3-a",
            "fd00--1%1",
            &long,
        ] {
            assert_eq!(read(label.as_bytes()), None, "{label}");
        }
    }
}
