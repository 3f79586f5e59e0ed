//! How long a million records take to become a zone, and how much memory they take.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a measurement reads the clock and prints")]

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use wire::{Header, MessageBuf, Name, NameError, Type};

const RECORDS: u32 = 1_000_000;
const QUESTIONS: u32 = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::from("$ORIGIN example.org.\n$TTL 300\n@ SOA ns1 host 1 7200 3600 1209600 300\n@ NS ns1\n");
    for at in 0..RECORDS {
        let [_, b, c, d] = at.to_be_bytes();
        writeln!(text, "host-{at:07}.rack{} IN A 10.{b}.{c}.{d}", at % 64)?;
    }
    let origin = Name::from_text("example.org.")?;
    let text = text.into_bytes();
    let began = Instant::now();
    let loaded = zone::load(origin.as_ref(), Path::new("zone"), &mut |_| Ok(text.clone()))?;
    let (took, records) = (began.elapsed(), loaded.zone.len());
    println!("{records} records in {took:?}, {} octets each", loaded.zone.octets() / records);
    println!("{:?} a question", ask(&loaded.zone)? / QUESTIONS);
    Ok(())
}

fn ask(zone: &zone::Zone) -> Result<std::time::Duration, NameError> {
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
