//! Signs what leaves, as `tsig` does: over the octets of the query as they came, and the finished answer. Its "signature" is a sum that tests can check.

use core::time::Duration;

use engine::options::Manifest;
use engine::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Seal, Verdict, Worker};
use wire::Type;

pub static MANIFEST: Manifest<()> = Manifest::new("sign", "signs what leaves", "", || (), build);

/// Octets of the toy's record before its data: root owner, type, class ANY, TTL, length.
const FIXED_LEN: usize = 11;
/// Octets of its data: seconds since 1970, sum.
const DATA_LEN: usize = 16;

fn build(_: Vec<()>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(Some(Part::new(Sign, Hooks::DOWN)))
}

struct Sign;

impl Plugin for Sign {
    /// The seal holds from here on, whatever becomes of the answer: a failure is signed too.
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        // The server's own questions leave by no socket.
        if !query.is_own() {
            response.seal_with(Box::new(Sum { query: sum(&query.packet), at: worker.since_1970() }));
        }
        Verdict::Pass
    }
}

/// The signature of one answer: over the query, the time, and the answer.
struct Sum {
    query: u64,
    at: Duration,
}

impl Seal for Sum {
    fn room(&self) -> usize {
        FIXED_LEN + DATA_LEN
    }

    fn seal(&self, message: &[u8], record: &mut Vec<u8>) {
        let Type(rtype) = Type::TSIG;
        record.push(0);
        record.extend(rtype.to_be_bytes());
        record.extend([0, 255, 0, 0, 0, 0, 0, 16]);
        record.extend(self.at.as_secs().to_be_bytes());
        record.extend((self.query ^ sum(message)).to_be_bytes());
    }
}

/// Whether an answer ends with the right signature: for tests.
pub fn verified(query: &[u8], answer: &[u8]) -> bool {
    // The record is not counted in what it signs (RFC 8945 §4.3.3).
    const ADDITIONALS_AT: usize = 11;
    let mut unsigned = answer.to_vec();
    unsigned.truncate(answer.len().saturating_sub(FIXED_LEN + DATA_LEN));
    if let Some(count) = unsigned.get_mut(ADDITIONALS_AT) {
        *count = count.wrapping_sub(1);
    }
    answer.last_chunk() == Some(&(sum(query) ^ sum(&unsigned)).to_be_bytes())
}

fn sum(octets: &[u8]) -> u64 {
    octets.iter().fold(0xcbf2_9ce4_8422_2325, |sum, octet| (sum ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3))
}
