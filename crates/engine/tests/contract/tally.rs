//! Counts the queries on the way down and the answers on the way up, each exactly once.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use metrics::{Counter, Kind, Metric};

pub static MANIFEST: Manifest<()> =
    Manifest::new("tally", "counts queries and answers", || (), build).metrics(&[&TALLY]);

static TALLY: Metric =
    Metric { name: "tally_total", help: "Queries and answers.", kind: Kind::Counter, labels: &["zone", "what"] };

fn build(_: Vec<()>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let zone = setup.block.sites.first().map_or("", |site| site.zone.as_str());
    let counter = |what| setup.registry.counter(&TALLY, &[zone, what]);
    let tally = Tally { queries: counter("query"), answers: counter("answer"), failures: counter("failure") };
    Ok(Some(Part::new(tally, Hooks::BOTH)))
}

struct Tally {
    queries: Counter,
    answers: Counter,
    failures: Counter,
}

impl Plugin for Tally {
    fn on_query(&self, _: &mut Query, _: &mut Response, worker: &mut Worker) -> Verdict {
        worker.counters.count(self.queries);
        Verdict::Pass
    }

    fn on_response(&self, _: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        worker.counters.count(if response.failure().is_some() { self.failures } else { self.answers });
        Verdict::Pass
    }
}
