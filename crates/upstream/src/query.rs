//! The message that is sent to an upstream: made anew, so that nothing of the client's hop goes along.

use wire::{Class, Flags, Header, MessageBuf, Name, NameRef, Opt, Type};

/// Octets that are taken from an upstream over UDP at least (RFC 9715 §3.2).
const UDP_SIZE_MIN: u16 = 1232;
/// Octets that are taken from an upstream over UDP at most, whatever the client takes.
const UDP_SIZE_MAX: u16 = 4096;

/// A query for an upstream: the question, RD, CD and AD of the client, and an OPT record of our own with DO if the client
/// had set it. Options of the client are for this server alone (RFC 6891 §6.1.1).
#[must_use]
pub fn outgoing(
    name: NameRef<'_>,
    qtype: Type,
    qclass: Class,
    asked: Flags,
    udp_size: u16,
    dnssec_ok: bool,
) -> Vec<u8> {
    let flags = Flags::default()
        .with_recursion_desired(asked.recursion_desired())
        .with_checking_disabled(asked.checking_disabled())
        .with_authentic_data(asked.authentic_data());
    let udp_size = udp_size.clamp(UDP_SIZE_MIN, UDP_SIZE_MAX);
    compose(name, qtype, qclass, flags, Some(Opt { udp_size, extended_rcode: 0, version: 0, dnssec_ok }))
}

/// A query that only asks whether somebody is there: `NAME NS`.
#[must_use]
pub fn probe(name: &Name, recursion_desired: bool) -> Vec<u8> {
    let flags = Flags::default().with_recursion_desired(recursion_desired);
    compose(name.as_ref(), Type::NS, Class::IN, flags, None)
}

fn compose(name: NameRef<'_>, qtype: Type, qclass: Class, flags: Flags, opt: Option<Opt>) -> Vec<u8> {
    let mut message = MessageBuf::new();
    message.start(Header { flags, ..Header::default() }, Some((name, qtype, qclass)));
    message.finish(opt, core::iter::empty()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Request;

    #[test]
    fn nothing_of_the_client_s_hop_goes_along() {
        let name = Name::from_text("Www.Example.").unwrap();
        let asked = Flags(0x0130).with_response(false).with_truncated(true);
        let octets = outgoing(name.as_ref(), Type::AAAA, Class::IN, asked, 512, true);
        let mut request = Request::default();
        request.read(Header::read(&octets).unwrap(), &octets).unwrap();
        assert_eq!(request.name.octets(), name.octets());
        assert_eq!(request.header.flags, Flags(0x0130));
        assert_eq!(request.opt.map(|opt| (opt.udp_size, opt.dnssec_ok)), Some((1232, true)));
        assert_eq!(request.options(&octets).count(), 0);
        let probe = probe(&Name::root(), false);
        assert_eq!(probe, b"\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01");
    }
}
