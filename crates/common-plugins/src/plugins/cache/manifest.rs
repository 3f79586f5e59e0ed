//! Options of *cache*.

use core::time::Duration;

use config::options::{Args, DirectiveContext, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::BlockInfo;
use gotext::parse_duration;
use wire::Name;

use crate::shared::option_helpers::zones_label;

use super::class::Class;
use super::metrics;

/// Bounds for one class of responses: answers or denials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) capacity: usize,
    pub(super) ttl_max: u32,
    pub(super) ttl_min: u32,
    /// Zones in which this class is not cached.
    pub(super) disabled: Vec<Name>,
}

/// Prefetch configuration: which entries are refreshed before they expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefetch {
    /// Hits that make an entry worth refreshing; 0 disables prefetching.
    pub(super) amount: u32,
    /// Maximum gap between two hits that are counted together.
    pub(super) within: Duration,
    /// Part of the TTL at its end, in percent, in which an entry is refreshed.
    pub(super) percentage: u32,
}

/// Handling of expired entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stale {
    /// Time after the expiry during which an entry may be served.
    pub(super) keep: Duration,
    /// Query the upstream first and wait at most this long; zero waits for as long as it takes. If `None`, the expired
    /// entry is served at once.
    pub(super) verify: Option<Duration>,
    /// TTL that the client sees.
    pub(super) ttl: u32,
    /// Pause after a failed refresh.
    pub(super) recheck: Duration,
}

/// Configuration of a `cache` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub(super) zones: Vec<Name>,
    pub(super) success: Bounds,
    pub(super) denial: Bounds,
    pub(super) prefetch: Prefetch,
    pub(super) stale: Option<Stale>,
    pub(super) prefer_positive: bool,
    pub(super) servfail: Duration,
    pub(super) keep_ttl: bool,
}

pub(super) const CAPACITY: usize = 10_000;
const SUCCESS_TTL: u32 = 3600;
const DENIAL_TTL: u32 = 1800;
const TTL_MIN: u32 = 5;
/// RFC 2308 §7.1: a failure must not be cached longer.
const SERVFAIL_MAX: Duration = Duration::from_secs(300);
/// Same limit as for failures. RFC 8767 §5 recommends 30 seconds.
const RECHECK_MAX: Duration = Duration::from_secs(300);
/// Allowed range of PERCENTAGE.
const PERCENTAGES: core::ops::RangeInclusive<u32> = 10..=90;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "cache",
    "cache responses",
    || Config {
        zones: Vec::new(),
        success: Bounds { capacity: CAPACITY, ttl_max: SUCCESS_TTL, ttl_min: TTL_MIN, disabled: Vec::new() },
        denial: Bounds { capacity: CAPACITY, ttl_max: DENIAL_TTL, ttl_min: TTL_MIN, disabled: Vec::new() },
        prefetch: Prefetch { amount: 0, within: Duration::from_secs(60), percentage: 10 },
        stale: None,
        prefer_positive: false,
        servfail: Duration::from_secs(5),
        keep_ttl: false,
    },
    super::build,
)
.arguments("cache [TTL] [ZONES...]", read_arguments)
.properties(PROPERTIES)
.metrics(&metrics::ALL)
.check(check)
.role(|line| Role::new(Effect::OnAnswers, &line.config.zones));

static PROPERTIES: &[Property<Config>] = &[
    Property {
        usage: Usage("success CAPACITY [TTL [MINTTL]]"),
        default: "9984 3600 5",
        doc: "Maximum number of cached answers, and the maximum and minimum TTL in seconds.",
        set: |config, args| read_class(&mut config.success, args),
    },
    Property {
        usage: Usage("denial CAPACITY [TTL [MINTTL]]"),
        default: "9984 1800 5",
        doc: "Maximum number of cached denials (NXDOMAIN, no records of the type, SERVFAIL), and the maximum and \
              minimum TTL in seconds.",
        set: |config, args| read_class(&mut config.denial, args),
    },
    Property {
        usage: Usage("prefetch AMOUNT [DURATION [PERCENTAGE%]]"),
        default: "0 1m 10%",
        doc: "Refresh an entry before it expires if it was hit AMOUNT times with no gap longer than DURATION, once \
              less than PERCENTAGE (`10%` to `90%`) of its TTL is left. 0 disables prefetching.",
        set: read_prefetch,
    },
    Property {
        usage: Usage(
            "serve_stale [DURATION [immediate|verify [TIMEOUT|RESPONSE_TTL [RESPONSE_TTL|RECHECK [RECHECK]]]]]",
        ),
        default: "off",
        doc: "Answer with expired entries for DURATION (default 1h) after they expire: `immediate [RESPONSE_TTL \
              [RECHECK]]` or `verify [TIMEOUT [RESPONSE_TTL [RECHECK]]]`. RESPONSE_TTL (default 0s) is the TTL that \
              clients see. RECHECK (default 0s, maximum 5m) is the pause after a failed refresh.",
        set: read_stale,
    },
    Property {
        usage: Usage("serve_stale_policy prefer_positive"),
        default: "off",
        doc: "Prefer an expired answer to a denial, even if the denial is newer. Requires `serve_stale`.",
        set: |config, args| {
            if config.prefer_positive {
                return Err(args.problem("`serve_stale_policy` can only be used once"));
            }
            // CoreDNS ignores the case.
            if args.rest().first().is_some_and(|word| word.text.eq_ignore_ascii_case("prefer_positive")) {
                args.next_word();
                config.prefer_positive = true;
                return Ok(());
            }
            config.prefer_positive = args.choice(&[("prefer_positive", true)])?;
            Ok(())
        },
    },
    Property {
        usage: Usage("servfail DURATION"),
        default: "5s",
        doc: "TTL of cached SERVFAIL responses, at most 5m; 0 disables caching them.",
        set: |config, args| {
            let word = args.rest().first();
            config.servfail = args.duration()?;
            match word {
                Some(word) if config.servfail > SERVFAIL_MAX => {
                    Err(args.bad(word, "allowed: caching SERVFAIL responses over 5 minutes is not permitted"))
                }
                _ => Ok(()),
            }
        },
    },
    Property {
        usage: Usage("disable success|denial [ZONES...]"),
        default: "",
        doc: "Do not cache answers, or denials, for names in ZONES. The default is all names.",
        set: |config, args| {
            let class = args.choice(&Class::ALL.map(|class| (class.label(), class)))?;
            let class = config.bounds_mut(class);
            class.disabled = args.zones_or_all()?;
            Ok(())
        },
    },
    Property {
        usage: Usage("keepttl"),
        default: "off",
        doc: "Answer with the original TTL instead of the remaining one.",
        set: |config, _| {
            config.keep_ttl = true;
            Ok(())
        },
    },
];

fn read_arguments(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    match args.rest().first() {
        Some(word) if word.text.parse::<i64>().is_ok() => {
            let ttl = args.number(1..)?;
            (config.success.ttl_max, config.denial.ttl_max) = (ttl, ttl);
        }
        Some(word) if parse_duration(&word.text).is_ok() => {
            args.warn(word, format!("`{}` is read as a zone; write a TTL as a number of seconds", word.text));
        }
        _ => {}
    }
    config.zones = args.zones()?;
    Ok(())
}

fn read_class(class: &mut Bounds, args: &mut Args<'_>) -> Result<(), Problem> {
    class.capacity = args.number(0..)?;
    if !args.rest().is_empty() {
        class.ttl_max = args.number(1..)?;
    }
    if !args.rest().is_empty() {
        class.ttl_min = args.number(0..)?;
    }
    Ok(())
}

fn read_prefetch(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    config.prefetch.amount = args.number(0..)?;
    if !args.rest().is_empty() {
        config.prefetch.within = args.duration()?;
    }
    if let Some(word) = args.next_word() {
        let number =
            word.text.strip_suffix('%').ok_or_else(|| args.bad(word, "a percentage: its last character is `%`"))?;
        let percentage = number.parse().ok().filter(|percentage| PERCENTAGES.contains(percentage));
        config.prefetch.percentage = percentage.ok_or_else(|| args.bad(word, "a percentage from 10% to 90%"))?;
    }
    Ok(())
}

fn read_stale(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let mut stale = Stale { keep: Duration::from_secs(3600), verify: None, ttl: 0, recheck: Duration::ZERO };
    if !args.rest().is_empty() {
        stale.keep = args.duration()?;
    }
    if let Some(word) = args.next_word() {
        match word.text.to_ascii_lowercase().as_str() {
            "immediate" => {}
            "verify" => stale.verify = Some(if args.rest().is_empty() { Duration::ZERO } else { args.duration()? }),
            _ => return Err(args.bad(word, "`immediate` or `verify`")),
        }
    }
    if let Some(word) = args.rest().first() {
        let ttl = args.duration()?;
        let seconds = u32::try_from(ttl.as_secs()).ok().filter(|_| ttl.subsec_nanos() == 0);
        stale.ttl = seconds.ok_or_else(|| args.bad(word, "a whole number of seconds, at most 4294967295"))?;
    }
    if let Some(word) = args.rest().first() {
        stale.recheck = args.duration()?;
        if stale.recheck > RECHECK_MAX {
            return Err(args.bad(word, "a time of at most 5m"));
        }
    }
    match args.next_word() {
        Some(word) => Err(args.bad(word, "expected here: RECHECK is the last argument")),
        None => {
            config.stale = Some(stale);
            Ok(())
        }
    }
}

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let config = context.config;
    if config.prefer_positive && config.stale.is_none() {
        return Err(context.problem_with("serve_stale_policy", "serve_stale_policy requires serve_stale"));
    }
    Ok(())
}

impl Config {
    /// Returns the bounds of a class.
    pub(super) fn bounds(&self, class: Class) -> &Bounds {
        match class {
            Class::Answer => &self.success,
            Class::Denial => &self.denial,
        }
    }

    fn bounds_mut(&mut self, class: Class) -> &mut Bounds {
        match class {
            Class::Answer => &mut self.success,
            Class::Denial => &mut self.denial,
        }
    }

    /// Returns the zones in effect as the value of a metric label, separated by commas.
    pub(super) fn zones_label(&self, block: &BlockInfo) -> String {
        let zones = if self.zones.is_empty() { &block.zones } else { &self.zones };
        zones_label(zones)
    }
}
