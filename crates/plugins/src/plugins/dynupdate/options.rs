//! Options of the directive.

use config::options::{Args, DirectiveContext, Problem, Property, Usage};
use wire::Name;
use zone::update::UpdateLimits;

use super::rules::Rule;

/// Defaults of the limits, as in CoreDNS.
const RECORDS_MAX: usize = 10_000;
const BYTES_MAX: usize = 8 << 20;
const UPDATE_RECORDS_MAX: usize = 1024;
/// Largest value of the limits of a zone: the largest zone that fits into a journal.
const LIMIT_MAX: usize = 1 << 30;

/// Parsed `dynupdate` line.
#[derive(Default)]
pub struct Config {
    pub(super) zone: Option<Name>,
    pub(super) seed: Option<String>,
    pub(super) database: Option<String>,
    pub(super) rules: Vec<Rule>,
    records_max: Option<usize>,
    bytes_max: Option<usize>,
    update_records_max: Option<usize>,
}

impl Config {
    /// Returns the zone: the one that is named, or else the only one of the block.
    pub(super) fn zone<'c>(&'c self, block: &'c [Name]) -> Option<&'c Name> {
        let mut others = block.iter();
        let only = others.next().filter(|first| others.all(|other| other == *first));
        self.zone.as_ref().or(only)
    }

    /// Returns the limits of the zone.
    pub(super) fn limits(&self) -> UpdateLimits {
        UpdateLimits { records: self.records_max.unwrap_or(RECORDS_MAX), bytes: self.bytes_max.unwrap_or(BYTES_MAX) }
    }

    /// Returns the maximum number of records in an update.
    pub(super) fn update_records(&self) -> usize {
        self.update_records_max.unwrap_or(UPDATE_RECORDS_MAX)
    }
}

/// Reads the words of the directive's own line.
pub(super) fn read_zone(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    if args.rest().is_empty() {
        return Ok(());
    }
    let first = args.rest()[0].span;
    let mut zones = args.zones()?.into_iter();
    match (zones.next(), zones.next()) {
        (Some(zone), None) => config.zone = Some(zone.into_lowercase()),
        _ => return Err(args.problem_at(first, "exactly one zone is allowed")),
    }
    Ok(())
}

pub(super) const PROPERTIES: &[Property<Config>] = &[
    Property {
        usage: Usage("file SEED"),
        default: "",
        doc: "Zone file with which the zone starts. Never written. Required. With `database`, it is read only as long as \
              the database does not exist.",
        set: |config, args| set_once(&mut config.seed, args, |args| Ok(args.word()?.text.clone())),
    },
    Property {
        usage: Usage("database PATH"),
        default: "none",
        doc: "File that keeps the zone. Without it, updates are lost when the server ends.",
        set: |config, args| set_once(&mut config.database, args, |args| Ok(args.word()?.text.clone())),
    },
    Property {
        usage: Usage("allow KEY NAME TYPE..."),
        default: "",
        doc: "Permission for a TSIG key to change records of these types at a name: an absolute name of the zone, `@` for \
              its apex or `*` for all names. TYPE is `*` for all, and `ANY` is the deletion of a whole name. At least one \
              is required.",
        set: |config, args| {
            config.rules.push(Rule::read(args)?);
            Ok(())
        },
    },
    Property {
        usage: Usage("max_records NUMBER"),
        default: "10000",
        doc: "Maximum number of records in the zone.",
        set: |config, args| set_once(&mut config.records_max, args, |args| args.number(1..=LIMIT_MAX)),
    },
    Property {
        usage: Usage("max_bytes NUMBER"),
        default: "8388608",
        doc: "Maximum length of all records of the zone in bytes, uncompressed.",
        set: |config, args| set_once(&mut config.bytes_max, args, |args| args.number(1..=LIMIT_MAX)),
    },
    Property {
        usage: Usage("max_update_records NUMBER"),
        default: "1024",
        doc: "Maximum number of records in the prerequisite and update sections of an update.",
        set: |config, args| {
            set_once(&mut config.update_records_max, args, |args| args.number(1..=usize::from(u16::MAX)))
        },
    },
];

fn set_once<T>(
    value: &mut Option<T>,
    args: &mut Args<'_>,
    read: impl FnOnce(&mut Args<'_>) -> Result<T, Problem>,
) -> Result<(), Problem> {
    let new = read(args)?;
    match value.replace(new) {
        None => Ok(()),
        Some(_) => Err(args.problem("specified more than once")),
    }
}

/// Checks what no single line shows.
pub(super) fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let Config { seed, rules, .. } = context.config;
    let Some(zone) = context.config.zone(&context.block.zones) else {
        return Err(context.problem("zone is required when the server block does not define exactly one zone"));
    };
    if seed.is_none() {
        return Err(context.problem("file is required"));
    }
    if rules.is_empty() {
        return Err(context.problem("at least one allow rule is required"));
    }
    if let Some((message, help)) = rules.iter().find_map(|rule| rule.stranger(zone)) {
        let problem = context.problem_with("allow", message);
        return Err(Box::new(problem.with_help(help)));
    }
    if !context.block.directives.contains(&"tsig") {
        let help = "add `tsig` with the secrets of the keys and `require_opcode UPDATE`";
        let message = "every update is refused: this server block has no *tsig* to verify the keys";
        return Err(context.warning_at(&context.written.name, message, help));
    }
    Ok(())
}
