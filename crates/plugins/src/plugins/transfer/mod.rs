//! Zone transfers to other servers (RFC 5936, RFC 1995) and NOTIFY messages (RFC 1996).

mod notify;
mod outgoing;

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use config::options::{Args, DirectiveContext, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::log::{Level, Source};
use engine::{
    Failure, Hooks, Plugin, Query, Response, Verdict, Worker, ZoneMap, ZoneSnapshot, ZoneSource, ZoneSources, Zones,
};
use wire::{EdeCode, Message, Name, Opcode, Section, Type};
use zone::Soa;

use notify::Notifier;
use outgoing::Outgoing;

const SOURCE: Source<'_> = Source::Plugin("transfer");

/// Parsed `transfer` line.
#[derive(Default)]
pub struct Config {
    zones: Vec<Name>,
    anyone: bool,
    peers: Vec<SocketAddr>,
    source: Option<IpAddr>,
}

/// Default port for NOTIFY.
const DNS_PORT: u16 = 53;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "transfer",
    "transfer zones to other servers",
    Config::default,
    build,
)
.repeated()
.arguments("transfer [ZONES...]", |config, args| {
    config.zones = args.zones()?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("to HOST..."),
        default: "",
        doc: "Servers that may transfer the zones: `IP[:PORT]`, with the port for NOTIFY (default 53), or `*` for \
              everyone, without NOTIFY.",
        set: set_peers,
    },
    Property {
        usage: Usage("source IP"),
        default: "any",
        doc: "Source IP address of NOTIFY messages.",
        set: |config, args| {
            let word = args.word()?;
            if config.source.is_some() {
                return Err(args.problem_at(word.span, "source already specified"));
            }
            config.source = Some(word.text.parse().map_err(|_| args.bad(word, "an IP address"))?);
            Ok(())
        },
    },
])
.check(check)
.role(|line| Role::new(Effect::Aside, &line.config.zones));

fn set_peers(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    for word in args.take_rest() {
        if word.text == "*" {
            config.anyone = true;
            continue;
        }
        let text = without_interface(&word.text);
        if text.len() < word.text.len() {
            let message = format!("the interface in `{}` is ignored", word.text);
            args.warn(word, message);
        }
        let address = text.parse().map(|ip| SocketAddr::new(ip, DNS_PORT)).or_else(|_| text.parse());
        config.peers.push(address.map_err(|_| args.bad(word, "an IP address, with or without a port, or `*`"))?);
    }
    Ok(())
}

/// Removes the interface of a link-local address: `fe80::1%eth0`, `[fe80::1%eth0]:53` (RFC 4007 §11).
fn without_interface(text: &str) -> String {
    let Some((address, rest)) = text.split_once('%') else { return text.to_owned() };
    let port = rest.find(']').map_or("", |at| &rest[at..]);
    format!("{address}{port}")
}

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let Config { anyone, peers, .. } = context.config;
    if *anyone || !peers.is_empty() {
        Ok(())
    } else {
        Err(context.problem("'to' is required: the servers that may transfer the zones"))
    }
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let sources = setup.below.find::<ZoneSources>().unwrap_or_default();
    let (mut lines, mut by_zone, mut zones) = (Vec::new(), ZoneMap::new(), Zones::default());
    for config in configs {
        let named = setup.zones_or_keys(&config.zones);
        for zone in named.names() {
            by_zone.entry(zone.as_ref(), || lines.len());
        }
        zones.extend(named.names().iter().cloned());
        lines.push(config);
    }
    let transfer = Arc::new(Lines { lines, by_zone, sources });
    for (at, line) in transfer.lines.iter().enumerate() {
        for peer in &line.peers {
            let notifier = Notifier::new(Arc::clone(&transfer), at, *peer);
            setup.requests.jobs.push(Box::new(move |io| Box::pin(notifier.run(io))));
        }
    }
    Ok(Some(Part { zones: Some(zones), ..Part::new(Transfer(transfer), Hooks::DOWN) }))
}

/// Lines of a server block, and the zones that plugins below offer.
struct Lines {
    lines: Vec<Config>,
    /// Index of the line for each zone.
    by_zone: ZoneMap<usize>,
    sources: ZoneSources,
}

impl Lines {
    /// Index of the line with the longest zone that contains the name.
    fn index(&self, name: &Name) -> Option<usize> {
        self.by_zone.longest(name.as_ref()).map(|(_, line)| *line)
    }

    /// Line with the longest zone that contains the name.
    fn of(&self, name: &Name) -> Option<&Config> {
        self.lines.get(self.index(name)?)
    }
}

struct Transfer(Arc<Lines>);

impl Plugin for Transfer {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if !query.qtype.is_transfer() || query.flags().opcode() != Opcode::QUERY {
            return Verdict::Pass;
        }
        let zone = query.key().to_name();
        let has = |source: &&Arc<dyn ZoneSource>| source.zones().contains(&zone);
        let Some(line) = self.0.of(&zone) else { return Verdict::Pass };
        let Some(source) = self.0.sources.0.iter().find(has) else { return Verdict::Pass };
        if !query.peer.transport.takes_many() {
            return refused("zones are not transferred over UDP");
        }
        if !line.admits(query.peer.address.ip()) {
            return refused("this client may not transfer the zone");
        }
        let Some(snapshot) = source.snapshot(zone.as_ref()) else {
            return Verdict::Fail(
                Failure::servfail(EdeCode::NOT_READY, format!("zone {zone} is not available"))
                    .with_text("the zone is not available"),
            );
        };
        send(zone, &**source, snapshot, query, response, worker)
    }
}

fn refused(why: &'static str) -> Verdict {
    Verdict::Fail(Failure::refused(EdeCode::PROHIBITED, why))
}

impl Config {
    fn admits(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        self.anyone || self.peers.iter().any(|peer| peer.ip().to_canonical() == client)
    }
}

/// Sends a zone: all of it, its changes since the client's version, or only the SOA record if the client already has
/// this version.
fn send(
    zone: Name,
    source: &dyn ZoneSource,
    mut snapshot: Box<dyn ZoneSnapshot>,
    query: &Query,
    response: &mut Response,
    worker: &mut Worker,
) -> Verdict {
    let serial = Soa::read(snapshot.soa().1).map_or(0, |soa| soa.serial);
    let mut kind = "transfer";
    response.set_authoritative(true);
    if query.qtype == Type::IXFR {
        let Some(theirs) = serial_of_client(query) else {
            return Verdict::Fail(Failure::servfail(EdeCode::OTHER, "IXFR without the client's SOA record"));
        };
        let ours = Soa { serial, refresh: 0, retry: 0, expire: 0, minimum: 0 };
        if theirs == serial || ours.is_older_than(theirs) {
            Outgoing::new(zone, snapshot).push_soa(&mut response.message);
            return Verdict::Done;
        }
        if let Some(changes) = source.changes(zone.as_ref(), theirs) {
            (snapshot, kind) = (changes, "incremental transfer");
        }
    }
    let serial = Soa::read(snapshot.soa().1).map_or(serial, |soa| soa.serial);
    let mut outgoing = Outgoing::new(zone, snapshot);
    let (zone, peer) = (query.name(), query.peer.address.ip().to_canonical());
    let records = outgoing.len();
    let message =
        format_args!("Outgoing {kind} of {records} records of zone \"{zone}\" to {peer} for {serial} SOA serial");
    worker.log_text(Level::Info, SOURCE, message);
    outgoing.begin(&mut response.message);
    response.continue_with(Box::new(outgoing));
    Verdict::Done
}

/// Serial of the client's version (RFC 1995 §3); `None` if the query does not have one.
fn serial_of_client(query: &Query) -> Option<u32> {
    let message = Message::parse(&query.packet).ok()?;
    let authority = message.records().filter(|record| record.section() == Section::Authority);
    let mut soas = authority.filter(|record| record.rtype() == Type::SOA);
    let soa = soas.next().filter(|_| soas.next().is_none())?;
    Soa::read(soa.rdata()).map(|soa| soa.serial)
}
