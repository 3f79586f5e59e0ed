//! Minimal responses to ANY queries (RFC 8482).

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use wire::{Class, Owner, Section, Type};

pub static MANIFEST: Manifest<()> = Manifest::new(
    "any",
    "give a minimal answer to queries of type ANY",
    || (),
    |_, _: &mut Setup<'_>| -> Result<Option<Part>, SetupError> { Ok(Some(Part::new(Any, Hooks::DOWN))) },
)
.first_line_wins();

/// TTL in seconds, as in CoreDNS.
const TTL: u32 = 8482;

struct Any;

impl Plugin for Any {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        if query.qtype != Type::ANY {
            return Verdict::Pass;
        }
        response.set_local();
        response.message.push(Section::Answer, Owner::Question, (Type::HINFO, Class::IN, TTL), |rdata| {
            rdata.character_string(b"ANY obsoleted");
            rdata.character_string(b"See RFC 8482");
        });
        Verdict::Done
    }
}
