//! Random updates, compared with a model that is a list of records.

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::{Message, Rcode, Type};

use super::journal::{self, History};
use super::tests::{SEED, lines, message, origin, text, zone};
use super::*;

const NAMES: [&str; 5] = ["@", "a", "b", "a.b", "*.w"];
const RUNS: u64 = 60;
const STEPS: usize = 40;

/// SplitMix64: the run is the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ bits >> 31) % below as u64).unwrap()
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.next(all.len())]
    }
}

/// Record of the model: owner, type, data. The TTL belongs to the set.
type Record = (String, String, String);

#[derive(Clone)]
struct Model {
    records: BTreeSet<Record>,
    serial: u32,
}

impl Model {
    fn has(&self, name: &str, rtype: &str) -> bool {
        self.records.iter().any(|record| record.0 == name && (rtype == "ANY" || record.1 == rtype))
    }

    /// One update as text, in the form of [`message`]. Returns true if it changed something.
    fn update(&mut self, (name, class, rtype, data): (&str, &str, &str, &str)) -> bool {
        let before = self.records.clone();
        let is_apex = name == "@";
        match class {
            "IN" if rtype == "CNAME" => {
                if !self.records.iter().any(|record| record.0 == name && record.1 != "CNAME") {
                    self.records.retain(|record| record.0 != name);
                    self.records.insert((name.into(), rtype.into(), data.into()));
                }
            }
            "IN" => {
                if !self.has(name, "CNAME") {
                    self.records.insert((name.into(), rtype.into(), data.into()));
                }
            }
            "ANY" => self.records.retain(|record| {
                let is_kept = is_apex && matches!(&*record.1, "NS" | "SOA");
                record.0 != name || is_kept || rtype != "ANY" && record.1 != rtype
            }),
            _ => {
                let servers = self.records.iter().filter(|record| record.0 == "@" && record.1 == "NS").count();
                if !(is_apex && rtype == "NS" && servers == 1) {
                    self.records.remove(&(name.into(), rtype.into(), data.into()));
                }
            }
        }
        self.records != before
    }
}

/// An update and a prerequisite, each as its parts.
fn random_record(random: &mut Random) -> (&'static str, &'static str, &'static str, &'static str) {
    let name = random.of(&NAMES);
    let class = random.of(&["IN", "IN", "IN", "NONE", "ANY"]);
    let (rtype, data): (_, &[&str]) = match random.next(if class == "ANY" { 5 } else { 4 }) {
        0 => ("A", &["192.0.2.1", "192.0.2.2", "192.0.2.3"]),
        1 => ("TXT", &["one", "two"]),
        2 => ("CNAME", &["x.example.org.", "y.example.org."]),
        3 => ("NS", &["ns.example.org.", "ns2.example.org."]),
        _ => ("ANY", &[""]),
    };
    (name, class, rtype, random.of(data))
}

#[test]
fn random_updates_agree_with_a_list_of_records() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let start = Arc::new(zone(SEED));
        let mut draft = Draft::new(Arc::clone(&start));
        let mut file = journal::write(&start, &History::default());
        let seeded = [("@", "NS", "ns.example.org."), ("ns", "A", "192.0.2.53"), ("c", "CNAME", "ns.example.org.")];
        let seeded = seeded.map(|(name, rtype, data)| (name.into(), rtype.into(), data.into()));
        let mut model = Model { records: seeded.into(), serial: 1 };
        for step in 0..STEPS {
            let rcode = apply_step(&mut random, &mut draft, &mut model, &mut file);
            let place = format!("seed {seed}, step {step}, {rcode}");
            assert_eq!(draft.serial(), model.serial, "{place}");
            let built = draft.build(crate::Limits::default()).unwrap();
            assert_eq!(check_seed(&built), Ok(()), "{place}");
            assert_eq!(contents(&built), model.records, "{place}");
            let fresh = Draft::new(Arc::new(zone(&text(&built))));
            assert_eq!((draft.records(), draft.bytes()), (fresh.records(), fresh.bytes()), "{place}");
            // Sometimes the draft starts again, as after each batch.
            if random.next(4) == 0 {
                draft = Draft::new(Arc::new(built));
            }
        }
        let restored = journal::read(&file, origin().as_ref(), crate::Limits::default()).unwrap();
        assert_eq!(lines(&restored.zone), lines(&draft.build(crate::Limits::default()).unwrap()), "seed {seed}");
    }
}

fn apply_step(random: &mut Random, draft: &mut Draft, model: &mut Model, file: &mut Vec<u8>) -> Rcode {
    let (name, rtype) = (random.of(&NAMES), random.of(&["ANY", "A", "CNAME", "TXT"]));
    let wants = random.next(4) > 0;
    let has = model.has(name, rtype) || name == "@" && rtype == "ANY";
    let prerequisite = format!("{name} 0 {} {rtype}", if wants { "ANY" } else { "NONE" });
    let prerequisite = if random.next(3) == 0 { prerequisite } else { String::new() };
    let fails = !prerequisite.is_empty() && wants != has;
    let updates: Vec<_> = (0..=random.next(5)).map(|_| random_record(random)).collect();
    let line = |(name, class, rtype, data): &(&str, &str, &str, &str)| {
        let ttl = if *class == "IN" { 60 } else { 0 };
        let data = if *class == "ANY" { "" } else { data };
        format!("{name} {ttl} {class} {rtype} {data}\n").replace(" \n", "\n")
    };
    let text: String = updates.iter().map(line).collect();
    let packet = message(&prerequisite, &text);
    let request = UpdateRequest::read(&Message::parse(&packet).unwrap()).unwrap();
    let limits = UpdateLimits { records: 1000, bytes: 100_000 };
    match draft.apply(&request, |_, _| true, limits) {
        Ok(applied) => {
            assert!(!fails, "{prerequisite}");
            let changes = updates.iter().map(|update| model.update(*update)).filter(|changed| *changed).count();
            model.serial += u32::from(changes > 0);
            match applied {
                Applied::Changed(change) => journal::append(file, &change),
                Applied::Unchanged => assert_eq!(changes, 0, "{text}"),
            }
            Rcode::NOERROR
        }
        Err(error) => {
            assert!(fails, "{error} {text}");
            error.rcode()
        }
    }
}

/// Records of a zone in the form of the model, without the SOA record.
fn contents(zone: &crate::Zone) -> BTreeSet<Record> {
    let line = |line: String| {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let name = words[0].strip_suffix("example.org.").unwrap();
        let name = if name.is_empty() { "@" } else { name.trim_end_matches('.') };
        (name.to_owned(), words[2].to_owned(), words[3].trim_matches('"').to_owned())
    };
    let is_other = |record: &Record| record.1 != Type::SOA.to_string();
    lines(zone).into_iter().map(line).filter(is_other).collect()
}
