//! A profile in the format of pprof (profile.proto), compressed by gzip.

use core::hash::Hash;
use core::time::Duration;
use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::protobuf::{number, varint, written};

/// Where the processor was for a while.
#[derive(Clone, Debug, Default)]
pub struct CpuProfile {
    /// The places, each with how often it was there.
    pub stacks: Vec<Stack>,
    /// When it began.
    pub start_since_1970: Duration,
    /// How long it took.
    pub took: Duration,
    /// The processor time between two looks.
    pub period: Duration,
}

/// A place that calls have led to.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The calls, the innermost first.
    pub frames: Vec<Frame>,
    /// The name of the thread.
    pub thread: String,
    /// How often it was seen.
    pub times: u64,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// The file that it is written in; empty if nobody knows.
    pub file: String,
    /// The line in it.
    pub line: u32,
}

/// Things by their numbers, which begin with `first`.
struct Table<T> {
    numbers: HashMap<T, u64>,
    first: u64,
}

impl<T: Eq + Hash> Table<T> {
    fn new(first: u64) -> Table<T> {
        Table { numbers: HashMap::new(), first }
    }

    fn number(&mut self, thing: T) -> u64 {
        let next = self.first + self.numbers.len() as u64;
        *self.numbers.entry(thing).or_insert(next)
    }

    /// All, in the order of their numbers.
    fn in_order(self) -> Vec<(T, u64)> {
        let mut all: Vec<_> = self.numbers.into_iter().collect();
        all.sort_unstable_by_key(|(_, number)| *number);
        all
    }
}

impl CpuProfile {
    /// Its octets, compressed.
    pub(super) fn compressed(&self) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing into memory does not fail.
        let _ = encoder.write_all(&self.octets());
        encoder.finish().unwrap_or_default()
    }

    fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        let mut strings = Table::new(0);
        // The first one is empty, and stands for none.
        strings.number("");
        let [samples, count, cpu, nanoseconds, thread] =
            ["samples", "count", "cpu", "nanoseconds", "thread"].map(|text| strings.number(text));
        for (kind, unit) in [(samples, count), (cpu, nanoseconds)] {
            written(&mut octets, 1, |octets| value_type(octets, kind, unit));
        }
        let mut frames = Table::new(1);
        for stack in &self.stacks {
            let name = strings.number(&stack.thread);
            let places: Vec<u64> = stack.frames.iter().map(|frame| frames.number(frame)).collect();
            written(&mut octets, 2, |octets| self.write_sample(octets, (&places, stack.times), (thread, name)));
        }
        let mut functions = Table::new(1);
        for (frame, place) in frames.in_order() {
            let function = functions.number((frame.function.as_str(), frame.file.as_str()));
            written(&mut octets, 4, |octets| {
                number(octets, 1, place);
                written(octets, 4, |line| {
                    number(line, 1, function);
                    number(line, 2, frame.line.into());
                });
            });
        }
        for ((function, file), id) in functions.in_order() {
            let (function, file) = (strings.number(function), strings.number(file));
            written(&mut octets, 5, |octets| {
                for (field, value) in [(1, id), (2, function), (3, function), (4, file)] {
                    number(octets, field, value);
                }
            });
        }
        for (text, _) in strings.in_order() {
            written(&mut octets, 6, |octets| octets.extend_from_slice(text.as_bytes()));
        }
        number(&mut octets, 9, nanos(self.start_since_1970));
        number(&mut octets, 10, nanos(self.took));
        written(&mut octets, 11, |octets| value_type(octets, cpu, nanoseconds));
        number(&mut octets, 12, nanos(self.period));
        octets
    }

    fn write_sample(&self, octets: &mut Vec<u8>, (places, times): (&[u64], u64), (thread, name): (u64, u64)) {
        written(octets, 1, |octets| places.iter().for_each(|place| varint(octets, *place)));
        written(octets, 2, |octets| {
            varint(octets, times);
            varint(octets, times.saturating_mul(nanos(self.period)));
        });
        written(octets, 3, |octets| value_type(octets, thread, name));
    }
}

/// Two numbers of texts: a kind with its unit, or a label with its value.
fn value_type(octets: &mut Vec<u8>, first: u64, second: u64) {
    number(octets, 1, first);
    number(octets, 2, second);
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
