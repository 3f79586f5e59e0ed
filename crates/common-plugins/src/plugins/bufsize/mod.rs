//! Sets the maximum size of responses over UDP, whatever clients announce in EDNS.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};

pub static MANIFEST: Manifest<u16> =
    Manifest::new("bufsize", "set the maximum size of responses over UDP", || engine::UDP_SIZE, build)
        .first_line_wins()
        .arguments("bufsize [SIZE]", |size, args| {
            if !args.rest().is_empty() {
                *size = args.number(SIZE_MIN..=SIZE_MAX)?;
            }
            Ok(())
        });

/// Message size in bytes that every client accepts (RFC 1035 §4.2.1).
const SIZE_MIN: u16 = 512;
/// Size in bytes above which UDP datagrams rarely arrive.
const SIZE_MAX: u16 = 4096;

fn build(sizes: Vec<u16>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(sizes.into_iter().next().map(|size| Part::new(BufSize { size }, Hooks::DOWN)))
}

struct BufSize {
    size: u16,
}

impl Plugin for BufSize {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        query.udp_size = query.udp_size.min(self.size);
        query.udp_size_max = self.size;
        response.update_limit(query);
        query.onward_size_max = self.size;
        Verdict::Pass
    }
}
