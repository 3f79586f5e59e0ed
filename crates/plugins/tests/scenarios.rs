//! Runs the scenarios that stand beside the plugins: `src/*/scenarios/*.scn`.
//!
//! Below all plugins two directives of the testkit stand in for those that answer: `records` and `outward`.

use std::collections::BTreeMap;

use engine::setup::Capabilities;
use plugins::HostName;
use testkit::{Arrival, Extension, Parsed, Problem, Question, Stage, Statement};
use wire::{Name, Section};

#[test]
fn scenarios() {
    let mut slots = plugins::DIRECTIVES.to_vec();
    slots.extend([testkit::toys::RECORDS, testkit::toys::OUTWARD]);
    testkit::run_directory(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &slots, &[|| Box::new(Shares)]);
}

/// `first NAME TYPE of N`: asks N times and counts which record comes first; each line below is the data of a record,
/// and how often at least and at most it may be the first.
struct Shares;

impl Extension for Shares {
    fn words(&self) -> &'static [&'static str] {
        &["first"]
    }

    fn provide(&self, process: &mut Capabilities) {
        process.provide(HostName("host.test".to_owned()));
    }

    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
        let mut words = statement.take_words(1, usize::MAX);
        let name = words.next_word().and_then(|word| Name::from_text(word).ok());
        let name = name.ok_or_else(|| statement.problem("`first` wants a name"))?;
        let question = Question::new(name, words.parse("a type")?).packet();
        let count: usize = words.next_word().map_or(Ok(0), |_| words.parse("a number"))?;
        let mut firsts: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..count {
            *firsts.entry(first_record(stage, &question)).or_default() += 1;
        }
        for line in statement.lines() {
            let [data, least, most] = line.text.split_whitespace().collect::<Vec<_>>()[..] else {
                return Err(statement.problem("a line is data, at least, at most"));
            };
            let got = firsts.remove(data).unwrap_or(0);
            let within = statement.parse(Some(least), "a number")?..=statement.parse(Some(most), "a number")?;
            if !within.contains(&got) {
                return Err(Problem { line: line.number, text: format!("{data} was first {got} times") });
            }
        }
        if firsts.is_empty() { Ok(()) } else { Err(statement.problem(format!("first were also {firsts:?}"))) }
    }
}

/// The data of the first record of the answer.
fn first_record(stage: &mut Stage, question: &[u8]) -> String {
    let outcome = stage.server.ask(question, Arrival::default()).outcome();
    let answer = outcome.and_then(|outcome| Parsed::read(&outcome.answer?).ok());
    let first = answer.and_then(|answer| answer.section(Section::Answer).first().map(ToString::to_string));
    first.and_then(|record| record.split(' ').next_back().map(str::to_owned)).unwrap_or_else(|| "nothing".to_owned())
}
