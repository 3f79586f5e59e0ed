//! All short packets, and all sequences of labels near the limits, beside a second decoder that was written from
//! RFC 1035 §3.1 and §4.1.4 alone.

use super::*;

/// Bytes at the edges of what a length byte can mean, and a letter.
const EDGES: [u8; 11] = [0, 1, 2, 3, 0x3f, 0x40, 0x80, 0xbf, 0xc0, 0xc1, b'a'];

/// Decodes a name one byte at a time. Each pointer must lead to an earlier place, and a place that is reached twice is
/// a loop. Returns the labels with their length bytes, and the offset after the name.
fn reference(packet: &[u8], start: usize) -> Option<(Vec<u8>, usize)> {
    let (mut name, mut at, mut end, mut pointers) = (Vec::new(), start, None, Vec::new());
    loop {
        let first = *packet.get(at)?;
        if first & 0b1100_0000 == 0b1100_0000 {
            let second = *packet.get(at + 1)?;
            let target = usize::from(u16::from_be_bytes([first, second]) - 0xc000);
            end = end.or(Some(at + 2));
            if target >= at || pointers.contains(&at) {
                return None;
            }
            pointers.push(at);
            at = target;
            continue;
        }
        if first & 0b1100_0000 != 0 {
            return None;
        }
        name.push(first);
        at += 1;
        for _ in 0..first {
            name.push(*packet.get(at)?);
            at += 1;
        }
        if name.len() > 255 {
            return None;
        }
        if first == 0 {
            return Some((name, end.unwrap_or(at)));
        }
    }
}

/// Compares both decoders, and all that must agree with them, for the name at `at`. Returns true for a valid name.
fn check(packet: &[u8], at: usize) -> bool {
    let read = Name::read(packet, at);
    let expected = reference(packet, at);
    let shown = read.as_ref().ok().map(|(name, end)| (name.as_bytes().to_vec(), *end));
    assert_eq!(shown, expected, "{packet:?} at {at}");
    match read {
        Ok((name, end)) => {
            assert_eq!(skip_name(packet, at), Ok(end), "{packet:?} at {at}");
            assert!(name.is_whole(), "{packet:?} at {at}");
            // Without a pointer, the bytes of the packet are the name.
            let is_plain = packet[at..end] == *name.as_bytes();
            let borrowed = NameRef::from_bytes(&packet[at..end]);
            assert_eq!(borrowed.is_ok(), is_plain, "{packet:?} at {at}");
        }
        Err(_) => assert!(NameRef::from_bytes(packet.get(at..).unwrap_or_default()).is_err(), "{packet:?} at {at}"),
    }
    expected.is_some()
}

/// Calls `visit` for all strings of this length.
fn each_string(alphabet: &[u8], length: u32, mut visit: impl FnMut(&[u8])) {
    let base = alphabet.len();
    let mut bytes = vec![0; length as usize];
    for mut number in 0..base.pow(length) {
        for byte in &mut bytes {
            *byte = alphabet[number % base];
            number /= base;
        }
        visit(&bytes);
    }
}

#[test]
fn all_short_packets_are_decoded_as_the_standard_says() {
    let (mut names, mut packets) = (0, 0);
    let mut count = |bytes: &[u8]| {
        packets += 1;
        for at in 0..=bytes.len() {
            names += usize::from(check(bytes, at));
        }
    };
    for length in 0..=4 {
        each_string(&EDGES, length, &mut count);
    }
    for length in 5..=6 {
        each_string(&[0, 1, 2, 0x40, 0xc0, b'a'], length, &mut count);
    }
    assert_eq!((packets, names > 10_000), (16_105 + 54_432, true));
}

#[test]
fn pointers_to_names_of_almost_the_maximum_length_are_decoded_as_the_standard_says() {
    // A name of 255 bytes at offset 0, so that the suffix at offset 2 × n has 255 - 2 × n bytes. The byte after it
    // makes the string begin at offset 256, where pointers need both of their bytes.
    let mut packet = b"\x01b".repeat(127);
    packet.extend([0, 0]);
    let mut names = 0;
    for length in 1..=5 {
        each_string(&[0, 1, 2, 3, 4, 0xc0, 0xc1], length, |bytes| {
            packet.truncate(256);
            packet.extend_from_slice(bytes);
            names += usize::from(check(&packet, 256));
        });
    }
    assert!(names > 1000, "{names}");
}

#[test]
fn all_names_of_labels_near_the_limits_are_decoded_as_the_standard_says() {
    let (mut valid, mut too_long) = (0, 0);
    for labels in 0..=6 {
        each_string(&[1, 2, 60, 61, 62, 63], labels, |lengths| {
            let (mut packet, mut pushed) = (Vec::new(), Ok(Name::root()));
            for length in lengths {
                let label = vec![b'x'; usize::from(*length)];
                packet.push(*length);
                packet.extend_from_slice(&label);
                pushed = pushed.and_then(|mut name: Name| name.push_label(&label).map(|()| name));
            }
            packet.push(0);
            let is_valid = check(&packet, 0);
            assert_eq!(is_valid, packet.len() <= NAME_MAX);
            // The same name by its text and label by label, at the same limit.
            assert_eq!(pushed.as_ref().map(Name::as_bytes).ok(), is_valid.then_some(&packet[..]));
            let text: String = lengths.iter().map(|length| "x".repeat(usize::from(*length)) + ".").collect();
            let text = if text.is_empty() { ".".to_owned() } else { text };
            assert_eq!(Name::from_text(&text).ok().map(|name| name.as_bytes().to_vec()), is_valid.then_some(packet));
            *(if is_valid { &mut valid } else { &mut too_long }) += 1;
        });
    }
    assert!(valid > 1000 && too_long > 1000, "{valid} {too_long}");
}
