//! Cache that serves stale answers: `serve_stale verify [TIMEOUT]` and `serve_stale immediate` of *cache*.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use config::options::{Manifest, Property, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Instant, Plugin, Query, Response, Verdict, Worker};
use wire::{EdeCode, Flags, Mark, Rcode, Type};

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "stale",
    "a cache that serves stale answers",
    || Config { fresh: Duration::ZERO, mode: Mode::Verify, patience: None },
    build,
)
.arguments("stale FRESH", |config, args| {
    config.fresh = args.duration()?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("verify [TIMEOUT]"),
        default: "",
        doc: "Queries below first, until the timeout.",
        set: |config, args| {
            config.patience = if args.rest().is_empty() { None } else { Some(args.duration()?) };
            Ok(())
        },
    },
    Property {
        usage: Usage("immediate"),
        default: "",
        doc: "Answers at once and queries below in the background.",
        set: |config, _| {
            config.mode = Mode::Immediate;
            Ok(())
        },
    },
]);

pub struct Config {
    fresh: Duration,
    mode: Mode,
    patience: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Verify,
    Immediate,
}

fn build(configs: Vec<Config>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let cache = |config| Part::new(Stale { config, entries: Mutex::default() }, Hooks::BOTH);
    Ok(configs.into_iter().next().map(cache))
}

struct Stale {
    config: Config,
    entries: Mutex<HashMap<Key, Entry>>,
}

type Key = (Vec<u8>, Type);

#[derive(Clone)]
struct Entry {
    stored: Instant,
    flags: Flags,
    bytes: Vec<u8>,
    marks: Vec<Mark>,
    refreshing: bool,
}

/// Note for the way up: no stale entry exists.
const MISSED: u64 = 0;
const MAY_SERVE_STALE: u64 = 1;

impl Plugin for Stale {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        query.set_note(MISSED);
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(&key(query)) else { return Verdict::Pass };
        if worker.now().since(entry.stored) < self.config.fresh {
            entry.write(query, response);
            return Verdict::Done;
        }
        if self.config.mode == Mode::Immediate {
            entry.write_stale(query, response);
            if !core::mem::replace(&mut entry.refreshing, true) {
                worker.refresh(query);
            }
            return Verdict::Done;
        }
        query.set_note(MAY_SERVE_STALE);
        if let Some(patience) = self.config.patience {
            query.wait_until(worker.now() + patience);
        }
        Verdict::Pass
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let usable = response.failure().is_none() && matches!(response.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN);
        let mut entries = self.entries();
        if usable {
            entries.insert(key(query), Entry::new(response, worker.now()));
            return Verdict::Pass;
        }
        match entries.get_mut(&key(query)) {
            Some(entry) if query.note() == MAY_SERVE_STALE => {
                entry.write_stale(query, response);
                Verdict::Done
            }
            _ => Verdict::Pass,
        }
    }
}

impl Stale {
    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(query: &Query) -> Key {
    (query.key().as_bytes().to_vec(), query.qtype)
}

impl Entry {
    fn new(response: &Response, now: Instant) -> Entry {
        let message = &response.message;
        let (bytes, marks) = (message.records_bytes().to_vec(), message.marks().to_vec());
        Entry { stored: now, flags: message.flags(), bytes, marks, refreshing: false }
    }

    fn write(&self, query: &Query, response: &mut Response) {
        response.begin(query);
        response.message.restore(&self.bytes, &self.marks);
        response.set_rcode(self.flags.rcode());
        response.set_authoritative(self.flags.authoritative());
    }

    fn write_stale(&self, query: &Query, response: &mut Response) {
        self.write(query, response);
        response.message.set_ttls(0);
        response.set_ede(EdeCode::STALE_ANSWER, "");
    }
}
