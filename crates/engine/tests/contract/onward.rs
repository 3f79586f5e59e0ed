//! Adds an EDNS option for upstreams, as `rewrite edns0` does.

use config::options::Manifest;
use config::setup::Part;
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use wire::OptionCode;

pub static MANIFEST: Manifest<()> = Manifest::new(
    "onward",
    "adds an EDNS option for upstreams",
    || (),
    |_, _| Ok(Some(Part::new(Onward, Hooks::DOWN))),
);

/// Option code for local use (RFC 6891 §9).
const CODE: OptionCode = OptionCode(65_001);

struct Onward;

impl Plugin for Onward {
    fn on_query(&self, query: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        let who: Box<[u8]> = query.peer.address.ip().to_string().into_bytes().into();
        query.remove_onward_options(CODE);
        query.add_onward_option(CODE, who);
        Verdict::Pass
    }
}
