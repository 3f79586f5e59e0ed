//! CPU profile in the format of pprof (`profile.proto`), compressed with gzip.

use core::hash::Hash;
use core::ops::Range;
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
    /// The binary and its libraries.
    pub modules: Vec<Module>,
    /// Names of functions, by the addresses of [`Stack::addresses`]. Unknown addresses are left out.
    pub functions: HashMap<u64, String>,
    /// Number of samples for which there was no room.
    pub lost: u64,
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
    /// Addresses of instructions, innermost first.
    pub addresses: Vec<u64>,
    /// Name of the thread.
    pub thread: String,
    /// Number of samples.
    pub times: u64,
}

/// File whose code the process has loaded.
#[derive(Clone, Debug)]
pub struct Module {
    /// Path of the file.
    pub path: String,
    /// Addresses of its code.
    pub code: Range<u64>,
    /// Offset of the code in the file.
    pub offset: u64,
    /// Build ID in hexadecimal; empty without one.
    pub build_id: String,
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
        self.write_modules(&mut bytes, &mut strings);
        let mut places = Table::new(1);
        for stack in &self.stacks {
            let name = strings.number(&stack.thread);
            let places: Vec<u64> = stack.addresses.iter().map(|address| places.number(*address)).collect();
            written(&mut bytes, 2, |bytes| self.write_sample(bytes, (&places, stack.times), (thread, name)));
        }
        let mut functions = Table::new(1);
        for (address, place) in places.in_order() {
            let function = self.functions.get(&address).map(|name| functions.number(name.as_str()));
            written(&mut bytes, 4, |bytes| self.write_location(bytes, place, address, function));
        }
        for (name, id) in functions.in_order() {
            let name = strings.number(name);
            written(&mut bytes, 5, |bytes| numbers(bytes, [(1, id), (2, name), (3, name)]));
        }
        let lost =
            format!("{} samples were lost: the buffer was full, or two threads were interrupted at once", self.lost);
        if self.lost > 0 {
            let lost = strings.number(&lost);
            number(&mut bytes, 13, lost);
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

    fn write_modules<'a>(&'a self, bytes: &mut Vec<u8>, strings: &mut Table<&'a str>) {
        for (place, module) in self.modules.iter().enumerate() {
            let [path, build_id] = [&module.path, &module.build_id].map(|text| strings.number(text));
            let (start, end) = (module.code.start, module.code.end);
            written(bytes, 3, |bytes| {
                numbers(bytes, [(1, place as u64 + 1), (2, start), (3, end), (4, module.offset)]);
                // Field 7 says that functions are known. Otherwise `go tool pprof` asks this server for those that are
                // not, by POST, and gives up when it gets no answer. It looks for lines in the file in any case.
                numbers(bytes, [(5, path), (6, build_id), (7, 1)]);
            });
        }
    }

    /// Writes an address with its module and its function. A reader finds others by the build ID.
    fn write_location(&self, bytes: &mut Vec<u8>, place: u64, address: u64, function: Option<u64>) {
        let module = self.modules.iter().position(|module| module.code.contains(&address));
        // 0 is no module.
        let module = module.map_or(0, |at| at as u64 + 1);
        numbers(bytes, [(1, place), (2, module), (3, address)]);
        if let Some(function) = function {
            written(bytes, 4, |line| number(line, 1, function));
        }
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

/// Writes fields with numbers.
fn numbers<const COUNT: usize>(bytes: &mut Vec<u8>, fields: [(u32, u64); COUNT]) {
    for (field, value) in fields {
        number(bytes, field, value);
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
