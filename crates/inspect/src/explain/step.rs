//! One query: from what the plugins did to a [`Step`].

use std::collections::BTreeSet;

use control::explain::{Cached, NotReady, NotReadyEndpoint, Object, Passage, Place, Rule, Step, Upstream, Why};
use engine::{
    BlockId, CachedAnswer, Decision, ExplainedEndpoints, ExplainedUpstream, Explanation, Generation, Hook, ListenerId,
    Progress, RecordedHook, Rehearsed,
};
use plugins::record_text;
use wire::{EdeCode, Message, Name, Record, Section, Type};

use super::outline::Outline;

/// Plugin that selects server blocks by an expression.
const VIEW: &str = "view";

/// What a step is looked up in.
pub(super) struct View<'a> {
    pub(super) generation: &'a Generation,
    pub(super) outline: &'a Outline,
    pub(super) listener: ListenerId,
}

/// Describes a query.
pub(super) fn of(name: &Name, rehearsed: &Rehearsed, view: &View<'_>) -> Step {
    let mut step = Step { name: name.to_string(), ..Step::default() };
    match rehearsed.progress {
        Progress::Answered => add_message(&mut step, rehearsed),
        Progress::Dropped => step.dropped = true,
        Progress::Waiting => {}
    }
    for passage in rehearsed.hooks.iter().filter_map(|hook| passage(hook, view)) {
        // Aliases that lead to each other do the same again and again.
        if !step.trail.contains(&passage) {
            step.trail.push(passage);
        }
    }
    let Some(first) = rehearsed.hooks.first() else {
        // A server block whose plugins all have other zones fails otherwise.
        if step.rcode.as_deref() == Some("REFUSED") {
            step.text = blocks_of(view);
        }
        return step;
    };
    step.block = view.outline.block(first.block).cloned();
    if let Some(decider) = decider(rehearsed) {
        step.plugin = Some(decider.plugin.to_owned());
        step.place = view.outline.directive(decider.block, decider.order).cloned();
        step.block = view.outline.block(decider.block).cloned();
        if let Some(explanation) = &decider.explanation {
            add_explanation(&mut step, explanation);
        } else if let Decision::Fail(failure) = &decider.decision {
            step.text = failure.cause.to_string();
        }
    }
    step
}

/// Returns the rules that look at the client's address on the way of a query: those of the plugins that it passed, and
/// the *view* of each server block that could have served it.
pub(super) fn rules_by_address(name: &Name, rehearsed: &Rehearsed, view: &View<'_>) -> Vec<Rule> {
    let View { generation, outline, listener } = view;
    let rule = |plugin: &str, place: Option<&Place>| Rule {
        plugin: plugin.to_owned(),
        place: place.cloned().unwrap_or_default(),
    };
    let served = rehearsed.hooks.first().and_then(|_| generation.sites.get(rehearsed.site.0));
    let depth = |zone: &str| Name::from_text(zone).map_or(0, |zone| zone.as_ref().labels().count());
    let holds = |zone: &str| Name::from_text(zone).is_ok_and(|zone| name.as_ref().is_within(zone.as_ref()));
    let sites = generation.sites.iter().filter(|site| {
        // A block with a shorter zone than the one that serves is not considered.
        let is_deep = served.is_none_or(|served| depth(&site.zone) >= depth(&served.zone));
        site.listener == *listener && is_deep && holds(&site.zone)
    });
    let blocks: BTreeSet<usize> = host::sorting::set(sites.map(|site| site.block.0));
    let filtered = blocks.into_iter().filter(|at| {
        let filter = generation.blocks.get(*at).and_then(|block| block.filter.as_ref());
        filter.is_some_and(|filter| filter.reads_client)
    });
    let views = filtered.map(|at| rule(VIEW, outline.first_directive(BlockId(at), VIEW)));
    let passed = rehearsed.hooks.iter().filter(|hook| hook.reads_client);
    views.chain(passed.map(|hook| rule(hook.plugin, outline.directive(hook.block, hook.order)))).collect()
}

/// Returns the hook that decided about the answer. `None` if every plugin passed the query on.
fn decider(rehearsed: &Rehearsed) -> Option<&RecordedHook> {
    if rehearsed.progress == Progress::Waiting {
        return rehearsed.hooks.last();
    }
    let nobody = rehearsed.failure.as_ref().is_some_and(|failure| failure.ede == EdeCode::NOT_AUTHORITATIVE);
    let mut decider = None;
    for hook in rehearsed.hooks.iter().filter(|hook| !hook.is_subquery) {
        match (hook.hook, &hook.decision) {
            (Hook::Response, Decision::Pass) => {}
            (Hook::Query, Decision::Pass) => decider = None,
            _ => decider = Some(hook),
        }
    }
    // A denial that falls through the last plugin of the chain ends like a query that every plugin passed on.
    decider.filter(|hook: &&RecordedHook| !(nobody && hook.decision == Decision::Missing))
}

fn add_message(step: &mut Step, rehearsed: &Rehearsed) {
    let Ok(message) = Message::parse(&rehearsed.message) else { return };
    step.truncated = message.header().flags.truncated();
    step.rcode = Some(message.header().flags.rcode().to_string());
    step.ede = rehearsed.ede.map(|EdeCode(code)| code);
    for record in message.records().filter(|record| record.rtype() != Type::OPT) {
        let Some(text) = text_of(&record) else { continue };
        match record.section() {
            Section::Answer => step.records.push(text),
            Section::Authority => step.authority.push(text),
            Section::Additional => step.additional.push(text),
        }
    }
}

/// Returns a record in presentation format.
pub(super) fn text_of(record: &Record<'_>) -> Option<String> {
    record_text(&record.owner().ok()?, record)
}

fn add_explanation(step: &mut Step, explanation: &Explanation) {
    step.text.clone_from(&explanation.text);
    step.object = explanation.object.as_ref().map(|object| Object {
        kind: object.kind.to_owned(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        version: object.version.clone(),
    });
    step.cache = explanation.cache.as_ref().map(cached);
    step.upstreams = explanation.upstreams.iter().map(upstream).collect();
    step.not_ready = explanation.not_ready.as_ref().map(not_ready);
    if let Some(reason) = &explanation.reason {
        step.why = Some(Why { code: reason.code.code.to_owned(), text: reason.text.clone() });
        let usual = Some(reason.code.advice).filter(|advice| !advice.is_empty()).map(str::to_owned);
        step.advice = reason.advice.clone().or(usual);
    }
}

fn cached(cache: &CachedAnswer) -> Cached {
    Cached {
        denial: cache.denial,
        age_seconds: cache.age.as_secs_f64(),
        ttl_seconds: cache.ttl.as_secs_f64(),
        stale_seconds: cache.stale.as_secs_f64(),
    }
}

fn not_ready(endpoints: &ExplainedEndpoints) -> NotReady {
    let each = endpoints.first.iter().cloned();
    NotReady {
        count: endpoints.count as u64,
        endpoints: each.map(|(pod, address)| NotReadyEndpoint { pod, address }).collect(),
    }
}

fn upstream(upstream: &ExplainedUpstream) -> Upstream {
    Upstream {
        address: upstream.address.to_string(),
        transport: upstream.transport.to_owned(),
        state: upstream.state.to_owned(),
        down_seconds: upstream.down_for.map(|time| time.as_secs_f64()),
        error: upstream.error.clone(),
        failed_seconds: upstream.last_failure.as_ref().map(|(since, _)| since.as_secs_f64()),
        failure: upstream.last_failure.as_ref().map(|(_, error)| error.clone()),
    }
}

/// Returns what a plugin did on the way, if it is worth a line.
fn passage(hook: &RecordedHook, view: &View<'_>) -> Option<Passage> {
    let (name, qtype) = &hook.question;
    let did = match (&hook.decision, &hook.changed) {
        (Decision::Subquery(target, target_type), _) => format!("asks for {target} {target_type}"),
        (Decision::Missing, _) => {
            let is_last = view.generation.blocks.get(hook.block.0).is_none_or(|block| {
                let step = block.chain.steps().get(hook.step);
                step.is_none_or(|step| !step.fallthrough.contain(name.clone().into_lowercase().as_ref()))
            });
            if is_last {
                return None;
            }
            "denies the name, and fallthrough passes it on".to_owned()
        }
        (_, Some((after, after_type))) if hook.hook == Hook::Query => {
            format!("changes the question {name} {qtype} to {after} {after_type}")
        }
        _ => return None,
    };
    let place = view.outline.directive(hook.block, hook.order).cloned().unwrap_or_else(Place::default);
    Some(Passage { plugin: hook.plugin.to_owned(), place, did })
}

/// Describes which zones a listener serves.
fn blocks_of(view: &View<'_>) -> String {
    let View { generation, outline, listener } = view;
    let sites = generation.sites.iter().filter(|site| site.listener == *listener);
    let zones: Vec<String> = sites
        .map(|site| {
            let place = outline.block(site.block).map(|block| format!(" ({})", block.place));
            format!("{}{}", site.zone, place.unwrap_or_default())
        })
        .collect();
    format!("no server block on {}; blocks there: {}", generation.listener(*listener).label, zones.join(", "))
}
