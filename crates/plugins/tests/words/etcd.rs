//! Statement `etcd` with lines: keys and values of a store, in the format of `skydns::scenario`, written in one
//! transaction. Earlier keys stay.
//!
//! `etcd away`: the store is unreachable until `etcd back`. `etcd lease ID SECONDS`: sets the remaining time of a
//! lease. `etcd refused TEXT`: watching a store fails with this error from here on.

use std::rc::Rc;

use config::setup::Capabilities;
use skydns::Stores;
use skydns::scenario::Script;
use testkit::{Extension, Problem, Stage, Statement};

/// Store of a scenario.
#[derive(Default)]
pub(crate) struct Etcd(Script);

impl Extension for Etcd {
    fn words(&self) -> &'static [&'static str] {
        &["etcd"]
    }

    fn provide(&self, process: &mut Capabilities) {
        let stores: Rc<dyn Stores> = Rc::new(self.0.clone());
        process.provide(stores);
    }

    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
        let mut words = statement.words_between(1, usize::MAX);
        match words.next_word() {
            None => {}
            Some("away") => self.0.go_away(),
            Some("back") => self.0.come_back(),
            Some("lease") => {
                let (id, seconds) = (words.parse("a number")?, words.parse("a number of seconds")?);
                self.0.set_lease(id, seconds, stage.server.now().nanos());
            }
            Some("refused") => self.0.refuse(statement.rest(2)),
            Some(_) => return Err(statement.problem("`etcd` stands alone or with away, back, lease, refused")),
        }
        let lines: Vec<&str> = statement.lines().map(|line| line.text.as_str()).collect();
        self.0.play(&lines);
        Ok(())
    }
}
