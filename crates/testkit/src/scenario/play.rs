//! Execution of a scenario.

use core::time::Duration;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use config::Directives;

use super::{Extension, MakeExtension, Problem, Stage, Statement, asking, looking, tables};
use crate::{Server, Site};

/// Executes the statements of a scenario and returns its problems.
pub(super) fn play(statements: &[Statement], directives: Directives, extensions: &[MakeExtension]) -> Vec<Problem> {
    let mut stage = Stage {
        server: Server::new(directives),
        asked: HashMap::new(),
        next_id: 0,
        problems: String::new(),
        members: HashMap::new(),
    };
    let mut extensions: Vec<_> = extensions.iter().map(|make| make()).collect();
    let mut problems = Vec::new();
    for statement in statements {
        let outcome = stage.play(statement, &mut extensions);
        // Without a server, every later statement would fail and only repeat the problem.
        let hopeless = outcome.is_err() && statement.word() == "corefile";
        problems.extend(outcome.err());
        if hopeless {
            break;
        }
    }
    if problems.is_empty() && !stage.asked.is_empty() {
        let labels: Vec<_> = stage.asked.keys().cloned().collect();
        let line = statements.last().map_or(0, |statement| statement.head.number);
        problems.push(Problem { line, text: format!("queries without a check: {}", labels.join(", ")) });
    }
    problems
}

impl Stage {
    fn play(&mut self, statement: &Statement, extensions: &mut [Box<dyn Extension>]) -> Result<(), Problem> {
        match statement.word() {
            "corefile" => self.corefile(statement, extensions),
            "file" => {
                self.server.world.write(statement.rest(1), statement.text());
                Ok(())
            }
            "variable" => self.variable(statement),
            "after" => {
                let span = statement.words_between(1, 2).duration()?;
                self.server.pass(span);
                Ok(())
            }
            "ask" => asking::ask(self, statement),
            "raw" => asking::raw(self, statement),
            "answer" => asking::answer(self, statement),
            "pending" => asking::pending(self, statement),
            "upstream" => tables::upstream(self, statement),
            "site" => self.site(statement),
            "metric" => looking::metric(self, statement),
            "log" => looking::log(self, statement),
            "page" => looking::page(self, statement),
            "needs" => looking::needs(self, statement),
            "problem" => self.problem(statement),
            "unready" | "ready" => self.readiness(statement),
            "end" => {
                self.server.end();
                Ok(())
            }
            "no" => self.absent(statement),
            word => {
                let known = extensions.iter_mut().find(|extension| extension.words().contains(&word));
                let known = known.ok_or_else(|| statement.problem(format!("unknown statement `{word}`")))?;
                known.play(statement, self)
            }
        }
    }

    /// Executes `corefile [fails]`: loads or reloads the text below.
    fn corefile(&mut self, statement: &Statement, extensions: &[Box<dyn Extension>]) -> Result<(), Problem> {
        extensions.iter().for_each(|extension| extension.provide(&mut self.server.process));
        let outcome = self.server.load(&statement.text());
        let must_fail = statement.words().nth(1) == Some("fails");
        self.problems = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
        self.members.iter().for_each(|(name, ready)| self.add_member(name, ready));
        match outcome {
            Err(error) if !must_fail => Err(statement.problem(error.0)),
            Ok(()) if must_fail => Err(statement.problem("this Corefile should be rejected, but it was loaded")),
            _ => Ok(()),
        }
    }

    /// Executes `problem TEXT`: checks the errors of the last Corefile.
    fn problem(&self, statement: &Statement) -> Result<(), Problem> {
        if self.problems.contains(statement.rest(1)) {
            return Ok(());
        }
        let message = format!("expected a problem with `{}`; the problems are:\n{}", statement.rest(1), self.problems);
        Err(statement.problem(message))
    }

    fn variable(&self, statement: &Statement) -> Result<(), Problem> {
        let name = statement.words().nth(1).ok_or_else(|| statement.problem("`variable` needs a name and a value"))?;
        self.server.world.set_variable(name, statement.rest(2));
        Ok(())
    }

    /// Executes `site ADDRESS PATH STATUS|refused [delay DURATION]`: sets a website in place of the server's own
    /// page.
    fn site(&self, statement: &Statement) -> Result<(), Problem> {
        let mut words = statement.words_between(4, usize::MAX);
        let [address, path] = [1, 2].map(|at| statement.words().nth(at).unwrap_or_default());
        let status = match statement.words().nth(3) {
            Some("refused") => None,
            word => Some(statement.parse(word, "an HTTP status")?),
        };
        let delay = if words.next_word() == Some("delay") { words.duration()? } else { Duration::ZERO };
        self.server.io.set_site(address, path, Some(Site { status, delay }));
        Ok(())
    }

    /// Executes `unready NAME` and `ready NAME`: adds a participant in readiness, or changes its state.
    fn readiness(&mut self, statement: &Statement) -> Result<(), Problem> {
        let name = statement.rest(1);
        let ready = statement.word() == "ready";
        if let Some(member) = self.members.get(name) {
            member.store(ready, Ordering::Relaxed);
            return Ok(());
        }
        // The registry needs `'static` names. A scenario leaks only a handful of them.
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        let member = Arc::new(AtomicBool::new(ready));
        self.add_member(name, &member);
        self.members.insert(name, member);
        Ok(())
    }

    fn add_member(&self, name: &'static str, ready: &Arc<AtomicBool>) {
        let ready = Arc::clone(ready);
        if let Some(readiness) = self.server.readiness() {
            readiness.add(name, move || ready.load(Ordering::Relaxed));
        }
    }

    /// Executes `no log`, `no page`, `no file` and `no site`.
    fn absent(&mut self, statement: &Statement) -> Result<(), Problem> {
        match statement.words().nth(1) {
            Some("log") => looking::no_log(self, statement),
            Some("page") => looking::no_page(self, statement),
            Some("file") => match self.server.world.remove(Path::new(statement.rest(2))) {
                true => Ok(()),
                false => Err(statement.problem("there was no such file")),
            },
            Some("site") => {
                let [address, path] = [2, 3].map(|at| statement.words().nth(at).unwrap_or_default());
                self.server.io.set_site(address, path, None);
                Ok(())
            }
            _ => Err(statement.problem("`no` is said of `log`, `page`, `file` and `site`")),
        }
    }
}
