//! Minimal plugins that answer queries, to test the plugins above them in the chain.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use config::DirectiveEntry;
use config::options::{Manifest, Property, Usage, zone_names};
use config::setup::{Part, Setup, SetupError};
use engine::{
    Connections, Exchange, ExchangeError, Failure, Hooks, Io, LabelSetter, LocalFuture, Plugin, Query, Resolved,
    Response, Transport, Verdict, Worker,
};
use wire::{EdeCode, MessageBuf, Name, OptionCode, Owner, Rcode, Section, Type};

use crate::Record;

/// Answers from the records in its block, one per line, for the given zones or those of its server block.
///
/// A name without records of the type gets NODATA, and a CNAME record answers all types. A name without any records
/// is NXDOMAIN, or is passed to the next plugin with `fallthrough [ZONES…]`.
pub static RECORDS: DirectiveEntry = DirectiveEntry::Available(&RECORDS_MANIFEST);

/// Forwards queries in the given zones to one upstream, with a timeout of two seconds: `outward IP[:PORT] [ZONES…]`.
pub static OUTWARD: DirectiveEntry = DirectiveEntry::Available(&OUTWARD_MANIFEST);

static RECORDS_MANIFEST: Manifest<RecordsConfig> =
    Manifest::new("records", "answers from a list of records", RecordsConfig::default, build_records)
        .repeated()
        .arguments("records [ZONES...]", |config, args| {
            config.zones = args.zones()?;
            Ok(())
        })
        .properties(&[Property {
            usage: Usage("fallthrough [ZONES...]"),
            default: "",
            doc: "Asks the next step for names without records.",
            set: |config, args| {
                let named = args.zones()?;
                config.fallthrough = if named.is_empty() { vec![Name::root()] } else { named };
                Ok(())
            },
        }])
        .other_lines("OWNER [WORDS...]", |config, args| {
            let quote = |word: &str| if word.contains(' ') { format!("\"{word}\"") } else { word.to_owned() };
            let words = core::iter::once(args.name()).chain(args.take_rest()).map(|word| quote(&word.text));
            let line = words.collect::<Vec<_>>().join(" ");
            config.records.push(line.parse().map_err(|error| args.problem(format!("`{line}`: {error}")))?);
            Ok(())
        });

fn build_records(configs: Vec<RecordsConfig>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let mut all = RecordsConfig::default();
    for config in configs {
        all.zones.extend(config.zones);
        all.fallthrough.extend(config.fallthrough);
        all.records.extend(config.records);
    }
    let zones = setup.zones_or_keys(&all.zones);
    let fallthrough = all.fallthrough.into_iter().collect();
    let part = Part::new(Records(all.records), Hooks::DOWN);
    Ok(Some(Part { zones: Some(zones), fallthrough, ..part }))
}

#[derive(Default)]
struct RecordsConfig {
    zones: Vec<Name>,
    fallthrough: Vec<Name>,
    records: Vec<Record>,
}

struct Records(Vec<Record>);

impl Plugin for Records {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        let owned = || self.0.iter().filter(|record| record.owner.as_ref() == query.key());
        response.set_authoritative(true);
        response.set_local();
        if owned().next().is_none() {
            response.set_rcode(Rcode::NXDOMAIN);
            return Verdict::Missing;
        }
        let fits = |record: &&Record| [query.qtype, Type::CNAME].contains(&record.rtype) || query.qtype == Type::ANY;
        for record in owned().filter(fits) {
            record.push_as(&mut response.message, Section::Answer, Owner::Question);
        }
        Verdict::Done
    }
}

static OUTWARD_MANIFEST: Manifest<OutwardConfig> = Manifest::new(
    "outward",
    "sends each question to one upstream",
    || OutwardConfig { to: SocketAddr::from(([0, 0, 0, 0], DNS_PORT)), zones: Vec::new() },
    build_outward,
)
.arguments("outward ADDRESS [ZONES...]", |config, args| {
    let word = args.word()?;
    let address = word.text.parse().or_else(|_| word.text.parse().map(|ip: IpAddr| SocketAddr::new(ip, DNS_PORT)));
    config.to = address.map_err(|_| args.bad(word, "an IP address"))?;
    config.zones = args.take_rest().iter().flat_map(|word| zone_names(&word.text)).collect();
    Ok(())
});

struct OutwardConfig {
    to: SocketAddr,
    zones: Vec<Name>,
}

fn build_outward(configs: Vec<OutwardConfig>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let zones = setup.zones_or_keys(&config.zones);
    let upstream = setup.labels().publish_setter("outward/upstream");
    let part = Part::new(Outward { to: config.to, upstream }, Hooks::DOWN);
    Ok(Some(Part { zones: Some(zones), ..part }))
}

const DNS_PORT: u16 = 53;
/// Timeout of the upstream.
const TIMEOUT: Duration = Duration::from_secs(2);
const CONNECTIONS: Connections =
    Connections { idle_max: Duration::from_secs(10), age_max: Duration::ZERO, kept_max: 0, source: None };

struct Outward {
    to: SocketAddr,
    upstream: LabelSetter,
}

impl Plugin for Outward {
    fn on_query(&self, _: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Verdict::Wait
    }

    fn resolve<'a>(&'a self, query: &'a Query, io: &'a dyn Io) -> LocalFuture<'a, Resolved> {
        Box::pin(self.ask(query, io))
    }
}

impl Outward {
    /// Queries the upstream over the client's transport, and over TCP if the response is truncated.
    async fn ask(&self, query: &Query, io: &dyn Io) -> Resolved {
        let packet = packet_of(query);
        self.upstream.set(query, || self.to.to_string());
        let until = io.now() + TIMEOUT;
        let over = |over| io.exchange(Exchange::new(self.to, over, &packet, until, CONNECTIONS));
        let mut outcome = over(query.peer.transport).await;
        if outcome.as_ref().is_ok_and(|exchanged| exchanged.reply.is_truncated()) {
            outcome = over(Transport::Tcp).await;
        }
        match outcome {
            Ok(exchanged) => Resolved::Reply(exchanged.reply),
            Err(error) => Resolved::Fail(self.failure(&error)),
        }
    }

    fn failure(&self, error: &ExchangeError) -> Failure {
        let to = self.to;
        let cause = match error {
            ExchangeError::Timeout { local: Some(local) } => format!("read udp {local}->{to}: i/o timeout"),
            ExchangeError::Timeout { local: None } => format!("dial tcp {to}: i/o timeout"),
            ExchangeError::Network { during, error } => format!("{during} {to}: {error}"),
            ExchangeError::Closed
            | ExchangeError::Unreadable
            | ExchangeError::Status { .. }
            | ExchangeError::Exhausted => format!("{to}: {error}"),
        };
        Failure::servfail(EdeCode::NO_REACHABLE_AUTHORITY, cause)
    }
}

/// Builds the query to the upstream, with the client's EDNS fields and options.
fn packet_of(query: &Query) -> Vec<u8> {
    let mut message = MessageBuf::new();
    message.start(query.header(), Some((query.name(), query.qtype, query.qclass)));
    let options: Vec<(OptionCode, &[u8])> = query.options().chain(query.onward_options()).collect();
    message.finish(query.opt(), options.into_iter()).to_vec()
}
