//! Response rate limiting: a limit for the equal responses that a network gets per second over UDP.

mod accounts;
mod cookies;

use config::options::{Args, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError};
use core::net::IpAddr;
use core::time::Duration;
use engine::{Hooks, Instant, Plugin, Query, Response, Transport, Verdict, Worker};
use metrics::{Counter, Kind, Metric};
use std::sync::Arc;
use wire::{Name, OptionCode, Rcode, Section, Type};

use accounts::{Accounts, Decision, Terms};
use common_plugins::shared::{last_good, open_error};
use cookies::{Checked, Secrets};

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "rrl",
    "limit the rate of responses, so that forged queries cannot flood others",
    Config::default,
    build,
)
.first_line_wins()
.arguments("rrl [ZONES...]", |config, args| {
    config.zones = args.zones()?;
    Ok(())
})
.properties(PROPERTIES)
.metrics(&[&REQUESTS, &RESPONSES, &SLIPS, &COOKIES])
.role(|line| Role::new(Effect::Aside, &line.config.zones));

static REQUESTS: Metric = Metric {
    name: "coredns_rrl_requests_exceeded_total",
    help: "Counter of requests exceeding QPS limit.",
    kind: Kind::Counter,
    labels: &[],
};
static RESPONSES: Metric = Metric {
    name: "coredns_rrl_responses_exceeded_total",
    help: "Counter of responses exceeding QPS limit.",
    kind: Kind::Counter,
    labels: &[],
};
static SLIPS: Metric = Metric {
    name: "portolan_rrl_slips_total",
    help: "Responses exceeding the limit that were sent truncated (slip-ratio).",
    kind: Kind::Counter,
    labels: &[],
};

static COOKIES: Metric = Metric {
    name: "portolan_rrl_cookies_total",
    help: "Responses over UDP that were not limited, because the query had a valid server cookie (cookies).",
    kind: Kind::Counter,
    labels: &[],
};

/// Maximum number of accounts. They take 16 bytes each, so 16 MB.
const TABLE_SIZE_MAX: usize = 1_000_000;
/// Maximum window in seconds: longer, a victim of forged queries would hardly get answers again.
const WINDOW_MAX_SECONDS: f64 = 3600.0;
/// Number of types of responses.
const KINDS: usize = 5;

/// Types of responses, each with an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ResponseKind {
    Response,
    NoData,
    NameError,
    Referral,
    Error,
}

/// Options of the directive.
pub struct Config {
    zones: Vec<Name>,
    window: Duration,
    ipv4_prefix: u8,
    ipv6_prefix: u8,
    /// Time per response, by [`ResponseKind`]. `None` is as for positive responses, and zero is without a limit.
    intervals: [Option<Duration>; KINDS],
    requests: Duration,
    slip_ratio: u8,
    table_size: usize,
    report_only: bool,
    cookies: Option<CookieSource>,
}

/// Source of the secrets of server cookies.
enum CookieSource {
    Random,
    /// Path as it is written.
    File(String),
}

impl Default for Config {
    fn default() -> Self {
        Config {
            zones: Vec::new(),
            window: Duration::from_secs(15),
            ipv4_prefix: 24,
            ipv6_prefix: 56,
            intervals: [None; KINDS],
            requests: Duration::ZERO,
            slip_ratio: 0,
            table_size: 100_000,
            report_only: false,
            cookies: None,
        }
    }
}

/// Returns a property for the allowance of a type of responses.
const fn allowance(
    usage: &'static str,
    default: &'static str,
    doc: &'static str,
    set: fn(&mut Config, &mut Args<'_>) -> Result<(), Problem>,
) -> Property<Config> {
    Property { usage: Usage(usage), default, doc, set }
}

static PROPERTIES: &[Property<Config>] = &[
    Property {
        usage: Usage("window SECONDS"),
        default: "15",
        doc: "Time for which a client in debt must be quiet, at most, until it gets responses again.",
        set: |config, args| {
            let word = args.word()?;
            let seconds = word.text.parse().ok().filter(|seconds| *seconds > 0.0 && *seconds <= WINDOW_MAX_SECONDS);
            let seconds: f64 = seconds.ok_or_else(|| args.bad(word, "a number of seconds above 0, at most 3600"))?;
            config.window = Duration::from_secs_f64(seconds);
            Ok(())
        },
    },
    Property {
        usage: Usage("ipv4-prefix-length LENGTH"),
        default: "24",
        doc: "Length of the IPv4 prefix whose addresses count as one client.",
        set: |config, args| {
            config.ipv4_prefix = args.number(1..=32)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("ipv6-prefix-length LENGTH"),
        default: "56",
        doc: "Length of the IPv6 prefix whose addresses count as one client.",
        set: |config, args| {
            config.ipv6_prefix = args.number(1..=128)?;
            Ok(())
        },
    },
    allowance(
        "responses-per-second ALLOWANCE",
        "0",
        "Number of positive responses for a name and type per second and client; 0 for no limit.",
        |config, args| config.take(ResponseKind::Response, args),
    ),
    allowance(
        "nodata-per-second ALLOWANCE",
        "responses-per-second",
        "Number of NODATA responses for a name.",
        |config, args| config.take(ResponseKind::NoData, args),
    ),
    allowance(
        "nxdomains-per-second ALLOWANCE",
        "responses-per-second",
        "Number of NXDOMAIN responses for a zone.",
        |config, args| config.take(ResponseKind::NameError, args),
    ),
    allowance(
        "referrals-per-second ALLOWANCE",
        "responses-per-second",
        "Number of referrals for a delegation and type.",
        |config, args| config.take(ResponseKind::Referral, args),
    ),
    allowance("errors-per-second ALLOWANCE", "responses-per-second", "Number of other errors.", |config, args| {
        config.take(ResponseKind::Error, args)
    }),
    allowance(
        "requests-per-second ALLOWANCE",
        "0",
        "Number of requests of a client per second, over any transport; further ones are dropped. 0 for no limit.",
        |config, args| {
            config.requests = interval(args)?;
            Ok(())
        },
    ),
    Property {
        usage: Usage("slip-ratio N"),
        default: "0",
        doc: "Of the responses over the limit, send every Nth one truncated, so that real clients ask over TCP; at \
              most 10. 0: send none.",
        set: |config, args| {
            config.slip_ratio = args.number(0..=10)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("max-table-size SIZE"),
        default: "100000",
        doc: "Number of accounts, at most 1,000,000. Each takes 16 bytes. With more clients and names, some share \
              accounts.",
        set: |config, args| {
            let word = args.word()?;
            let size: usize = word.text.parse().map_err(|_| args.bad(word, "a number"))?;
            if size == 0 || size > TABLE_SIZE_MAX {
                args.warn(word, format!("the maximum of {TABLE_SIZE_MAX} is used"));
            }
            config.table_size = if size == 0 { TABLE_SIZE_MAX } else { size.min(TABLE_SIZE_MAX) };
            Ok(())
        },
    },
    Property {
        usage: Usage("cookies [FILE]"),
        default: "off",
        doc: "Send server cookies (RFC 9018), and limit no response to a query with a valid one. FILE has up to four \
              secrets of 32 hexadecimal digits, one per line: the first makes cookies, and all verify. Servers that \
              share an address need the same. Without FILE, the secret is random, and changes with each reload.",
        set: |config, args| {
            let file = args.take_rest().first().map(|word| CookieSource::File(word.text.clone()));
            config.cookies = Some(file.unwrap_or(CookieSource::Random));
            Ok(())
        },
    },
    Property {
        usage: Usage("report-only"),
        default: "off",
        doc: "Count what exceeds the limits, and send it.",
        set: |config, _| {
            config.report_only = true;
            Ok(())
        },
    },
];

/// Parses a number per second. Returns the time of each, or zero for no limit.
fn interval(args: &mut Args<'_>) -> Result<Duration, Problem> {
    let word = args.word()?;
    let rate = word.text.parse().ok().filter(|rate| *rate == 0.0 || (1e-3..=1e6).contains(rate));
    let rate: f64 = rate.ok_or_else(|| args.bad(word, "0, or a number per second from 0.001 to 1000000"))?;
    Ok(if rate > 0.0 { Duration::from_secs_f64(1.0 / rate) } else { Duration::ZERO })
}

impl Config {
    fn take(&mut self, kind: ResponseKind, args: &mut Args<'_>) -> Result<(), Problem> {
        self.intervals[kind as usize] = Some(interval(args)?);
        Ok(())
    }
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let zones = setup.zones_or_keys(&config.zones);
    let [requests, responses, slips, known] =
        [&REQUESTS, &RESPONSES, &SLIPS, &COOKIES].map(|metric| setup.registry.counter(metric, &[]));
    let accounts = Accounts::new(config.table_size);
    let secrets = config.cookies.as_ref().map(|source| secrets(source, setup)).transpose()?;
    let plugin = Rrl { config, accounts, secrets, requests, responses, slips, known };
    Ok(Some(Part { zones: Some(zones), ..Part::new(plugin, Hooks::BOTH) }))
}

/// Returns the secrets of a file, or a random one.
fn secrets(source: &CookieSource, setup: &mut Setup<'_>) -> Result<Arc<Secrets>, SetupError> {
    let CookieSource::File(name) = source else {
        return Secrets::random()
            .map(Arc::new)
            .ok_or_else(|| SetupError::new("cookies: the system has no random numbers".to_owned()));
    };
    let path = setup.path(name);
    last_good::load(format!("rrl/{}", path.display()), setup, |files| {
        let bytes = open_error::read(files, &path).map_err(SetupError::from_error)?;
        Secrets::read(&bytes).map_err(|error| SetupError::new(format!("{}: {error}", path.display())))
    })
}

struct Rrl {
    config: Config,
    accounts: Accounts,
    secrets: Option<Arc<Secrets>>,
    requests: Counter,
    responses: Counter,
    slips: Counter,
    known: Counter,
}

impl Plugin for Rrl {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if is_own(query) {
            return Verdict::Pass;
        }
        if !self.config.requests.is_zero() {
            let terms = self.terms(self.config.requests);
            if self.accounts.debit(self.network(query), terms, elapsed(worker)) != Decision::Send {
                worker.counters.count(self.requests);
                if !self.config.report_only {
                    return Verdict::Drop;
                }
            }
        }
        if self.secrets.is_some() && option(query).is_some_and(|option| !cookies::is_well_formed(option)) {
            response.set_local();
            response.set_rcode(Rcode::FORMERR);
            return Verdict::Done;
        }
        Verdict::Pass
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        // Only UDP has clients that did not ask.
        if query.peer.transport != Transport::Udp || is_own(query) || response.is_dropped() {
            return Verdict::Pass;
        }
        let Some(cookie) = self.secrets.as_ref().and_then(|secrets| cookie(secrets, query, worker)) else {
            return self.limit(false, query, response, worker);
        };
        let verdict = self.limit(cookie.is_valid, query, response, worker);
        // A truncated response has it too: a real client is then not limited with its next query.
        response.set_option(OptionCode::COOKIE, cookie.reply.to_vec());
        verdict
    }

    fn rehearse_query(&self, _: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Verdict::Pass
    }

    fn rehearse_response(&self, _: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Verdict::Pass
    }
}

impl Rrl {
    /// Debits a response over UDP, and truncates or drops it above the limit. A proved address has no limit.
    fn limit(&self, is_proved: bool, query: &Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let kind = kind_of(response);
        let interval = self.interval(kind);
        if interval.is_zero() {
            return Verdict::Pass;
        }
        if is_proved {
            worker.counters.count(self.known);
            return Verdict::Pass;
        }
        let decision = self.debit(kind, query, response, self.terms(interval), elapsed(worker));
        if decision == Decision::Send {
            return Verdict::Pass;
        }
        worker.counters.count(self.responses);
        match decision {
            _ if self.config.report_only => Verdict::Pass,
            Decision::Slip => {
                worker.counters.count(self.slips);
                truncate(query, response);
                Verdict::Pass
            }
            Decision::Send | Decision::Drop => Verdict::Drop,
        }
    }

    fn terms(&self, interval: Duration) -> Terms {
        Terms { interval, window: self.config.window, slip_ratio: self.config.slip_ratio }
    }

    fn interval(&self, kind: ResponseKind) -> Duration {
        let usual = self.config.intervals[ResponseKind::Response as usize].unwrap_or_default();
        self.config.intervals[kind as usize].unwrap_or(usual)
    }

    /// Debits a response. Equal responses have one account, in the same sense as in BIND.
    fn debit(&self, kind: ResponseKind, query: &Query, response: &Response, terms: Terms, now: Duration) -> Decision {
        let (network, own) = (self.network(query), query.key().as_bytes());
        match kind {
            ResponseKind::Response => self.accounts.debit((network, kind, query.qtype.0, own), terms, now),
            ResponseKind::NoData => self.accounts.debit((network, kind, own), terms, now),
            // All names that do not exist in a zone, and all names below a delegation.
            ResponseKind::NameError => {
                let zone = authority(response);
                self.accounts.debit((network, kind, zone.as_ref().as_bytes()), terms, now)
            }
            ResponseKind::Referral => {
                let zone = authority(response);
                self.accounts.debit((network, kind, query.qtype.0, zone.as_ref().as_bytes()), terms, now)
            }
            ResponseKind::Error => self.accounts.debit((network, kind), terms, now),
        }
    }

    /// Returns the network that counts as one client.
    fn network(&self, query: &Query) -> IpAddr {
        match query.peer.address.ip().to_canonical() {
            IpAddr::V4(ip) => IpAddr::V4((ip.to_bits() & u32::MAX << (32 - self.config.ipv4_prefix)).into()),
            IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() & u128::MAX << (128 - self.config.ipv6_prefix)).into()),
        }
    }
}

/// Returns true for a query that a plugin asks, whose response no client gets.
fn is_own(query: &Query) -> bool {
    query.packet.is_empty()
}

/// Cookie of a query.
fn option(query: &Query) -> Option<&[u8]> {
    query.options().find(|(code, _)| *code == OptionCode::COOKIE).map(|(_, option)| option)
}

/// Checks the cookie of a query, if it has one.
fn cookie(secrets: &Secrets, query: &Query, worker: &Worker) -> Option<Checked> {
    let option = option(query)?;
    // The format has the lower 32 bits.
    let now = u32::try_from(worker.since_1970().as_secs() & u64::from(u32::MAX)).unwrap_or_default();
    secrets.check(option, query.peer.address.ip().to_canonical(), now)
}

fn elapsed(worker: &Worker) -> Duration {
    worker.now().since(Instant::START)
}

fn kind_of(response: &Response) -> ResponseKind {
    let message = &response.message;
    if message.section(Section::Answer).next().is_some() {
        return ResponseKind::Response;
    }
    match response.rcode() {
        Rcode::NXDOMAIN => ResponseKind::NameError,
        Rcode::NOERROR => {
            let first = message.section(Section::Authority).next();
            let is_referral = first.is_some_and(|mark| message.record(mark).rtype() == Type::NS);
            if is_referral { ResponseKind::Referral } else { ResponseKind::NoData }
        }
        _ => ResponseKind::Error,
    }
}

/// Returns the owner of the first authority record in lower case; without one, the root.
fn authority(response: &Response) -> Name {
    let mark = response.message.section(Section::Authority).next();
    mark.and_then(|mark| response.message.owner(mark).ok()).unwrap_or_default().into_lowercase()
}

/// Removes all records, and sets TC.
fn truncate(query: &Query, response: &mut Response) {
    let (flags, rcode) = (response.message.header.flags, response.rcode());
    response.begin(query);
    response.message.header.flags = flags.with_truncated(true);
    response.set_rcode(rcode);
}
