//! Explanations of cached answers, for people.

use core::time::Duration;

use engine::{CachedAnswer, Explanation, Instant, Query, ReasonCode};
use wire::Rcode;

use super::Cache;
use super::class::Class;
use super::entry::{Entry, Key};

/// Codes of the reasons.
pub(crate) static REASONS: [&ReasonCode; 2] = [&STALE, &FAILURE];

static STALE: ReasonCode = ReasonCode {
    code: "PE-C01",
    meaning: "The answer has expired and is served stale, because `serve_stale` is on",
    advice: "If it stays so, find out why the upstreams do not answer: `portolan status` shows their state",
};
static FAILURE: ReasonCode = ReasonCode {
    code: "PE-C02",
    meaning: "The upstreams failed a moment ago, and the cache keeps that failure for some seconds",
    advice: "Find out why the upstreams fail: `portolan status` shows their state",
};

impl Cache {
    /// Explains an answer from the cache; `None` if it has no entry for the question.
    pub(super) fn explained(&self, query: &Query, now: Instant) -> Option<Explanation> {
        let key = Key::of(query);
        let read = |class: Class| {
            let explained = |entry: &Entry| (entry.left(now).is_some(), self.explain_entry(entry, class, now));
            self.stores[class].read(&key, explained)
        };
        let mut found = Class::ALL.map(read);
        // A valid entry wins over an expired one.
        host::sorting::sort_by_key(&mut found, |found| found.as_ref().is_none_or(|(valid, _)| !valid));
        found.into_iter().flatten().next().map(|(_, explanation)| explanation)
    }

    fn explain_entry(&self, entry: &Entry, class: Class, now: Instant) -> Explanation {
        let (age, ttl) = (entry.age(now), Duration::from_secs(entry.ttl().into()));
        let cache = CachedAnswer { denial: class == Class::Denial, age, ttl, stale: self.keep_stale() };
        let is_failure = entry.rcode() == Rcode::SERVFAIL;
        let text = match (is_failure, class) {
            (true, _) => "failure",
            (false, Class::Denial) => "denial",
            (false, Class::Answer) => "hit",
        };
        let explanation = Explanation { cache: Some(cache), ..Explanation::new(text) };
        if cache.left().is_none() {
            explanation.because(&STALE, "the answer has expired and is served stale")
        } else if is_failure {
            let text = "the upstreams failed a moment ago, and the cache keeps the failure";
            let cause = entry.cause().map_or(String::new(), |cause| format!(": {cause}"));
            explanation.because(&FAILURE, format!("{text}{cause}"))
        } else {
            explanation
        }
    }
}
