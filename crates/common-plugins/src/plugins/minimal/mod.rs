//! Removes the authority and additional sections from NOERROR responses with records.

use config::options::{Effect, Manifest, Role};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use wire::Section;

use crate::shared::response_class::Kind;

pub static MANIFEST: Manifest<()> = Manifest::new(
    "minimal",
    "remove optional sections from responses",
    || (),
    |_, _: &mut Setup<'_>| -> Result<Option<Part>, SetupError> { Ok(Some(Part::new(Minimal, Hooks::UP))) },
)
.first_line_wins()
.role(|_| Role::new(Effect::OnAnswers, &[]));

struct Minimal;

impl Plugin for Minimal {
    fn on_response(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        if Kind::of(query, response) == Kind::NoError {
            response.message.cut_from(Section::Authority);
        }
        Verdict::Pass
    }
}
