//! *greet*: answers TXT queries with a greeting.

use plugin::metrics::{Counter, Kind, Metric};
use plugin::options::{Args, Manifest, Problem, Property, Usage};
use plugin::setup::{Part, Setup, SetupError};
use plugin::wire::{Class, Name, Owner, Section, Type};
use plugin::{Hooks, PerSite, Plugin, Query, Response, Verdict, Worker};

/// Maximum length of a greeting in bytes: a string in a TXT record has no more (RFC 1035 §3.3).
const TEXT_MAX: usize = 255;
/// Default TTL in seconds.
const TTL: u32 = 60;

/// The directive, for the list in `main`.
pub static MANIFEST: Manifest<Config> = Manifest::new(
    "greet",
    "answer TXT queries with a greeting",
    || Config { text: Vec::new(), zones: Vec::new(), ttl: TTL },
    build,
)
.arguments("greet TEXT [ZONES...]", arguments)
.properties(&[Property {
    usage: Usage("ttl SECONDS"),
    default: "60",
    doc: "TTL of the answers, up to 3600.",
    set: |config, args| {
        config.ttl = args.number(0..=3600)?;
        Ok(())
    },
}])
.metrics(&[&GREETINGS]);

static GREETINGS: Metric = Metric {
    name: "greeting_dns_greetings_total",
    help: "Answered queries.",
    kind: Kind::Counter,
    labels: &["server"],
};

/// Options of a line in a Corefile.
pub struct Config {
    text: Vec<u8>,
    /// Zones; those of the server block if there are none.
    zones: Vec<Name>,
    ttl: u32,
}

fn arguments(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let word = args.word()?;
    if word.text.len() > TEXT_MAX {
        return Err(args.bad(word, "a text of at most 255 bytes"));
    }
    config.text = word.text.clone().into_bytes();
    config.zones = args.zones()?;
    Ok(())
}

/// Makes the plugin. A server block has at most one line, because the manifest does not allow more.
fn build(lines: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = lines.into_iter().next() else { return Ok(None) };
    let zones = setup.zones_or_keys(&config.zones);
    let greetings = PerSite::new(setup.block, |site| setup.registry.counter(&GREETINGS, &[&site.server]));
    let greet = Greet { text: config.text, ttl: config.ttl, greetings };
    // The engine calls the hooks only for names in these zones.
    Ok(Some(Part { zones: Some(zones), ..Part::new(greet, Hooks::DOWN) }))
}

struct Greet {
    text: Vec<u8>,
    ttl: u32,
    greetings: PerSite<Counter>,
}

impl Plugin for Greet {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if query.qtype != Type::TXT {
            return Verdict::Pass;
        }
        response.set_authoritative(true);
        // The answer is in memory: *cache* would gain nothing from a copy.
        response.set_local();
        response.message.push(Section::Answer, Owner::Question, (Type::TXT, Class::IN, self.ttl), |rdata| {
            rdata.character_string(&self.text);
        });
        if let Some(counter) = self.greetings.of(query) {
            worker.counters.count(*counter);
        }
        Verdict::Done
    }
}
