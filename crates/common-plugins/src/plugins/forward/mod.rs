//! Forwards queries to other DNS servers.
//!
//! The crate `upstream` decides which upstream is tried and when to give up. This plugin performs the exchanges.

mod datagrams;
mod exchange;
mod explain;
mod forgery;
mod inspection;
mod manifest;
mod metrics;
mod outage;
mod race;
mod stanza;

use std::sync::Arc;

use config::setup::{CachesAbove, Part, Setup, SetupError};
use engine::log::Source;
use engine::{
    Explanation, Failure, Hook, Hooks, Instant, Io, LocalFuture, Plugin, Query, Resolved, Response, Share, Verdict,
    Worker,
};

pub(crate) use explain::REASONS;
pub(crate) use manifest::MANIFEST;
pub use outage::OVER_TCP;
pub use stanza::HostLookup;

use self::metrics::ForwardMetrics;
use crate::shared::resolver_arpa;
use inspection::UpstreamsView;
use manifest::Config;
use stanza::Stanza;

/// Source of events in the log.
const SOURCE: Source<'_> = Source::Plugin("forward");

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let metrics = ForwardMetrics::new(setup.registry);
    setup.below.provide(CachesAbove::default());
    let mut stanzas = Vec::new();
    setup.for_each_line(configs, |config, setup| {
        stanzas.push(Arc::new(Stanza::new(config, setup, metrics)?));
        Ok(())
    });
    for stanza in &stanzas {
        for upstream in 0..stanza.upstreams() {
            let stanza = Arc::clone(stanza);
            setup.requests.jobs.push(Box::new(move |io| Box::pin(stanza.watch_health(upstream, io))));
        }
    }
    setup.requests.inspection.upstreams.push(Arc::new(UpstreamsView(stanzas.clone())));
    Ok(Some(Part::new(Forward { stanzas }, Hooks::DOWN)))
}

/// All `forward` lines of a server block.
struct Forward {
    stanzas: Vec<Arc<Stanza>>,
}

impl Plugin for Forward {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        match self.stanza_for(query, 0) {
            Some(at) if self.stanzas[at].denies(query.key()) => {
                resolver_arpa::deny(response);
                Verdict::Done
            }
            Some(_) => Verdict::Wait,
            None => Verdict::Pass,
        }
    }

    fn explain(&self, _: Hook, query: &Query, _: &Response, now: Instant) -> Option<Explanation> {
        self.explained(query, now)
    }

    fn destination(&self, query: &Query) -> usize {
        self.stanza_for(query, 0).unwrap_or_default()
    }

    fn acquire_permit(&self, query: &Query, io: &dyn Io) -> Result<Option<Share>, Failure> {
        self.stanza_for(query, 0).map_or(Ok(None), |at| self.stanzas[at].acquire_permit(query, io))
    }

    fn resolve<'a>(&'a self, query: &'a Query, io: &'a dyn Io) -> LocalFuture<'a, Resolved> {
        Box::pin(async move {
            let mut from = 0;
            let mut last = Resolved::Pass;
            while let Some(at) = self.stanza_for(query, from) {
                // The query already holds its slot of the first line.
                let _permit = match from {
                    0 => None,
                    _ => match self.stanzas[at].acquire_permit(query, io) {
                        Ok(permit) => permit,
                        Err(failure) => return Resolved::Fail(failure),
                    },
                };
                let (resolved, continues) = self.stanzas[at].forward(query, io).await;
                if !continues {
                    return resolved;
                }
                last = resolved;
                from = at + 1;
            }
            last
        })
    }
}

impl Forward {
    /// Returns the index of the first line from `from` on that accepts the query.
    fn stanza_for(&self, query: &Query, from: usize) -> Option<usize> {
        let forwards = |stanza: &Arc<Stanza>| stanza.forwards(query.key());
        self.stanzas.iter().skip(from).position(forwards).map(|at| at + from)
    }
}
