//! Panics at the place that the first label of the name selects. A panic must cost one answer and nothing else.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Io, LocalFuture, Plugin, Query, Resolved, Response, Subquery, SubqueryTarget, Verdict, Worker};
use wire::Type;

pub static MANIFEST: Manifest<()> = Manifest::new("fragile", "panics on request of the name", || (), build);

/// Directive that makes a panic end the process, as *debug* does.
pub static ENDING: Manifest<()> = Manifest::new(
    "ending",
    "lets a panic end the process",
    || (),
    |_, setup| {
        setup.requests.panics_end = true;
        Ok(None)
    },
);

fn build(_: Vec<()>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(Some(Part::new(Fragile, Hooks::BOTH)))
}

struct Fragile;

impl Fragile {
    /// Panics if the first label of the name is `place`.
    fn at(query: &Query, place: &str) {
        assert!(!is(query, place), "broke at {place}");
    }
}

fn is(query: &Query, label: &str) -> bool {
    query.key().labels().next() == Some(label.as_bytes())
}

impl Plugin for Fragile {
    fn on_query(&self, query: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Fragile::at(query, "down");
        if is(query, "sub") || is(query, "subanswer") {
            let ask = |label: &[u8]| {
                let mut name = wire::Name::root();
                let parent = query.name().parent().unwrap_or(wire::NameRef::ROOT);
                name.push_label(label).and_then(|()| name.append(parent)).ok()?;
                Some(Subquery { name, qtype: Type::A, target: SubqueryTarget::Top })
            };
            let ask = ask(if is(query, "sub") { b"down" } else { b"www" });
            return ask.map_or(Verdict::Pass, |ask| Verdict::Subquery(Box::new(ask)));
        }
        if is(query, "resolve") || is(query, "later") { Verdict::Wait } else { Verdict::Pass }
    }

    fn on_response(&self, query: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Fragile::at(query, "up");
        Verdict::Pass
    }

    fn on_subresponse(&self, query: &mut Query, _: &mut Response, _: &mut Response, _: &mut Worker) -> Verdict {
        Fragile::at(query, "subanswer");
        Verdict::Done
    }

    fn resolve<'a>(&'a self, query: &'a Query, io: &'a dyn Io) -> LocalFuture<'a, Resolved> {
        Fragile::at(query, "resolve");
        Box::pin(async move {
            io.sleep_until(io.now() + core::time::Duration::from_millis(100)).await;
            Fragile::at(query, "later");
            Resolved::Pass
        })
    }
}
