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
        let _ = encoder.write_all(&self.to_bytes());
        encoder.finish().unwrap_or_default()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut strings = Table::new(0);
        // String 0 must be the empty string.
        strings.number("");
        let [samples, count, cpu, nanoseconds, thread] =
            ["samples", "count", "cpu", "nanoseconds", "thread"].map(|text| strings.number(text));
        for (kind, unit) in [(samples, count), (cpu, nanoseconds)] {
            written(&mut bytes, 1, |bytes| value_type(bytes, kind, unit));
        }
        let mut frames = Table::new(1);
        for stack in &self.stacks {
            let name = strings.number(&stack.thread);
            let places: Vec<u64> = stack.frames.iter().map(|frame| frames.number(frame)).collect();
            written(&mut bytes, 2, |bytes| self.write_sample(bytes, (&places, stack.times), (thread, name)));
        }
        let mut functions = Table::new(1);
        for (frame, place) in frames.in_order() {
            let function = functions.number((frame.function.as_str(), frame.file.as_str()));
            written(&mut bytes, 4, |bytes| {
                number(bytes, 1, place);
                written(bytes, 4, |line| {
                    number(line, 1, function);
                    number(line, 2, frame.line.into());
                });
            });
        }
        for ((function, file), id) in functions.in_order() {
            let (function, file) = (strings.number(function), strings.number(file));
            written(&mut bytes, 5, |bytes| {
                for (field, value) in [(1, id), (2, function), (3, function), (4, file)] {
                    number(bytes, field, value);
                }
            });
        }
        for (text, _) in strings.in_order() {
            written(&mut bytes, 6, |bytes| bytes.extend_from_slice(text.as_bytes()));
        }
        number(&mut bytes, 9, nanos(self.start_since_1970));
        number(&mut bytes, 10, nanos(self.took));
        written(&mut bytes, 11, |bytes| value_type(bytes, cpu, nanoseconds));
        number(&mut bytes, 12, nanos(self.period));
        bytes
    }

    fn write_sample(&self, bytes: &mut Vec<u8>, (places, times): (&[u64], u64), (thread, name): (u64, u64)) {
        written(bytes, 1, |bytes| places.iter().for_each(|place| varint(bytes, *place)));
        written(bytes, 2, |bytes| {
            varint(bytes, times);
            varint(bytes, times.saturating_mul(nanos(self.period)));
        });
        written(bytes, 3, |bytes| value_type(bytes, thread, name));
    }
}

/// Writes two string indexes: a type with its unit, or a label with its value.
fn value_type(bytes: &mut Vec<u8>, first: u64, second: u64) {
    number(bytes, 1, first);
    number(bytes, 2, second);
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
