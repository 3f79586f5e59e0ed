//! What a listener does with PROXY headers: the client that a header names replaces the peer, if the policy trusts the
//! peer.

use engine::{PeerInfo, ProxyHeader, ProxyPolicy, ProxyTlvs, Transport};
use transport::proxy::{HeaderScan, ProxiedAddresses, Tlvs, scan, tlvs_of};

/// Returns the datagram without its header and the resulting path, or `None` if the datagram must be dropped.
#[must_use]
pub fn unwrap_datagram<'d>(policy: &ProxyPolicy, datagram: &'d [u8], from: PeerInfo) -> Option<(&'d [u8], PeerInfo)> {
    let verdict = (policy.of)(from.address.ip().to_canonical());
    if verdict == ProxyHeader::Skip {
        return Some((datagram, from));
    }
    match scan(datagram, false) {
        HeaderScan::NoHeader => Some((datagram, from)),
        HeaderScan::Incomplete | HeaderScan::Malformed => None,
        HeaderScan::Header(length, ends) => {
            let (header, rest) = datagram.split_at_checked(length)?;
            Some((rest, apply_policy(policy, verdict, ends, header, from)?))
        }
    }
}

/// Returns the path with the addresses from the header, and its TLVs if the policy keeps them. `None` if the header is
/// rejected.
#[must_use]
pub fn apply_policy(
    policy: &ProxyPolicy,
    verdict: ProxyHeader,
    ends: Option<ProxiedAddresses>,
    header: &[u8],
    from: PeerInfo,
) -> Option<PeerInfo> {
    match (verdict, ends) {
        (ProxyHeader::Reject, _) => None,
        (ProxyHeader::Use, Some(ProxiedAddresses { peer, local, tlvs_len })) => {
            // A datagram over QUIC has no query, and the connection outlives it.
            let keeps = policy.keeps_tlvs && !matches!(from.transport, Transport::Quic | Transport::Https3);
            let tlvs = match keeps.then(|| tlvs_of(header, tlvs_len)) {
                Some(Tlvs::Whole(kept)) => ProxyTlvs::Kept(kept.into()),
                Some(Tlvs::TooLong) => ProxyTlvs::TooLong,
                Some(Tlvs::Absent) | None => ProxyTlvs::None,
            };
            Some(PeerInfo { address: peer, local, tlvs, ..from })
        }
        (ProxyHeader::Use | ProxyHeader::Ignore | ProxyHeader::Skip, _) => Some(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn applies_the_policy_to_headers_of_datagrams() {
        let signature = b"\r\n\r\n\0\r\nQUIT\n";
        let header = [&signature[..], &[0x21, 0x12, 0, 12, 10, 0, 0, 1, 192, 0, 2, 1, 0, 9, 0, 53]].concat();
        let datagram = [&header[..], b"query"].concat();
        let through = |said: ProxyHeader, datagram: &[u8]| {
            let policy = ProxyPolicy { of: Arc::new(move |_| said), keeps_tlvs: false };
            let unwrapped = unwrap_datagram(&policy, datagram, PeerInfo::default());
            unwrapped.map(|(rest, from)| (rest.len(), from.address.to_string()))
        };
        assert_eq!(through(ProxyHeader::Use, &datagram), Some((5, "10.0.0.1:9".to_owned())));
        assert_eq!(through(ProxyHeader::Ignore, &datagram), Some((5, "[::]:0".to_owned())));
        assert_eq!(through(ProxyHeader::Reject, &datagram), None);
        assert_eq!(through(ProxyHeader::Reject, b"query"), Some((5, "[::]:0".to_owned())));
        assert_eq!(through(ProxyHeader::Skip, &datagram), Some((33, "[::]:0".to_owned())));
        assert_eq!(through(ProxyHeader::Use, &header[..20]), None);
        // The rest of a datagram with nothing but a header is no query, so it gets no reply.
        assert_eq!(through(ProxyHeader::Use, &header), Some((0, "10.0.0.1:9".to_owned())));
    }
}
