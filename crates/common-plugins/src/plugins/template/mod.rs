//! The plugin *template*: answers queries with records that templates build from the query.
//!
//! The first line whose class, type and zone fit the query decides. If its `match` and `expr` accept the query, its
//! templates are executed, and each output is parsed as a record. An answer that ends in a CNAME record for a query of
//! type A or AAAA is completed with a subquery for the target.

mod data;
mod manifest;

use std::collections::BTreeMap;
use std::sync::Arc;

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{
    Explanation, Failure, Hook, Hooks, Instant, Labels, Plugin, Query, ReasonCode, Response, Subquery, SubqueryTarget,
    Verdict, Worker, Zones,
};
use gotext::regexp::{Captures, Regexp};
use gotext::template::{ExecuteError, Template};
use metrics::{Kind, Metric, Table};
use wire::{Class, EdeCode, Name, NameRef, Owner, Rcode, Section, Type};
use zone::text::{ParseError, Record};

use crate::shared::option_helpers::FOLLOWED;
use data::TemplateData;
use manifest::{Config, NoValueError, PROPERTIES, read_arguments};
use plugin::PerSite;

pub static MANIFEST: Manifest<Config> =
    Manifest::new("template", "answer queries with records made from templates", Config::default, build)
        .repeated()
        .arguments("template CLASS TYPE [ZONES...]", read_arguments)
        .properties(PROPERTIES)
        .metrics(&METRICS)
        .deprecated(&[FOLLOWED])
        .asks_server()
        .role(|line| line.config.role());

/// Default TTL of records in seconds, as in CoreDNS.
const TTL: u32 = 3600;

const LABELS: [&str; 5] = ["server", "zone", "view", "class", "type"];

static MATCHES: Metric = Metric {
    name: "coredns_template_matches_total",
    help: "Counter of template regex matches.",
    kind: Kind::Counter,
    labels: &LABELS,
};
static FAILURES: Metric = Metric {
    name: "coredns_template_template_failures_total",
    help: "Counter of go template failures.",
    kind: Kind::Counter,
    labels: &LABELS,
};
static RECORD_FAILURES: Metric = Metric {
    name: "coredns_template_rr_failures_total",
    help: "Counter of mis-templated RRs.",
    kind: Kind::Counter,
    labels: &LABELS,
};
static METRICS: [&Metric; 3] = [&MATCHES, &FAILURES, &RECORD_FAILURES];

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let rules = configs.into_iter().map(|config| Rule::new(config, setup)).collect();
    Ok(Some(Part::new(Templates { rules, labels: setup.labels() }, Hooks::DOWN)))
}

struct Templates {
    rules: Vec<Rule>,
    labels: Arc<Labels>,
}

/// A `template` line.
struct Rule {
    config: Config,
    zones: Zones,
    fallthrough: Zones,
    metrics: PerSite<Vec<ZoneMetrics>>,
    /// Values of the metric labels `class` and `type`.
    classes: Vec<Class>,
    types: Vec<Type>,
}

/// Metrics of one zone of a line, by class and type.
struct ZoneMetrics {
    matches: Table,
    failures: Table,
    record_failures: Table,
}

impl Rule {
    fn new(mut config: Config, setup: &mut Setup<'_>) -> Rule {
        config.bind(&setup.labels());
        let zones = setup.zones_or_keys(&config.zones);
        let fallthrough = config.fallthrough.take().into_iter().flatten().collect();
        let classes = config.class.map_or_else(|| with_mnemonic(Class, Class::mnemonic), |class| vec![class]);
        let types = config.rtype.map_or_else(|| with_mnemonic(Type, Type::mnemonic), |rtype| vec![rtype]);
        let class_labels: Vec<&str> = classes.iter().map(|class| class.mnemonic().unwrap_or_default()).collect();
        let type_labels: Vec<&str> = types.iter().map(|rtype| rtype.mnemonic().unwrap_or_default()).collect();
        let metrics = PerSite::new(setup.block, |site| {
            let of_zone = |zone: &Name| {
                let zone = zone.to_string();
                let labels = [site.server.as_str(), &zone, &site.view];
                let table = |metric| setup.registry.table(metric, &labels, &[&class_labels, &type_labels]);
                let [matches, failures, record_failures] = METRICS.map(table);
                ZoneMetrics { matches, failures, record_failures }
            };
            zones.names().iter().map(of_zone).collect()
        });
        Rule { config, zones, fallthrough, metrics, classes, types }
    }

    /// Returns the index of the longest zone that contains the name, if the line is for the class and type of the
    /// query. Type ANY and class ANY in a query match all lines.
    fn zone_of(&self, query: &Query) -> Option<usize> {
        let is_for = self.config.class.is_none_or(|class| [class, Class::ANY].contains(&query.qclass))
            && self.config.rtype.is_none_or(|rtype| [rtype, Type::ANY].contains(&query.qtype));
        if is_for { self.zones.find(query.key()) } else { None }
    }

    /// Returns the data for the templates, or `None` if the name does not match or a condition is false.
    ///
    /// # Errors
    /// A variable or a condition has no value.
    fn data_for<'a>(
        &'a self,
        query: &'a Query,
        name: &'a str,
        zone: usize,
        label: &'a dyn Fn(&str) -> Option<engine::Label>,
    ) -> Result<Option<TemplateData<'a>>, NoValueError> {
        let found =
            |regexp: &'a Regexp| -> Option<(&'a Regexp, Captures<'a>)> { Some((regexp, regexp.captures(name)?)) };
        let matched = self.config.matches.iter().find_map(found);
        if matched.is_none() && !self.config.matches.is_empty() {
            return Ok(None);
        }
        let zone = self.zones.names().get(zone).map_or(NameRef::ROOT, Name::as_ref);
        let data = TemplateData { query, name, zone, matched, label, variables: BTreeMap::new() };
        let variables = self.config.values(query, &|group| data.group(group))?;
        Ok(variables.map(|variables| TemplateData { variables, ..data }))
    }

    /// Counts a match, and the failure of a template if there is one.
    fn count(&self, query: &Query, zone: usize, error: Option<&AnswerError>, worker: &Worker) {
        let Some(metrics) = self.metrics.of(query).and_then(|zones| zones.get(zone)) else { return };
        let class = self.classes.binary_search(&query.qclass).unwrap_or_default();
        let series = [class, self.types.binary_search(&query.qtype).unwrap_or_default(), 0];
        worker.counters.count(metrics.matches.counter(series));
        match error {
            None => {}
            Some(AnswerError::Value(_) | AnswerError::Template(_)) => {
                worker.counters.count(metrics.failures.counter(series));
            }
            Some(AnswerError::Record { .. }) => worker.counters.count(metrics.record_failures.counter(series)),
        }
    }
}

impl Plugin for Templates {
    fn reads_client(&self, query: &Query) -> bool {
        self.rules.iter().any(|rule| rule.zone_of(query).is_some() && rule.config.reads_client())
    }

    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        for (at, rule) in self.rules.iter().enumerate() {
            let Some(zone) = rule.zone_of(query) else { continue };
            let name = query.key().to_string();
            let label = |label: &str| self.labels.find(label);
            let data = match rule.data_for(query, &name, zone, &label) {
                Ok(data) => data,
                Err(error) => return AnswerError::Value(error).into_verdict(),
            };
            let Some(data) = data else {
                if rule.fallthrough.contain(query.key()) {
                    continue;
                }
                response.set_rcode(Rcode::SERVFAIL);
                return Verdict::Done;
            };
            let answered = rule.answer(&data, response);
            rule.count(query, zone, answered.as_ref().err(), worker);
            return match answered {
                Ok(None) => Verdict::Done,
                Ok(Some(name)) => {
                    let qtype = query.qtype;
                    query.set_note(at as u64);
                    Verdict::Subquery(Box::new(Subquery { name, qtype, target: SubqueryTarget::Top }))
                }
                Err(error) => error.into_verdict(),
            };
        }
        Verdict::Pass
    }

    /// Appends the answer for the target of a CNAME record, and then the authority and additional records.
    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        _: &mut Worker,
    ) -> Verdict {
        response.append_answers(sub);
        let rule = usize::try_from(query.note()).ok().and_then(|at| self.rules.get(at));
        let Some((rule, zone)) = rule.and_then(|rule| Some((rule, rule.zone_of(query)?))) else {
            return Verdict::Done;
        };
        let name = query.key().to_string();
        let label = |label: &str| self.labels.find(label);
        let Ok(Some(data)) = rule.data_for(query, &name, zone, &label) else { return Verdict::Done };
        match rule.add_rest(&data, response) {
            Ok(()) => Verdict::Done,
            Err(error) => error.into_verdict(),
        }
    }

    fn explain(&self, _: Hook, query: &Query, response: &Response, _: Instant) -> Option<Explanation> {
        let refused = response.rcode() == Rcode::SERVFAIL;
        let why = || format!("no `match` of the template accepts {}, and it has no `fallthrough`", query.name());
        let explanation = Explanation::new("made from a template");
        Some(if refused { Explanation::new("no match").because(&NO_MATCH, why()) } else { explanation })
    }
}

/// Codes of the reasons.
pub(crate) static REASONS: [&ReasonCode; 1] = [&NO_MATCH];

static NO_MATCH: ReasonCode = ReasonCode {
    code: "PE-T01",
    meaning: "The template is for this zone and type, but its `match` does not accept the name",
    advice: "Correct the `match`, or add `fallthrough` to the template",
};

/// Returns the codes that have a mnemonic, in order, after one that stands for all others with an empty label.
fn with_mnemonic<T: Copy>(code: fn(u16) -> T, mnemonic: fn(T) -> Option<&'static str>) -> Vec<T> {
    let known = (1..=u16::MAX).map(code).filter(|code| mnemonic(*code).is_some());
    core::iter::once(code(0)).chain(known).collect()
}

/// Reason why a line has no answer for a query. The operator must change the line.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    /// A variable or a condition has no value.
    #[error("template: {0}")]
    Value(#[source] NoValueError),
    /// A template cannot be executed.
    #[error("template: {0}")]
    Template(#[source] ExecuteError),
    /// The output of a template is not a record.
    #[error("template: {error}: {line:?}")]
    Record {
        #[source]
        error: ParseError,
        line: String,
    },
}

impl AnswerError {
    fn into_verdict(self) -> Verdict {
        let failure = Failure::servfail(EdeCode::OTHER, self.to_string());
        Verdict::Fail(failure.with_text("the template for this name has failed"))
    }
}

impl Rule {
    /// Writes the answer. Returns the target of a CNAME record that has to be resolved before the rest is written.
    fn answer(&self, data: &TemplateData<'_>, response: &mut Response) -> Result<Option<Name>, AnswerError> {
        let Config { rcode, ede, .. } = &self.config;
        response.set_rcode(*rcode);
        if let Some((code, text)) = ede {
            response.set_ede(*code, text.clone());
        }
        if matches!(*rcode, Rcode::SERVFAIL | Rcode::REFUSED | Rcode::FORMERR | Rcode::NOTIMP) {
            response.set_local();
            return Ok(None);
        }
        response.set_authoritative(true);
        let mut target = None;
        for template in &self.config.answers {
            let Some(record) = record_of(template, data)? else { continue };
            if record.rtype == Type::CNAME && data.query.qtype.is_address() {
                target = NameRef::from_bytes(&record.rdata).ok().map(NameRef::to_name);
            }
            push(response, Section::Answer, data, &record);
        }
        if target.is_none() {
            response.set_local();
            self.add_rest(data, response)?;
        }
        Ok(target)
    }

    fn add_rest(&self, data: &TemplateData<'_>, response: &mut Response) -> Result<(), AnswerError> {
        let Config { authorities, additionals, .. } = &self.config;
        for (section, templates) in [(Section::Authority, authorities), (Section::Additional, additionals)] {
            for template in templates {
                if let Some(record) = record_of(template, data)? {
                    push(response, section, data, &record);
                }
            }
        }
        Ok(())
    }
}

/// Executes a template and parses its output as a record. Returns `None` if the output is empty.
fn record_of(template: &Template, data: &TemplateData<'_>) -> Result<Option<Record>, AnswerError> {
    let text = template.execute(data).map_err(AnswerError::Template)?;
    let line = first_entry(&text);
    if line.trim().is_empty() {
        return Ok(None);
    }
    let record = zone::text::record(line, NameRef::ROOT, TTL);
    record.map(Some).map_err(|error| AnswerError::Record { error, line: line.to_owned() })
}

/// Appends a record. If its owner is the queried name, the owner has the case of the query.
fn push(response: &mut Response, section: Section, data: &TemplateData<'_>, record: &Record) {
    let owner = record.owner.as_ref();
    let owner = if owner == data.query.key() { Owner::Question } else { Owner::Name(owner) };
    response.message.push_data(section, owner, (record.rtype, record.class, record.ttl), &record.rdata);
}

/// Returns the text up to the end of the first record. As in CoreDNS, further records of a template are ignored.
fn first_entry(text: &str) -> &str {
    let text = text.trim_start();
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            '\n' if depth == 0 && !quoted => return &text[..at],
            _ => {}
        }
    }
    text
}
