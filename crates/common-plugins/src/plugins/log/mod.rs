//! The plugin *log*: writes a line for each query to the log.
//!
//! The first `log` line whose zones contain the name decides: it logs the query if the response is in one of its
//! classes.

mod fields;

use config::options::{Args, Effect, Manifest, Problem, Property, Role, Usage, zone_names};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, LabelSetter, Plugin, Query, Response, Verdict, Worker, Zones};
use wire::Name;

use crate::shared::log_format::{Format, Seen};
use crate::shared::response_class::Kind;

pub static MANIFEST: Manifest<Rule> = Manifest::new("log", "log queries", Rule::default, build)
    .repeated()
    .arguments("log [NAMES...] [FORMAT]", read)
    .properties(&[Property {
        usage: Usage("class all|success|denial|error [CLASSES...]"),
        default: "all",
        doc: "Classes of responses to log.",
        set: |rule, args| {
            while !args.rest().is_empty() {
                rule.classes |= args.choice(&CLASSES)?;
            }
            Ok(())
        },
    }])
    .role(|line| Role::new(Effect::Aside, &line.config.names));

/// Classes of responses, as bits.
const SUCCESS: u8 = 1;
const DENIAL: u8 = 2;
const ERROR: u8 = 4;
const ALL: u8 = SUCCESS | DENIAL | ERROR;
const CLASSES: [(&str, u8); 4] = [("all", ALL), ("success", SUCCESS), ("denial", DENIAL), ("error", ERROR)];

/// One `log` line.
#[derive(Default)]
pub struct Rule {
    names: Vec<Name>,
    zones: Zones,
    format: Format,
    classes: u8,
}

fn read(rule: &mut Rule, args: &mut Args<'_>) -> Result<(), Problem> {
    let words = args.take_rest();
    let (names, format) = match words {
        [names @ .., last] if !names.is_empty() && last.text.contains('{') => (names, Some(last)),
        names => (names, None),
    };
    for name in names {
        let zones = zone_names(&name.text);
        if zones.is_empty() || name.text.contains('{') || name.text == "stdout" {
            let message = format!("`{}` is read as a name; write a name such as `.` before the format", name.text);
            args.warn(name, message);
        }
        rule.names.extend(zones);
    }
    if names.is_empty() {
        rule.names.push(Name::root());
    }
    if let Some(format) = format {
        rule.format = Format::read(&format.text);
        for (name, near) in rule.format.unknown() {
            let near = near.map_or(String::new(), |near| format!("; did you mean `{{{near}}}`?"));
            args.warn(format, format!("unknown placeholder `{{{name}}}` is logged as it is{near}"));
        }
    }
    Ok(())
}

fn build(rules: Vec<Rule>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let labels = setup.labels();
    let finish = |mut rule: Rule| {
        rule.format.bind(&labels);
        rule.zones = rule.names.iter().cloned().collect();
        rule.classes = if rule.classes == 0 { ALL } else { rule.classes };
        rule
    };
    let (kind, class) = (labels.publish_setter("log/type"), labels.publish_setter("log/class"));
    let QueryFields(describes) = setup.process.find().unwrap_or_default();
    Ok(Some(Part::new(
        Log { rules: rules.into_iter().map(finish).collect(), describes, kind, class },
        Hooks::UP.with_updates(),
    )))
}

/// Capability of a process whose log has a typed member for each value of a query, beside the line. Otherwise it would
/// cost time to write them.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryFields(pub bool);

struct Log {
    rules: Vec<Rule>,
    /// True if the log has members beside the line.
    describes: bool,
    /// Setters of the metadata labels `log/type` and `log/class`.
    kind: LabelSetter,
    class: LabelSetter,
}

impl Plugin for Log {
    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let Some(rule) = self.rules.iter().find(|rule| rule.zones.contain(query.key())) else { return Verdict::Pass };
        let kind = Kind::of(query, response);
        let class = class_of(kind);
        if rule.classes & class != 0 {
            self.kind.set(query, || kind.label().to_owned());
            self.class.set(query, || name_of(class).to_owned());
            let seen = Seen::new(query, response, worker.now());
            let describe = |out: &mut Vec<u8>| {
                if self.describes {
                    fields::write(out, query, response, &seen);
                }
            };
            worker.log_query(|line| rule.format.write(line, &seen), describe);
        }
        Verdict::Pass
    }
}

fn class_of(kind: Kind) -> u8 {
    match kind {
        Kind::NoError | Kind::Delegation => SUCCESS,
        Kind::NameError | Kind::NoData => DENIAL,
        Kind::ServerError | Kind::OtherError | Kind::Meta => ERROR,
    }
}

fn name_of(class: u8) -> &'static str {
    CLASSES.iter().find(|(_, known)| *known == class).map_or("", |(name, _)| *name)
}
