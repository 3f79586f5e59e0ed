//! Signs outgoing responses, as *tsig* does: over the bytes of the query as received, and the finished response. The
//! "signature" is a checksum that tests can verify.

use core::time::Duration;

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, MessageSigner, Plugin, Query, Response, Verdict, Worker};
use wire::Type;

pub static MANIFEST: Manifest<()> = Manifest::new("sign", "signs responses", || (), build);

/// Length in bytes of the record before its data: root owner, type, class ANY, TTL, length.
const FIXED_LEN: usize = 11;
/// Length in bytes of its data: seconds since the Unix epoch, checksum.
const DATA_LEN: usize = 16;

fn build(_: Vec<()>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(Some(Part::new(Sign, Hooks::DOWN)))
}

struct Sign;

impl Plugin for Sign {
    /// Registers the signer on the way down, so that a failure is signed too.
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        // Subqueries are not sent to a client.
        if !query.is_own() {
            response.sign_with(Box::new(Sum { query: sum(&query.packet), at: worker.since_1970() }));
        }
        Verdict::Pass
    }
}

/// Signer of one response: over the query, the time, and the response.
struct Sum {
    query: u64,
    at: Duration,
}

impl MessageSigner for Sum {
    fn room(&self) -> usize {
        FIXED_LEN + DATA_LEN
    }

    fn sign(&self, message: &[u8], record: &mut Vec<u8>) {
        let Type(rtype) = Type::TSIG;
        record.push(0);
        record.extend(rtype.to_be_bytes());
        record.extend([0, 255, 0, 0, 0, 0, 0, 16]);
        record.extend(self.at.as_secs().to_be_bytes());
        record.extend((self.query ^ sum(message)).to_be_bytes());
    }
}

/// Returns true if a response ends with the correct signature.
pub fn verified(query: &[u8], answer: &[u8]) -> bool {
    // The count of additional records does not include the signature when it is computed (RFC 8945 §4.3.3).
    const ADDITIONALS_AT: usize = 11;
    let mut unsigned = answer.to_vec();
    unsigned.truncate(answer.len().saturating_sub(FIXED_LEN + DATA_LEN));
    if let Some(count) = unsigned.get_mut(ADDITIONALS_AT) {
        *count = count.wrapping_sub(1);
    }
    answer.last_chunk() == Some(&(sum(query) ^ sum(&unsigned)).to_be_bytes())
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
