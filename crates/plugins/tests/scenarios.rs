//! Runs the scenarios of the plugins: `src/plugins/*/scenarios/*.scn`, here and in `common-plugins`.
//!
//! The statement `cluster` provides a Kubernetes cluster, `etcd` a store, and `collector` receives dnstap messages
//! (`words`). Those about views and explanations are in `words/views.rs`. Two directives of the testkit answer queries
//! below all plugins: `records` and `outward`.

mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::setup::Capabilities;
use config::{DirectiveEntry, Directives};
use plugins::HostName;
use testkit::{Arrival, Asked, Extension, Parsed, Problem, Question, Stage, Statement};
use wire::{Name, Section};

#[test]
fn plugins_pass_their_scenarios() {
    let mut entries = plugins::DIRECTIVES.entries().to_vec();
    let is_removed = |entry: &DirectiveEntry| matches!(entry, DirectiveEntry::Removed(_));
    let end = entries.iter().position(is_removed).unwrap_or(entries.len());
    entries.splice(end..end, [testkit::toys::RECORDS, testkit::toys::OUTWARD]);
    let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    testkit::run_directories(
        &[&crates.join("common-plugins/src"), &crates.join("plugins/src")],
        Directives::new(entries.leak()),
        &[
            || Box::new(Shares),
            || Box::new(Replay),
            || Box::new(Fill),
            || Box::new(Modified),
            || Box::new(words::Database),
            || Box::<words::Cluster>::default(),
            || Box::<words::Collectors>::default(),
            || Box::new(words::Posted),
            || Box::new(words::Views),
            || Box::<words::Etcd>::default(),
        ],
    );
}

/// Statement `fill ZONE TYPE N`: queries N names below a zone and waits for each answer.
struct Fill;

impl Extension for Fill {
    fn words(&self) -> &'static [&'static str] {
        &["fill"]
    }

    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
        let mut words = statement.words_between(1, usize::MAX);
        let (zone, qtype): (String, _) = (words.parse("a zone")?, words.parse("a type")?);
        for number in 0..words.parse("a number of names")? {
            let number: u32 = number;
            let name = Name::from_text(&format!("n{number}.{zone}")).map_err(|_| statement.problem("not a zone"))?;
            let ticket = stage.server.ask(&Question::new(name, qtype).packet(), Arrival::default());
            stage.server.wait_for(&ticket, Duration::from_secs(10));
        }
        Ok(())
    }
}

/// Statement `replay ADDRESS`: sends the queries that this upstream has received since the last check back to the
/// server, like a forwarding loop.
struct Replay;

impl Extension for Replay {
    fn words(&self) -> &'static [&'static str] {
        &["replay"]
    }

    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
        let asked =
            stage.server.io.upstreams.take_asked(statement.words_between(1, 2).parse("an address with a port")?);
        if asked.is_empty() {
            return Err(statement.problem("the upstream received no query"));
        }
        for Asked { query, .. } in asked {
            let Some((name, qtype, qclass)) = query.question else { continue };
            let question = Question { qclass, header: query.header, opt: query.opt, ..Question::new(name, qtype) };
            stage.server.ask(&question.packet(), Arrival::default());
        }
        Ok(())
    }
}

/// Statement `modified PATH SECONDS`: sets the modification time of a file, in seconds since the Unix epoch.
struct Modified;

impl Extension for Modified {
    fn words(&self) -> &'static [&'static str] {
        &["modified"]
    }

    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
        let mut words = statement.words_between(1, usize::MAX);
        let path: PathBuf = words.parse("a path")?;
        let modified = Duration::from_secs_f64(words.parse("a number of seconds")?).as_nanos();
        let known = stage.server.world.set_modified(&path, modified);
        known.then_some(()).ok_or_else(|| statement.problem("there is no such file"))
    }
}

/// Statement `first NAME TYPE of N`: queries N times and counts which record comes first. Each line of the body has the
/// data of a record, and the minimum and maximum number of times it may be first.
struct Shares;

impl Extension for Shares {
    fn words(&self) -> &'static [&'static str] {
        &["first"]
    }

    fn provide(&self, process: &mut Capabilities) {
        process.provide(HostName("host.test".to_owned()));
    }

    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
        let mut words = statement.words_between(1, usize::MAX);
        let name = words.next_word().and_then(|word| Name::from_text(word).ok());
        let name = name.ok_or_else(|| statement.problem("`first` needs a name"))?;
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

/// Data of the first record in the answer.
fn first_record(stage: &mut Stage, question: &[u8]) -> String {
    let outcome = stage.server.ask(question, Arrival::default()).outcome();
    let answer = outcome.and_then(|outcome| Parsed::read(&outcome.answer?).ok());
    let first = answer.and_then(|answer| answer.section(Section::Answer).first().map(ToString::to_string));
    first.and_then(|record| record.split(' ').next_back().map(str::to_owned)).unwrap_or_else(|| "nothing".to_owned())
}
