//! Choice of the reason for an answer.

use control::explain::{Code, Search, Step, Why};
use wire::Type;

/// Adds the reason of a step that its plugin does not give.
///
/// `old_view` is the text about a watch that fails. It outweighs a denial of the cluster, which may be wrong then.
pub(super) fn complete(step: &mut Step, old_view: Option<&str>) {
    let is_denied = step.rcode.as_deref() == Some("NXDOMAIN");
    if let Some(old_view) = old_view.filter(|_| is_denied && step.plugin.as_deref() == Some("kubernetes")) {
        set(step, Code::OldView, format!("{old_view}; what was created after that is unknown"));
    }
    if let (Some(why), Some(old_view)) = (&mut step.why, old_view)
        && why.code == NOT_LISTED
    {
        why.text = format!("{}: {old_view}", why.text);
    }
    if step.why.is_some() {
        return;
    }
    if let Some(names) = alias_loop(step) {
        set(step, Code::AliasLoop, format!("the alias leads back to itself: {}", names.join(" → ")));
        return;
    }
    let plugin = step.plugin.clone();
    let by = plugin.as_deref().unwrap_or_default();
    match (step.rcode.as_deref(), &plugin) {
        _ if step.dropped => set(step, Code::Dropped, format!("{by} drops the query")),
        (Some("REFUSED"), None) if step.block.is_none() => {
            let text = format!("no server block serves {}", step.name);
            set(step, Code::NoBlock, text);
        }
        (Some(_), None) => set(step, Code::NoPlugin, "no plugin of the server block answers".to_owned()),
        (None, _) => set(step, Code::Waits, format!("{by} would ask an upstream, and an explanation does not")),
        (Some("REFUSED"), Some(_)) => set(step, Code::Refused, format!("{by} refuses the query")),
        (Some("NOERROR"), Some(_)) if step.records.is_empty() => {
            let text = format!("{by} has no record of this type for the name");
            set(step, Code::Denied, text);
        }
        (Some("NXDOMAIN"), Some(_)) => set(step, Code::Denied, format!("{by} does not have the name")),
        (Some("NOERROR"), Some(_)) => {}
        (Some(rcode), Some(_)) => {
            let cause = Some(step.text.as_str()).filter(|text| !text.is_empty()).unwrap_or(rcode).to_owned();
            set(step, Code::Failed, format!("{by} failed: {cause}"));
        }
    }
}

/// Returns true if the aliases of a step lead back to one of them, so that the client gets no address.
pub(super) fn has_alias_loop(step: &Step) -> bool {
    alias_loop(step).is_some()
}

/// Follows the aliases from the name of a step and returns their names, if the last one is among the earlier ones.
fn alias_loop(step: &Step) -> Option<Vec<&str>> {
    let aliases: Vec<(&str, &str)> = step.records.iter().filter_map(|record| alias(record)).collect();
    let mut names = vec![step.name.as_str()];
    loop {
        let last = names.last()?;
        let (_, target) = aliases.iter().find(|(owner, _)| owner.eq_ignore_ascii_case(last))?;
        let is_known = names.iter().any(|name| name.eq_ignore_ascii_case(target));
        names.push(target);
        if is_known {
            return Some(names);
        }
    }
}

/// Returns owner and target of a CNAME record in presentation format.
fn alias(record: &str) -> Option<(&str, &str)> {
    let mut fields = record.split_ascii_whitespace();
    let (owner, rtype) = (fields.next()?, fields.nth(2)?);
    fields.next().filter(|_| rtype == "CNAME").map(|target| (owner, target))
}

fn set(step: &mut Step, code: Code, text: String) {
    step.why = Some(Why { code: code.name().to_owned(), text });
    step.advice = advice_of(code);
}

fn advice_of(code: Code) -> Option<String> {
    Some(code.advice()).filter(|advice| !advice.is_empty()).map(str::to_owned)
}

/// Code of *kubernetes* for a name that is unknown because objects have not been listed.
const NOT_LISTED: &str = "PE-K08";
/// Code of *kubernetes* for a name in a namespace that does not exist.
pub(super) const NO_NAMESPACE: &str = "PE-K01";
/// Codes of *kubernetes* for a name in a namespace that exists.
pub(super) const IN_NAMESPACE: [&str; 8] =
    ["PE-K02", "PE-K03", "PE-K04", "PE-K05", "PE-K08", "PE-K09", "PE-K11", "PE-K13"];

/// Chooses the reason for the whole, and what to do. `text` is the name that the client wrote.
pub(super) fn of_all(
    text: &str,
    steps: &[Step],
    answered: Option<usize>,
    search: Option<&Search>,
    waste: &Waste,
) -> (Why, Option<String>) {
    let why = |code: Code, text: String| (Why { code: code.name().to_owned(), text }, advice_of(code));
    let of_step = |step: &Step| step.why.clone().map(|why| (why, step.advice.clone())).or_else(|| rewritten(step));
    match (answered.and_then(|at| steps.get(at)), answered) {
        (Some(step), Some(at)) if at > 0 => match of_step(step) {
            Some(special) => special,
            None => {
                let (why, usual) = why(Code::Waste, format!("{} for one answer", waste.spent));
                (why, final_dot(text, search).or_else(|| waste.saving.clone()).or(usual))
            }
        },
        (Some(step), _) => of_step(step).unwrap_or_else(|| {
            let ttl = step.records.first().and_then(|record| record.split(' ').nth(1)).unwrap_or("0");
            match search {
                Some(_) if is_searched(step, search) => {
                    why(Code::First, format!("first name of the search path; TTL {ttl} s"))
                }
                _ => why(Code::Answered, format!("{} has the answer; TTL {ttl} s", plugin_of(step))),
            }
        }),
        (None, _)
            if is_external(steps) && !steps.iter().any(has_failed) && in_cluster(text, steps, search).is_none() =>
        {
            let (why, usual) =
                why(Code::Waste, format!("{} for one answer, which is that of an upstream", waste.spent));
            (why, waste.saving.clone().or(usual))
        }
        (None, _) => unanswered(steps, in_cluster(text, steps, search).or_else(|| written(text, steps, search)))
            .unwrap_or_else(|| why(Code::Nowhere, "no name is answered".to_owned())),
    }
}

/// Describes the queries that a client sends for these names.
pub(super) fn spent(queries: u64, names: usize, qtype: Type) -> String {
    let types = if matches!(qtype, Type::A | Type::AAAA) { "A and AAAA".to_owned() } else { qtype.to_string() };
    format!("{queries} queries ({types} of {names} names)")
}

/// Queries that a client sends for one answer, and how to send fewer.
pub(super) struct Waste {
    /// Number of queries, as text.
    pub(super) spent: String,
    /// Advice that leads to the same answer with one name.
    pub(super) saving: Option<String>,
}

/// `ndots` with which names with two dots or more are first asked for as they are.
const FEW_DOTS: u64 = 2;

/// Returns what lets a client ask first for the name of the last step, which is the one that was answered, or that goes
/// to an upstream. Advice that would lead to another name is left out. `names_of` returns the names that a client asks
/// for with another text or `ndots`.
pub(super) fn saving(
    text: &str,
    steps: &[Step],
    search: Option<&Search>,
    autopath: Autopath,
    names_of: impl Fn(&str, &Search) -> Option<String>,
) -> Option<String> {
    let (search, target) = (search?, &steps.last()?.name);
    let is_target = |name: Option<String>| name.is_some_and(|name| name.eq_ignore_ascii_case(target));
    let few_dots = Search { ndots: FEW_DOTS, ..search.clone() };
    let mut ways = Vec::new();
    if is_target(names_of(text, &few_dots)) {
        ways.push(format!("dnsConfig ndots {FEW_DOTS}"));
    }
    ways.push(match is_target(names_of(&format!("{text}."), search)) {
        true => "a dot at the end of the name".to_owned(),
        false => format!("the whole name: {target}"),
    });
    if autopath == Autopath::Missing {
        ways.push("autopath in the Corefile".to_owned());
    }
    let last = ways.pop()?;
    Some(if ways.is_empty() { last } else { format!("{}, or {last}", ways.join(", ")) })
}

/// Whether the Corefile has *autopath*, which does the search on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Autopath {
    Present,
    Missing,
}

/// Returns true if a name ends with the cluster domain, so that no search domain needs to be appended.
fn is_complete(text: &str, search: Option<&Search>) -> bool {
    let domain = search.and_then(|search| search.domains.last());
    domain.is_some_and(|domain| text.to_ascii_lowercase().ends_with(&format!(".{}", domain.to_ascii_lowercase())))
}

/// Advises a final dot for a complete name, to which a client appends its search domains in vain.
fn final_dot(text: &str, search: Option<&Search>) -> Option<String> {
    is_complete(text, search).then(|| format!("write the name with a final dot: {text}."))
}

/// Returns the step of a complete name as it was written.
fn written<'a>(text: &str, steps: &'a [Step], search: Option<&Search>) -> Option<&'a Step> {
    let is_it = |step: &&Step| step.name.trim_end_matches('.').eq_ignore_ascii_case(text);
    steps.iter().find(is_it).filter(|step| step.why.is_some() && is_complete(text, search))
}

/// Returns true if the client gets a failure or nothing in place of an answer.
fn has_failed(step: &Step) -> bool {
    step.dropped || step.rcode.as_deref().is_some_and(|rcode| !matches!(rcode, "NOERROR" | "NXDOMAIN"))
}

/// Plugin that changes questions.
const REWRITING: &str = "rewrite";

/// Returns the reason of an answer to another question than that of the client.
fn rewritten(step: &Step) -> Option<(Why, Option<String>)> {
    let passage = step.trail.iter().find(|passage| passage.plugin == REWRITING)?;
    let text = format!("{REWRITING} ({}) {}", passage.place, passage.did);
    Some((Why { code: Code::Rewritten.name().to_owned(), text }, advice_of(Code::Rewritten)))
}

/// Returns true if a name with a dot, such as that of a host on the Internet, ends at an upstream after other names of
/// the search path.
fn is_external(steps: &[Step]) -> bool {
    let [_, .., last] = steps else { return false };
    let waits = last.rcode.is_none() && !last.dropped && last.upstreams.iter().any(|one| one.state != "down");
    waits && last.name.trim_end_matches('.').contains('.')
}

/// Returns the step that denies the name in the namespace that the client wrote, such as `db.shop` if there is a
/// namespace shop, or in one that does not exist, such as `db.shpo.svc`.
fn in_cluster<'a>(text: &str, steps: &'a [Step], search: Option<&Search>) -> Option<&'a Step> {
    let own = search.and_then(|search| search.domains.first());
    let is_it = |step: &&Step| {
        let Some(why) = &step.why else { return false };
        let domain = step.name.strip_prefix(text).unwrap_or_default().trim_matches('.');
        // The first domain adds the namespace of the client to every name, and the domain `svc.ZONE` makes a namespace
        // of the last label of every name.
        let is_written = own.is_some_and(|own| own != domain);
        let is_named = why.code == NO_NAMESPACE && !domain.starts_with("svc.");
        is_written && (is_named || IN_NAMESPACE.contains(&why.code.as_str()))
    };
    steps.iter().filter(|step| step.rcode.as_deref() == Some("NXDOMAIN")).find(is_it)
}

/// Returns the reason if no step has records. A failure or a wait decides, because it ends the search or may hide an
/// answer; otherwise the name `in_cluster`, or the first one, is the one that was meant. A name such as
/// `www.example.org` was not meant to be in the cluster, so upstreams that are down decide about it.
fn unanswered(steps: &[Step], in_cluster: Option<&Step>) -> Option<(Why, Option<String>)> {
    let is_denial = |step: &&Step| matches!(step.rcode.as_deref(), Some("NXDOMAIN" | "NOERROR"));
    let advised = steps.first().filter(|step| is_denial(step) && step.advice.is_some());
    let meant = suggested(steps).or(advised);
    let exists = steps.iter().find(|step| step.rcode.as_deref() == Some("NOERROR"));
    let trouble = steps.iter().find(|step| !is_denial(step));
    let lost = trouble.filter(|step| step.rcode.is_some() || step.dropped);
    let is_down = |step: &&Step| !step.upstreams.is_empty() && step.upstreams.iter().all(|one| one.state == "down");
    let is_host = |step: &&Step| step.name.trim_end_matches('.').matches('.').count() > 1;
    let outside = steps.last().filter(is_down).filter(is_host);
    let step = exists.or(lost).or(in_cluster).or(outside).or(meant).or(trouble).or(steps.first())?;
    Some((step.why.clone()?, step.advice.clone()))
}

/// Returns the step with the advice that is about this name and not the usual one of its code, such as a name that was
/// meant: the first step, or with a dot in the name, which then may name a namespace, the first of all.
fn suggested(steps: &[Step]) -> Option<&Step> {
    let is_usual = |why: &Why, advice: &str| {
        plugins::reason_codes().any(|reason| reason.code == why.code && reason.advice == advice)
    };
    let is_special = |step: &&Step| match (&step.why, &step.advice, step.rcode.as_deref()) {
        (Some(why), Some(advice), Some("NXDOMAIN")) => !is_usual(why, advice),
        _ => false,
    };
    let has_dot = steps.last().is_some_and(|last| last.name.trim_end_matches('.').contains('.'));
    steps.iter().take(if has_dot { steps.len() } else { 1 }).find(is_special)
}

fn is_searched(step: &Step, search: Option<&Search>) -> bool {
    let name = step.name.trim_end_matches('.');
    search.and_then(|search| search.domains.first()).is_some_and(|domain| name.ends_with(&format!(".{domain}")))
}

fn plugin_of(step: &Step) -> &str {
    step.plugin.as_deref().unwrap_or("the server")
}
