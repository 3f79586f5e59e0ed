//! Comparison with the server that this one replaces.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use config::setup::{InspectedShadow, NamePrivacy, ShadowAnswer, ShadowExample, ShadowGroup};
use control::shadow::{Answer, Comparison, Counts, Example, Explanation, Group, Known, Shadows};

use super::super::context::Context;
use crate::explain::{Asked, Explainer};
use host::time::rfc3339;

/// Maximum number of examples that are explained, the most frequent differences first. Each costs some queries.
const EXPLAINED_MAX: usize = 100;
/// Name in place of one that the configuration hides.
const HIDDEN: &str = "*";

/// Returns the results of all comparisons.
pub(super) fn shadow(context: &Context) -> Shadows {
    let (generation, loaded) = (context.view.live.load(), context.view.loaded());
    let explainer = Explainer::new(&generation, &loaded.outline, &loaded.inspection);
    let mut shower = Shower { explainer, left: EXPLAINED_MAX, names: loaded.names };
    let results = loaded.inspection.shadows.iter().map(|shadow| shadow.results());
    Shadows { comparisons: results.map(|results| shower.comparison(results)).collect() }
}

/// Turns results into responses.
struct Shower<'a> {
    explainer: Explainer<'a>,
    /// Number of explanations that are left.
    left: usize,
    names: NamePrivacy,
}

impl Shower<'_> {
    fn comparison(&mut self, results: InspectedShadow) -> Comparison {
        let InspectedShadow { to, block, since_1970, counts, groups, ungrouped } = results;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let counts = Counts {
            same: counts.same,
            known: counts.known,
            different: counts.different,
            timeout: counts.timeout,
            error: counts.error,
            dropped: counts.dropped,
            skipped: counts.skipped,
        };
        Comparison {
            to: to.to_string(),
            block,
            since_seconds: since_1970.map(|since: Duration| now.saturating_sub(since).as_secs_f64()),
            agreement_percent: counts.agreement_percent(),
            counts,
            groups: groups.into_iter().map(|group| self.group(group)).collect(),
            ungrouped,
        }
    }

    fn group(&mut self, group: ShadowGroup) -> Group {
        let qtype = group.qtype.to_string();
        let known = group.known.map(|(code, section)| Known { code: code.to_owned(), section: section.to_owned() });
        let explains = known.is_none();
        let examples = group.examples.into_iter().map(|example| self.example(example, &qtype, explains));
        Group {
            examples: examples.collect(),
            zone: group.zone,
            old_rcode: group.theirs.to_string(),
            new_rcode: group.ours.to_string(),
            known,
            count: group.count,
            qtype,
        }
    }

    fn example(&mut self, example: ShadowExample, qtype: &str, explains: bool) -> Example {
        let is_shown = self.names == NamePrivacy::Shown;
        let client = example.client.to_string();
        let explained = if explains && is_shown { self.explain(&example.name, qtype, &client) } else { None };
        Example {
            time: rfc3339(example.since_1970),
            name: if is_shown { example.name } else { HIDDEN.to_owned() },
            client,
            differs: example.differs.into_iter().map(str::to_owned).collect(),
            old: answer(example.theirs, is_shown),
            new: answer(example.ours, is_shown),
            explained,
        }
    }

    /// Explains the answer that this server would give now.
    fn explain(&mut self, name: &str, qtype: &str, client: &str) -> Option<Explanation> {
        self.left = self.left.checked_sub(1)?;
        let asked = Asked { name, qtype: Some(qtype), from: Some(client), ..Asked::default() };
        let explained = self.explainer.explain(&asked).ok()?;
        let step = explained.steps.last()?;
        Some(Explanation {
            result: step.result(),
            origin: step.origin(),
            code: explained.why.code,
            why: explained.why.text,
            advice: explained.advice,
        })
    }
}

/// Returns an answer without its records if they would show the names that clients ask for.
fn answer(answer: ShadowAnswer, shows_names: bool) -> Answer {
    let ShadowAnswer { rcode, flags, mut answer, mut authority, more, ede } = answer;
    let hidden = if shows_names { 0 } else { answer.drain(..).count() + authority.drain(..).count() };
    let ede = ede.map(|(code, text)| if text.is_empty() { code.0.to_string() } else { format!("{} {text}", code.0) });
    Answer {
        rcode: rcode.to_string(),
        flags: flags.into_iter().map(str::to_owned).collect(),
        answer,
        authority,
        more: (more + hidden) as u64,
        ede: ede.filter(|_| shows_names),
    }
}
