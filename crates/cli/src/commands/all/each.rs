//! Commands whose outputs are not merged: what each replica says, and what several say once.

use std::fmt::Write;

use control::exit;
use control::text::harmless;
use serde_json::{Value, json};

use super::super::{as_json, print_text};
use super::{Answer, Replicas, document, unreached};
use crate::all_error::AllError;
use crate::client::ControlError;

/// Output of a command in a Pod, with its exit code.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: u8,
    text: String,
}

pub(super) fn run(words: &[String], replicas: &Replicas<'_>, json: bool) -> Result<u8, ControlError> {
    let answers = replicas.each(|pod| said(replicas, pod, words))?;
    print_text(&if json { as_json(&document(replicas, &answers, members))? } else { text(&answers) })?;
    Ok(code(&answers))
}

/// Runs a command in a Pod. With [`exit::NOT_ASKED`], the Pod has not answered.
fn said(replicas: &Replicas<'_>, pod: &str, words: &[String]) -> Result<Said, AllError> {
    let output = replicas.service.ask(pod, words)?;
    let code = output.code().filter(|code| *code != exit::NOT_ASKED);
    let Some(code) = code else { return Err(output.failure()) };
    Ok(Said { code, text: String::from_utf8_lossy(&output.stdout).into_owned() + &output.said() })
}

/// Returns the exit code, and the output: JSON, or text of a command that could not print JSON.
fn members(said: &Said) -> Value {
    let output = serde_json::from_str(&said.text).unwrap_or_else(|_| Value::String(said.text.clone()));
    json!({ "exit_code": said.code, "output": output })
}

/// Returns the outputs below the names of their replicas. Replicas that say the same are named together.
fn text(answers: &[Answer<Said>]) -> String {
    let mut groups: Vec<(Vec<String>, &Said)> = Vec::new();
    for (replica, said) in answers.iter().filter_map(|answer| Some((&answer.replica, answer.outcome.as_ref().ok()?))) {
        match groups.iter_mut().find(|(_, known)| *known == said) {
            Some((names, _)) => names.push(harmless(replica)),
            None => groups.push((vec![harmless(replica)], said)),
        }
    }
    let mut out = String::new();
    for (names, said) in groups {
        // A string takes everything.
        let _ = writeln!(out, "── {}", names.join(", "));
        // The lines are those of a terminal, and a server can be any program.
        out.extend(said.text.lines().flat_map(|line| [harmless(line), "\n".to_owned()]));
    }
    out + &unreached(answers)
}

/// Returns the exit code: what is unknown comes before trouble, and trouble before success.
fn code(answers: &[Answer<Said>]) -> u8 {
    let codes = || answers.iter().map(|answer| answer.outcome.as_ref().map_or(exit::INCOMPLETE, |said| said.code));
    if codes().any(|code| code == exit::INCOMPLETE) {
        return exit::INCOMPLETE;
    }
    if codes().all(|code| code == exit::FINE) { exit::FINE } else { exit::TROUBLE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(replica: &str, outcome: Result<(u8, &str), AllError>) -> Answer<Said> {
        let outcome = outcome.map(|(code, text)| Said { code, text: text.to_owned() });
        Answer { replica: replica.to_owned(), outcome }
    }

    #[test]
    fn names_replicas_that_say_the_same_together() {
        let lost = || Err(AllError::NoKubectl);
        let answers = [
            answer("a", Ok((0, "one\ntwo\n"))),
            answer("b", Ok((0, "x\u{1b}[2J\n"))),
            answer("c", Ok((0, "one\ntwo\n"))),
        ];
        let out = text(&answers);
        assert!(out.starts_with("── a, c\none\ntwo\n── b\nx"), "{out}");
        assert!(!out.contains('\u{1b}'), "{out:?}");
        let out = text(&[answer("a", Ok((0, "one"))), answer("b", lost())]);
        assert!(out.starts_with("── a\none\n✗ b: "), "{out}");
    }

    #[test]
    fn exits_with_what_is_worst() {
        let of = |codes: &[u8]| code(&codes.iter().map(|code| answer("a", Ok((*code, "")))).collect::<Vec<_>>());
        assert_eq!((of(&[0, 0]), of(&[0, 1]), of(&[1, 3, 0])), (0, 1, 3));
        assert_eq!(code(&[answer("a", Ok((1, ""))), answer("b", Err(AllError::NoKubectl))]), 3);
    }
}
