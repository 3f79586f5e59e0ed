//! Serves zones transferred from primary servers, and keeps them up to date.

mod follow;

use core::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use config::options::{Args, DirectiveContext, Manifest, Problem, Property, Role, Usage};
use config::setup::{InspectZone, Part, Setup, SetupError};
use engine::{Hooks, Refuses, Zones};
use wire::Name;
use zone::Limits;

use crate::shared::zone_store::{Authority, Held, ZoneMemory, directory, offer};
use plugin::fallthrough::{DENIED, FallsThrough, fallthrough};

/// Parsed `secondary` line.
#[derive(Default)]
pub struct Config {
    zones: Vec<Name>,
    primaries: Vec<SocketAddr>,
    records_max: Option<usize>,
    bytes_max: Option<usize>,
    fallthrough: Vec<Name>,
}

impl FallsThrough for Config {
    fn fallthrough(&mut self) -> &mut Vec<Name> {
        &mut self.fallthrough
    }
}

/// Bounds of a transferred zone.
#[derive(Clone, Copy)]
struct Bounds {
    memory: ZoneMemory,
    records: Option<usize>,
    bytes: Option<usize>,
}

impl Bounds {
    /// Returns the limits for a new version of a zone.
    fn limits(self, held: &Held) -> Limits {
        let limits = self.memory.limits(held);
        let (records, bytes) = (self.records.unwrap_or(limits.records), self.bytes.unwrap_or(limits.bytes));
        Limits { records, bytes, ..limits }
    }
}

/// Default port of primaries.
const DNS_PORT: u16 = 53;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "secondary",
    "serve zones transferred from a primary server",
    Config::default,
    build,
)
.repeated()
.arguments("secondary [ZONES...]", |config, args| {
    config.zones = args.zones()?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("transfer from ADDRESS..."),
        default: "",
        doc: "Primary servers, `IP[:PORT]` with port 53 by default. They are tried in this order. Required.",
        set: set_primaries,
    },
    Property {
        usage: Usage("max_records N"),
        default: "16777216",
        doc: "Maximum number of records of each zone. A larger version is refused, and the old one stays.",
        set: |config, args| {
            config.records_max = Some(args.number(1..=usize::MAX)?);
            Ok(())
        },
    },
    Property {
        usage: Usage("max_bytes N"),
        default: "no limit",
        doc: "Maximum size of each zone in bytes, as uncompressed records. A larger version is refused, and the old \
              one stays.",
        set: |config, args| {
            config.bytes_max = Some(args.number(1..=usize::MAX)?);
            Ok(())
        },
    },
    Property {
        usage: Usage("catalog [MEMBERS...]"),
        default: "off",
        doc: "Catalog zones (RFC 9432) are not supported by this build.",
        set: |_, args| {
            args.take_rest();
            let help = "list the member zones, with a `secondary` line for each";
            args.line_not_here("catalog zones are not supported by this build", help);
            Ok(())
        },
    },
    fallthrough(DENIED),
])
.check(check)
.asks_server()
.role(|line| Role { longest_zone: true, ..Role::answers(&line.config.zones, &line.config.fallthrough) });

fn set_primaries(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let from = args.word()?;
    if from.text != "from" {
        return Err(args.bad(from, "`from`"));
    }
    for word in args.take_rest() {
        let address = word.text.parse().map(|ip| SocketAddr::new(ip, DNS_PORT)).or_else(|_| word.text.parse());
        config.primaries.push(address.map_err(|_| args.bad(word, "an IP address, with or without a port"))?);
    }
    Ok(())
}

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    match context.config.primaries.as_slice() {
        [] => Err(context.problem("secondary needs `transfer from` with at least one primary server")),
        _ => Ok(()),
    }
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let (mut all, mut fallthrough) = (Vec::new(), Vec::new());
    let memory: ZoneMemory = setup.process.find().unwrap_or_default();
    for config in configs {
        let bounds = Bounds { memory, records: config.records_max, bytes: config.bytes_max };
        for origin in setup.zones_or_keys(&config.zones).names() {
            let held = open(origin, &config.primaries, setup);
            setup.requests.inspection.zones.push(Arc::new(Transferred(Arc::clone(&held))));
            let followed = Arc::clone(&held);
            setup.requests.jobs.push(Box::new(move |io| Box::pin(follow::run(followed, bounds, io))));
            all.push(held);
        }
        fallthrough.extend(config.fallthrough);
    }
    let zones: Zones = all.iter().map(|held| held.origin.clone()).collect();
    let held = Arc::new(ArcSwap::from_pointee(directory(all)));
    offer(&held, setup);
    let plugin = Authority::new(MANIFEST.name, held, setup);
    let fallthrough = fallthrough.into_iter().collect();
    Ok(Some(Part { zones: Some(zones), fallthrough, refuses: Refuses::OtherZones, ..Part::new(plugin, Hooks::DOWN) }))
}

/// View of a zone.
struct Transferred(Arc<Held>);

impl InspectZone for Transferred {
    fn problem(&self) -> Option<String> {
        let held = &self.0;
        let why = match (held.known(), held.is_expired()) {
            (None, _) => "has not been transferred yet",
            (Some(_), true) => "has expired",
            (Some(_), false) => return None,
        };
        let primaries: Vec<String> = held.primaries.iter().map(SocketAddr::to_string).collect();
        let (origin, primaries) = (&held.origin, primaries.join(", "));
        Some(format!("zone {origin} {why}, so its queries fail: no transfer from {primaries}; the log has the cause"))
    }
}

/// Opens a zone. Its contents are kept across reloads.
fn open(origin: &Name, primaries: &[SocketAddr], setup: &mut Setup<'_>) -> Arc<Held> {
    let key = format!("secondary/{origin}/{primaries:?}");
    setup.reload_state.get_or_insert_with(key, || Held::of(origin.as_ref(), primaries.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Instant;
    use std::path::Path;

    #[test]
    fn a_zone_is_a_problem_until_it_is_transferred_and_when_it_has_expired() {
        let origin = Name::from_text("example.org.").unwrap();
        let held = Arc::new(Held::of(origin.as_ref(), vec![SocketAddr::from(([192, 0, 2, 53], 53))]));
        let problem = || Transferred(Arc::clone(&held)).problem();
        let begins = |text: &str| problem().is_some_and(|problem| problem.starts_with(text));
        assert!(begins("zone example.org. has not been transferred yet"), "{:?}", problem());
        let text = b"@ 60 SOA ns host 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n";
        held.set(::zone::load(origin.as_ref(), Path::new("db"), &mut |_| Ok(text.to_vec())).unwrap().zone);
        assert_eq!(problem(), None);
        held.expire();
        assert!(begins("zone example.org. has expired"), "{:?}", problem());
        held.confirm(Instant::START);
        assert_eq!(problem(), None);
    }
}
