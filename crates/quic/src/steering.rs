//! Assignment of packets to workers by connection ID.
//!
//! Worker `index` of `count` issues connection IDs whose first byte is `index` modulo `count`. A packet therefore names
//! its worker, wherever the client sends it from. The first packet of a client has a random connection ID, which names
//! a worker by the same rule, so repetitions of the packet reach the same worker.

use host::invariant::holds;
use quinn_proto::{ConnectionId, ConnectionIdGenerator};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Length of the connection IDs that this server issues, in bytes.
const CID_LEN: usize = 8;
/// Offset of the first byte of the destination connection ID in packets with a short header (RFC 9000 §17.3).
pub const SHORT_OFFSET: u32 = 1;
/// The same in packets with a long header (RFC 9000 §17.2): after flags, version and length.
pub const LONG_OFFSET: u32 = 6;
/// Bit of the first byte that marks a long header.
pub const LONG_HEADER: u8 = 0x80;

/// One of the endpoints of a listening address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of this endpoint.
    pub index: usize,
    /// Number of endpoints, at most 256.
    pub count: usize,
}

impl Place {
    /// Place of an endpoint that is alone.
    pub const ONLY: Place = Place { index: 0, count: 1 };
}

/// Returns the index of the endpoint that owns a datagram, or `None` if the datagram is too short to be a QUIC packet.
#[must_use]
pub fn owner(datagram: &[u8], count: usize) -> Option<usize> {
    let is_long = datagram.first()? & LONG_HEADER != 0;
    let at = if is_long { LONG_OFFSET } else { SHORT_OFFSET };
    Some(usize::from(*datagram.get(at as usize)?) % count.max(1))
}

/// Generator of connection IDs that name the endpoint.
pub(crate) struct ConnectionIds {
    place: Place,
    random: StdRng,
}

impl ConnectionIds {
    pub(crate) fn new(place: Place, seed: [u8; 32]) -> ConnectionIds {
        holds(place.index < place.count, "the place of an endpoint is among those of its address");
        holds(place.count <= 256, "one byte names the endpoint");
        ConnectionIds { place, random: StdRng::from_seed(seed) }
    }
}

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; CID_LEN];
        self.random.fill_bytes(&mut bytes);
        bytes[0] = first_byte(bytes[0], self.place);
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        CID_LEN
    }

    fn cid_lifetime(&self) -> Option<core::time::Duration> {
        None
    }
}

/// Returns a byte that is `index` modulo `count`, chosen by a random byte.
fn first_byte(random: u8, place: Place) -> u8 {
    let count = place.count.clamp(1, 256);
    let fitting = (255 - place.index.min(255)) / count + 1;
    u8::try_from(usize::from(random) % fitting * count + place.index).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_ids_name_their_endpoint() {
        for count in [1, 2, 3, 7, 64, 255, 256] {
            for index in [0, count / 2, count - 1] {
                let mut ids = ConnectionIds::new(Place { index, count }, [7; 32]);
                for _ in 0..300 {
                    let id = ids.generate_cid();
                    assert_eq!(id.len(), CID_LEN);
                    assert_eq!(usize::from(id[0]) % count, index);
                }
            }
        }
    }

    #[test]
    fn finds_the_connection_id_in_short_and_long_headers() {
        assert_eq!(owner(&[0x40, 5, 0, 0], 4), Some(1));
        assert_eq!(owner(&[0xc0, 0, 0, 0, 1, 8, 7, 0], 4), Some(3));
        assert_eq!(owner(&[0xc0, 0, 0, 0, 1, 8], 4), None);
        assert_eq!(owner(&[0x40], 4), None);
        assert_eq!(owner(&[], 4), None);
    }
}
