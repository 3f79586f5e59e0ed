//! CPU profile in the format of pprof (`profile.proto`), compressed with gzip.

use core::hash::Hash;
use core::time::Duration;
use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::shared::protobuf::{number, varint, written};

/// CPU profile.
#[derive(Clone, Debug, Default)]
pub struct CpuProfile {
    /// Sampled stacks with their counts.
    pub stacks: Vec<Stack>,
    /// Start of the profile since the Unix epoch.
    pub start_since_1970: Duration,
    /// Duration of the profile.
    pub took: Duration,
    /// CPU time between two samples.
    pub period: Duration,
}

/// Call stack.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Frames, innermost first.
    pub frames: Vec<Frame>,
    /// Name of the thread.
    pub thread: String,
    /// Number of samples.
    pub times: u64,
}

/// Stack frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Name of the function.
    pub function: String,
    /// Source file; empty if unknown.
    pub file: String,
    /// Line in the source file.
    pub line: u32,
}

/// Interning table that assigns consecutive numbers from `first` on.
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

    /// All entries, sorted by number.
    fn in_order(self) -> Vec<(T, u64)> {
        let mut all: Vec<_> = self.numbers.into_iter().collect();
        all.sort_unstable_by_key(|(_, number)| *number);
        all
    }
}

impl CpuProfile {
    /// Encodes and compresses the profile.
    pub(super) fn compressed(&self) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to a `Vec` does not fail.
        let _ = encoder.write_all(&self.octets());
        encoder.finish().unwrap_or_default()
    }

    fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        let mut strings = Table::new(0);
        // String 0 must be the empty string.
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

/// Writes two string indexes: a type with its unit, or a label with its value.
fn value_type(octets: &mut Vec<u8>, first: u64, second: u64) {
    number(octets, 1, first);
    number(octets, 2, second);
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
