//! Queries to upstreams: new messages, so that no hop-by-hop data of the client is forwarded.

use wire::{Class, Flags, HEADER_LEN, Header, MessageBuf, Name, NameRef, Opt, OptionCode, Rcode, Reply, Type};

/// Maximum size in bytes of a UDP reply from an upstream, whatever the client accepts.
const UDP_SIZE_MAX: u16 = 4096;

/// Length in bytes to a multiple of which queries are padded (RFC 8467 §4.1).
const PADDING_BLOCK: usize = 128;
/// Data of padding options (RFC 7830 §3).
static PADDING: [u8; PADDING_BLOCK] = [0; PADDING_BLOCK];
/// Length of an EDNS option without its data (RFC 6891 §6.1.2).
const OPTION_HEADER_LEN: usize = 4;

/// Builds the query for an upstream, with the ID 0.
///
/// It contains the question, and the client's opcode, RD, CD and AD. Its OPT record is new, with DO if the client set
/// it. The options of the client are not forwarded (RFC 6891 §6.1.1); `options` are those of this server.
#[must_use]
pub fn outgoing<'o>(
    (name, qtype, qclass): (NameRef<'_>, Type, Class),
    client: Flags,
    udp_size: u16,
    dnssec_ok: bool,
    options: impl Iterator<Item = (OptionCode, &'o [u8])>,
) -> Vec<u8> {
    let flags = Flags::default()
        .with_opcode(client.opcode())
        .with_recursion_desired(client.recursion_desired())
        .with_checking_disabled(client.checking_disabled())
        .with_authentic_data(client.authentic_data());
    let udp_size = udp_size.min(UDP_SIZE_MAX);
    let opt = Opt { udp_size, extended_rcode: 0, version: 0, dnssec_ok };
    compose((name, qtype, qclass), flags, Some(opt), options)
}

/// Returns the option that pads a query of `length` bytes to whole blocks. It must be the last option (RFC 8467 §3).
#[must_use]
pub fn padding(length: usize) -> (OptionCode, &'static [u8]) {
    let length = length + OPTION_HEADER_LEN;
    let missing = length.next_multiple_of(PADDING_BLOCK) - length;
    (OptionCode::PADDING, &PADDING[..missing])
}

/// Builds a health check: a query for the NS records of `name`.
#[must_use]
pub fn probe(name: &Name, recursion_desired: bool) -> Vec<u8> {
    let flags = Flags::default().with_recursion_desired(recursion_desired);
    compose((name.as_ref(), Type::NS, Class::IN), flags, None, core::iter::empty())
}

/// Builds a reply to a query from a response code alone, for an upstream that returns an error without a message.
///
/// `None` if the query is malformed.
#[must_use]
pub fn answered_with(query: &[u8], rcode: Rcode) -> Option<Reply> {
    let Header { id, flags, .. } = Header::read(query)?;
    let flags = flags.with_response(true).with_recursion_available(true).with_rcode(rcode);
    let header = Header { id, flags, questions: 1, ..Header::default() };
    let question = query.get(HEADER_LEN..wire::question_end(query)?)?;
    Reply::parse([&header.to_bytes()[..], question].concat()).ok()
}

fn compose<'o>(
    question: (NameRef<'_>, Type, Class),
    flags: Flags,
    opt: Option<Opt>,
    options: impl Iterator<Item = (OptionCode, &'o [u8])>,
) -> Vec<u8> {
    let mut message = MessageBuf::new();
    message.start(Header { flags, ..Header::default() }, Some(question));
    message.finish(opt, options).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Opcode, Request};

    #[test]
    fn omits_hop_by_hop_data_of_the_client() {
        let name = Name::from_text("Www.Example.").unwrap();
        let client = Flags(0x0130).with_response(false).with_truncated(true);
        let question = (name.as_ref(), Type::AAAA, Class::IN);
        let bytes = outgoing(question, client, 1232, true, core::iter::empty());
        let mut request = Request::default();
        request.read(Header::read(&bytes).unwrap(), &bytes).unwrap();
        assert_eq!(request.name.as_bytes(), name.as_bytes());
        assert_eq!(request.header.flags, Flags(0x0130));
        assert_eq!(request.opt.map(|opt| (opt.udp_size, opt.dnssec_ok)), Some((1232, true)));
        assert_eq!(request.options(&bytes).count(), 0);
        let notification = Flags::default().with_opcode(Opcode::NOTIFY);
        let bytes = outgoing(question, notification.with_authoritative(true), 1232, false, core::iter::empty());
        assert_eq!(Header::read(&bytes).map(|header| header.flags), Some(notification));
        let options = [(OptionCode::NSID, &b"x"[..])];
        let bytes = outgoing(question, client, 512, true, options.into_iter());
        request.read(Header::read(&bytes).unwrap(), &bytes).unwrap();
        assert_eq!(request.options(&bytes).collect::<Vec<_>>(), options);
        let probe = probe(&Name::root(), false);
        assert_eq!(probe, b"\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01");
    }

    #[test]
    fn padding_fills_whole_blocks() {
        for (length, expected) in [(40, 84), (123, 1), (124, 0), (125, 127), (128, 124), (252, 0)] {
            let (code, data) = padding(length);
            assert_eq!((code, data.len()), (OptionCode::PADDING, expected), "{length}");
            assert!((length + OPTION_HEADER_LEN + data.len()).is_multiple_of(PADDING_BLOCK));
        }
    }
}
