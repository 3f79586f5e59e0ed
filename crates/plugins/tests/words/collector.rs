//! Statement `collector ADDRESS`: starts a collector of dnstap messages; `collector ADDRESS gone` stops it.
//!
//! Statement `collected ADDRESS` with lines: messages received since the last check, one per line, in the format of
//! `testkit::dnstap_line`. `*` matches any word.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use testkit::{Extension, FrameReader, Problem, Stage, Statement};

/// Collectors of a scenario.
#[derive(Default)]
pub(crate) struct Collectors(HashMap<String, Rc<RefCell<FrameReader>>>);

impl Extension for Collectors {
    fn words(&self) -> &'static [&'static str] {
        &["collector", "collected"]
    }

    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
        let mut words = statement.words_between(1, usize::MAX);
        let address: String = words.parse("an address")?;
        if statement.word() == "collected" {
            return self.look(&address, statement);
        }
        let reader = Rc::clone(self.0.entry(address.clone()).or_default());
        let peer: testkit::Peer = Box::new(move |bytes| reader.borrow_mut().take(bytes));
        let is_there = words.next_word() != Some("gone");
        stage.server.io.set_peer(&address, is_there.then_some(peer));
        Ok(())
    }
}

impl Collectors {
    fn look(&self, address: &str, statement: &Statement) -> Result<(), Problem> {
        let reader = self.0.get(address).ok_or_else(|| statement.problem("there never was a collector"))?;
        let lines = core::mem::take(&mut reader.borrow_mut().lines);
        let expected: Vec<_> = statement.lines().collect();
        let fits = |(expected, got): (&&testkit::Line, &String)| fits(&expected.text, got);
        if expected.len() == lines.len() && expected.iter().zip(&lines).all(fits) {
            return Ok(());
        }
        Err(statement.problem(format!("there came\n{}", lines.join("\n"))))
    }
}

fn fits(expected: &str, got: &str) -> bool {
    let (mut expected, mut got) = (expected.split_whitespace(), got.split_whitespace());
    loop {
        match (expected.next(), got.next()) {
            (None, None) => return true,
            (Some(expected), Some(got)) if expected == "*" || expected == got => {}
            _ => return false,
        }
    }
}
