//! Statement `cluster` with lines: events of a cluster, one per line, in the format of `cluster::scenario`. Earlier
//! events stay in effect.
//!
//! `cluster unlisted`: the initial lists are incomplete until `cluster listed`. `cluster refused TEXT`: watching a
//! cluster fails with this error from here on. `cluster age SECONDS`: the source confirmed the data so
//! long ago.

use std::rc::Rc;

use cluster::Clusters;
use cluster::scenario::Script;
use config::setup::Capabilities;
use plugins::LocalAddresses;
use testkit::{Extension, Problem, Stage, Statement};

/// Addresses of this machine, for plugins that need them.
const LOCAL: [&str; 2] = ["192.0.2.2", "fd00::2"];

/// Cluster of a scenario.
#[derive(Default)]
pub(crate) struct Cluster(Script);

impl Extension for Cluster {
    fn words(&self) -> &'static [&'static str] {
        &["cluster"]
    }

    fn provide(&self, process: &mut Capabilities) {
        let clusters: Rc<dyn Clusters> = Rc::new(self.0.clone());
        process.provide(clusters);
        let local = LOCAL.iter().filter_map(|address| address.parse().ok());
        process.provide(LocalAddresses(local.collect()));
    }

    fn play(&mut self, statement: &Statement, _: &mut Stage) -> Result<(), Problem> {
        match statement.rest(1) {
            "" => {}
            "unlisted" => self.0.unlist(),
            "listed" => self.0.list(),
            other => match other.split_once(' ') {
                Some(("refused", reason)) => self.0.refuse(reason),
                Some(("age", seconds)) => {
                    self.0.age(seconds.parse().map_err(|_| statement.problem("an age is a number of seconds"))?);
                }
                _ => {
                    return Err(statement.problem("expected nothing, unlisted, listed, age SECONDS, refused TEXT"));
                }
            },
        }
        statement.lines().for_each(|line| self.0.play(&line.text));
        Ok(())
    }
}
