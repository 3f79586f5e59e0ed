//! Members of a line in the JSON form of the log, with the names, types and order of CoreDNS 1.15.0.

use std::io::Write;

use engine::{Query, Response};

use crate::shared::log_format::{Seen, write_seconds_number};

/// Appends the members, separated by commas.
pub(super) fn write(out: &mut Vec<u8>, query: &Query, response: &Response, seen: &Seen<'_>) {
    let asked = &query.request;
    let over_udp = query.peer.transport.label() == "udp";
    // Writing to memory cannot fail.
    let _ = write!(
        out,
        "\"client_ip\":\"{}\",\"client_port\":{},\"qname\":\"",
        query.peer.address.ip().to_canonical(),
        query.peer.address.port()
    );
    let _ = write!(Escaped(out), "{}", asked.name.clone().into_lowercase());
    let _ = write!(
        out,
        "\",\"qtype\":\"{}\",\"qclass\":\"{}\",\"protocol\":\"{}\",\"id\":{},\"opcode\":{}",
        query.qtype,
        query.qclass,
        query.peer.transport.label(),
        asked.header.id,
        asked.header.flags.opcode().0
    );
    let _ = write!(
        out,
        ",\"request_size\":{},\"dnssec_ok\":{},\"bufsize\":{},\"rcode\":",
        query.packet.len(),
        asked.opt.is_some_and(|opt| opt.dnssec_ok),
        if over_udp { query.udp_size } else { u16::MAX }
    );
    let _ = match response.rcode().mnemonic() {
        _ if response.is_dropped() => out.write_all(b"null"),
        Some(name) => write!(out, "\"{name}\""),
        None => write!(out, "\"{}\"", response.rcode().0),
    };
    let size = if response.is_dropped() { 0 } else { response.message.len() };
    let _ = write!(out, ",\"response_size\":{size},\"duration_seconds\":");
    let _ = write_seconds_number(out, seen.nanos());
}

/// Writer of text within the quotation marks of a JSON string. Names in presentation form are ASCII without control
/// characters.
struct Escaped<'a>(&'a mut Vec<u8>);

impl Write for Escaped<'_> {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        for byte in text {
            if matches!(byte, b'"' | b'\\') {
                self.0.push(b'\\');
            }
            self.0.push(*byte);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_quotation_marks_and_backslashes() {
        let mut out = Vec::new();
        write!(Escaped(&mut out), "a\"b\\046c.").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a\\\"b\\\\046c.");
    }
}
