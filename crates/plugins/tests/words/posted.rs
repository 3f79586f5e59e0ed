//! Statement `posted` with text: the concatenated HTTP request bodies sent since the last check. `*` matches any text
//! up to what follows it.

use testkit::{Extension, Problem, Stage, Statement};

/// HTTP request bodies of a scenario.
pub(crate) struct Posted;

impl Extension for Posted {
    fn words(&self) -> &'static [&'static str] {
        &["posted"]
    }

    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
        let posted = stage.server.io.take_posted().concat();
        let expected: String = statement.lines().map(|line| line.text.as_str()).collect();
        if fits(&expected, &posted) { Ok(()) } else { Err(statement.problem(format!("there came\n{posted}"))) }
    }
}

fn fits(expected: &str, got: &str) -> bool {
    let Some((start, parts)) = expected.split_once('*') else { return expected == got };
    let (middle, end) = parts.rsplit_once('*').unwrap_or(("", parts));
    let inner = got.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
    let in_order = |rest: &str| {
        let mut parts = middle.split('*');
        parts.try_fold(0, |at, part| Some(at + rest.get(at..)?.find(part)? + part.len())).is_some()
    };
    inner.is_some_and(in_order)
}
