//! `etcd` + lines: keys of a store and their values, as `skydns::scenario` reads them, all at once; what was said before
//! holds on. `etcd away`: it cannot be reached until `etcd back`. `etcd lease ID SECONDS`: so much is left of a lease.
//! `etcd refused TEXT`: no store can be followed from here on.

use std::rc::Rc;

use engine::setup::Capabilities;
use skydns::Stores;
use skydns::scenario::Script;
use testkit::{Extension, Problem, Stage, Statement};

/// The store of a scenario.
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
        let mut words = statement.take_words(1, usize::MAX);
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
