//! Mark of the queries that plugins send to their own server, so that nobody takes them for those of a client.

use wire::{MessageBuf, Opt, OptionCode};

/// UDP payload size in bytes (DNS flag day 2020).
const UDP_SIZE: u16 = 1_232;

/// Finishes a query with the mark of a probe.
pub fn finish_probe(message: &mut MessageBuf) -> &[u8] {
    let opt = Opt { udp_size: UDP_SIZE, extended_rcode: 0, version: 0, dnssec_ok: false };
    message.finish(Some(opt), core::iter::once((OptionCode::PROBE, &[][..])))
}
