//! In place of what the queue of the log and singleflight use of other crates.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use wire::{Class, Flags, Name, NameRef, OptionCode, Type};

use crate::host::Instant;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockId(pub u8);

#[derive(Clone, Default)]
pub struct LabelValues;

#[derive(Clone, Copy, Default)]
pub struct Asked {
    pub last: Option<SocketAddr>,
}

/// Outcome of an exchange: its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved(pub usize);

pub struct Transport;

impl Transport {
    pub fn is_stream(&self) -> bool {
        false
    }
}

pub struct PeerInfo {
    pub address: SocketAddr,
    pub transport: Transport,
}

#[derive(Default)]
pub struct Trail {
    pub asked: Cell<Asked>,
}

pub struct Query {
    pub peer: PeerInfo,
    pub received: Instant,
    pub qtype: Type,
    pub qclass: Class,
    pub dnssec_ok: bool,
    pub trail: Trail,
    name: Name,
}

impl Default for Query {
    fn default() -> Query {
        Query {
            peer: PeerInfo { address: SocketAddr::from(([192, 0, 2, 1], 53)), transport: Transport },
            received: Instant::default(),
            qtype: Type::A,
            qclass: Class::IN,
            dnssec_ok: false,
            trail: Trail::default(),
            name: Name::root(),
        }
    }
}

impl Query {
    pub fn key(&self) -> NameRef<'_> {
        self.name.as_ref()
    }

    pub fn onward_udp_size(&self) -> u16 {
        1232
    }

    pub fn flags(&self) -> Flags {
        Flags::default()
    }

    pub fn onward_options(&self) -> impl Iterator<Item = (OptionCode, &[u8])> {
        std::iter::empty()
    }

    pub fn label_values(&self) -> LabelValues {
        LabelValues
    }
}

#[derive(Clone, Copy)]
pub enum Level {
    Info,
}

pub enum Source<'a> {
    Server,
    Other(&'a str),
}

/// Events with a limit of their number, each a text.
#[derive(Default)]
pub struct EventBuffer {
    pub events: Vec<Vec<u8>>,
    max: usize,
    dropped: u64,
}

impl EventBuffer {
    pub fn new(max: usize) -> EventBuffer {
        EventBuffer { max, ..EventBuffer::default() }
    }

    pub fn push(&mut self, _: Duration, _: Level, _: Source<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        if self.events.len() == self.max {
            self.dropped += 1;
            return;
        }
        let mut text = Vec::new();
        write(&mut text);
        self.events.push(text);
    }

    pub fn append(&mut self, other: &EventBuffer) {
        self.dropped += other.dropped;
        for event in &other.events {
            self.push(Duration::ZERO, Level::Info, Source::Server, |text| text.extend_from_slice(event));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub fn clear(&mut self) {
        self.events.clear();
    }

    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

pub enum Kind {
    Counter,
}

pub struct Metric {
    pub name: &'static str,
    pub help: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
}

pub struct Registry;

impl Registry {
    pub fn gauge(&self, _: &Metric, _: &[&str], _: impl Fn() -> Option<f64>) {}
}
