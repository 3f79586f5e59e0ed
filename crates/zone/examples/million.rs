//! Benchmark: time and memory to load a zone with a million records, to answer from it, and to apply an IXFR with ten
//! changes.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a measurement reads the clock and prints")]

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use std::sync::Arc;

use wire::{Class, Header, MessageBuf, Name, NameError, Owner, Section, Type};

const RECORDS: u32 = 1_000_000;
const QUESTIONS: u32 = 1_000_000;
const CHANGES: u32 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::from("$ORIGIN example.org.\n$TTL 300\n@ SOA ns1 host 1 7200 3600 1209600 300\n@ NS ns1\n");
    for at in 0..RECORDS {
        let [_, b, c, d] = at.to_be_bytes();
        writeln!(text, "host-{at:07}.rack{} IN A 10.{b}.{c}.{d}", at % 64)?;
    }
    let origin = Name::from_text("example.org.")?;
    let text = text.into_bytes();
    let (began, busy) = (Instant::now(), busy()?);
    let loaded = zone::load(origin.as_ref(), Path::new("zone"), &mut |_| Ok(text.clone()))?;
    let (took, records) = (began.elapsed(), loaded.zone.len());
    let busy = self::busy()?.saturating_sub(busy);
    println!("{records} records in {took:?} ({busy:?} on a processor), {} bytes each", loaded.zone.size() / records);
    println!("{:?} a question", ask(&loaded.zone)? / QUESTIONS);
    drop(text);
    differ(&Arc::new(loaded.zone))
}

/// Applies an IXFR to the zone while the old version is still in memory.
fn differ(old: &Arc<zone::Zone>) -> Result<(), Box<dyn std::error::Error>> {
    let message = differences()?;
    // Resets the peak (VmHWM) to the current resident set size.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = kibibytes("VmRSS")?;
    let (began, busy) = (Instant::now(), busy()?);
    let mut differences = zone::Differences::new(Arc::clone(old));
    differences.receive(&message).map_err(|error| error.to_string())?;
    let new = differences.finish().map_err(|error| error.to_string())?;
    let (took, peak, after) = (began.elapsed(), kibibytes("VmHWM")?, kibibytes("VmRSS")?);
    let busy = self::busy()?.saturating_sub(busy);
    let bytes = [old.size(), new.map_or(0, |new| new.size())].map(|bytes| bytes / 1024);
    println!("{} differences in {took:?} ({busy:?} on a processor)", CHANGES * 2);
    println!("KiB: {before} before, {peak} at the peak, {after} after; old and new zone {bytes:?}");
    Ok(())
}

/// Builds an IXFR response that removes some records and adds as many.
fn differences() -> Result<Vec<u8>, NameError> {
    let origin = Name::from_text("example.org.")?;
    let mut message = MessageBuf::new();
    message.start(Header::default(), Some((origin.as_ref(), Type::IXFR, Class::IN)));
    let soa = |message: &mut MessageBuf, serial: u32| -> Result<(), NameError> {
        let names = [Name::from_text("ns1.example.org.")?, Name::from_text("host.example.org.")?];
        let numbers = [serial, 7200, 3600, 1_209_600, 300].map(u32::to_be_bytes).concat();
        let data = [names[0].as_bytes(), names[1].as_bytes(), &numbers].concat();
        message.push_data(Section::Answer, Owner::Question, (Type::SOA, Class::IN, 300), &data);
        Ok(())
    };
    soa(&mut message, 2)?;
    for (serial, last) in [(1, None), (2, Some(1))] {
        soa(&mut message, serial)?;
        for at in (0..CHANGES).map(|at| at * 1000) {
            let name = Name::from_text(&format!("host-{at:07}.rack{}.example.org.", at % 64))?;
            let [_, b, c, d] = at.to_be_bytes();
            let address = [last.map_or(10, |_| 11), b, c, d].into();
            message.push_a(Section::Answer, Owner::Name(name.as_ref()), 300, address);
        }
    }
    soa(&mut message, 2)?;
    Ok(message.finish(None, core::iter::empty()).to_vec())
}

/// Returns a line of `/proc/self/status` in KiB.
fn kibibytes(name: &str) -> std::io::Result<usize> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default())
}

/// Returns the CPU time of this process, so that other processes do not disturb the measurement.
fn busy() -> std::io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Ok(Duration::from_nanos(nanos.unwrap_or_default()))
}

fn ask(zone: &zone::Zone) -> Result<Duration, NameError> {
    let names: Result<Vec<Name>, NameError> = (0..QUESTIONS)
        .map(|at| at.wrapping_mul(7919) % RECORDS)
        .map(|at| Name::from_text(&format!("host-{at:07}.rack{}.example.org.", at % 64)))
        .collect();
    let mut message = MessageBuf::new();
    let names = names?;
    let began = Instant::now();
    for name in &names {
        message.start(Header::default(), Some((name.as_ref(), Type::A, wire::Class::IN)));
        let question = zone::Question { name: name.as_ref(), qtype: Type::A, dnssec_ok: false };
        std::hint::black_box(zone.answer(question, &mut message));
    }
    Ok(began.elapsed())
}
