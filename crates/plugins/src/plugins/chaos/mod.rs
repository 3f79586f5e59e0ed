//! Answers queries of class CH about the server.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use wire::{Class, NameRef, Owner, Section, Type};

use crate::HostName;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "chaos",
    "answer queries of class CH about the server",
    || Config { version: VERSION.to_owned(), authors: vec![AUTHORS.to_owned()] },
    build,
)
.first_line_wins()
.any_class()
.arguments("chaos [VERSION] [AUTHORS...]", |config, args| {
    if let Some(word) = args.next_word() {
        config.version.clone_from(&word.text);
    }
    let authors = args.take_rest();
    if !authors.is_empty() {
        config.authors = authors.iter().map(|word| word.text.clone()).collect();
    }
    Ok(())
});

const VERSION: &str = concat!("Portolan-", env!("CARGO_PKG_VERSION"));
const AUTHORS: &str = "the Portolan authors";

pub struct Config {
    version: String,
    authors: Vec<String>,
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let host_name = HostName::of(setup);
    let chaos = configs.into_iter().next().map(|Config { version, authors }| Chaos { version, authors, host_name });
    Ok(chaos.map(|chaos| Part::new(chaos, Hooks::DOWN)))
}

struct Chaos {
    version: String,
    authors: Vec<String>,
    host_name: String,
}

impl Plugin for Chaos {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if query.qclass != Class::CH || query.qtype != Type::TXT {
            return Verdict::Pass;
        }
        match property(query.key()) {
            Some(ServerProperty::Version) => say(response, &self.version),
            Some(ServerProperty::HostName) => say(response, &self.host_name),
            Some(ServerProperty::Authors) => {
                // Start at a random author, so that no one is always first.
                let first = worker.random_below(self.authors.len());
                let (before, after) = self.authors.split_at(first);
                after.iter().chain(before).for_each(|author| say(response, author));
            }
            None => return Verdict::Pass,
        }
        response.set_local();
        Verdict::Done
    }
}

/// Property of the server that a CH query is about.
enum ServerProperty {
    Version,
    HostName,
    Authors,
}

/// Parses the name of a CH query.
fn property(name: NameRef<'_>) -> Option<ServerProperty> {
    let mut labels = name.labels();
    let pair = [labels.next()?, labels.next()?];
    if labels.next().is_some() {
        return None;
    }
    match pair {
        [b"version", b"bind" | b"server"] => Some(ServerProperty::Version),
        [b"hostname", b"bind"] | [b"id", b"server"] => Some(ServerProperty::HostName),
        [b"authors", b"bind"] => Some(ServerProperty::Authors),
        _ => None,
    }
}

fn say(response: &mut Response, text: &str) {
    let head = (Type::TXT, Class::CH, 0);
    response.message.push(Section::Answer, Owner::Question, head, |rdata| rdata.character_string(text.as_bytes()));
}
