//! `cluster` + lines: events of a cluster, as `cluster::scenario` reads them, one a line; what was said before holds on.
//! `cluster unlisted`: what is said so far is not all, until `cluster listed`. `cluster refused TEXT`: no cluster can be
//! followed from here on.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use cluster::scenario::Stage as World;
use cluster::{Index, Request};
use engine::setup::Capabilities;
use plugins::{Clusters, Following, LocalAddresses};
use testkit::{Extension, Problem, Stage, Statement};

/// This machine, where its addresses matter.
const LOCAL: [&str; 2] = ["192.0.2.2", "fd00::2"];

/// The cluster of a scenario.
#[derive(Default)]
pub(crate) struct Cluster(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    events: Vec<String>,
    unlisted: bool,
    refused: Option<String>,
    followed: Vec<(Request, World)>,
}

impl Extension for Cluster {
    fn words(&self) -> &'static [&'static str] {
        &["cluster"]
    }

    fn provide(&self, process: &mut Capabilities) {
        let clusters: Rc<dyn Clusters> = Rc::new(Cluster(Rc::clone(&self.0)));
        process.provide(clusters);
        let local = LOCAL.iter().filter_map(|address| address.parse().ok());
        process.provide(LocalAddresses(local.collect()));
    }

    fn play(&mut self, statement: &Statement, _: &mut Stage) -> Result<(), Problem> {
        let state = &mut *self.0.borrow_mut();
        match statement.rest(1) {
            "" => {}
            "unlisted" => state.unlisted = true,
            "listed" => {
                state.unlisted = false;
                state.followed.iter_mut().for_each(|(_, world)| world.list_all());
            }
            other => match other.strip_prefix("refused ") {
                Some(reason) => state.refused = Some(reason.to_owned()),
                None => return Err(statement.problem("`cluster` stands alone or with unlisted, listed, refused TEXT")),
            },
        }
        for event in statement.lines().map(|line| line.text.clone()) {
            state.followed.iter_mut().for_each(|(_, world)| world.play(&event));
            state.events.push(event);
        }
        Ok(())
    }
}

impl Clusters for Cluster {
    fn follow(&self, request: &Request) -> Result<Arc<dyn Following>, String> {
        let state = &mut *self.0.borrow_mut();
        if let Some(reason) = &state.refused {
            return Err(reason.clone());
        }
        let request = request.canonical();
        if let Some((_, known)) = state.followed.iter().find(|(known, _)| *known == request) {
            return Ok(Arc::new(Followed(Arc::clone(&known.index))));
        }
        let mut world = World::new(request.watches());
        state.events.iter().for_each(|event| world.play(event));
        if !state.unlisted {
            world.list_all();
        }
        let index = Arc::clone(&world.index);
        state.followed.push((request, world));
        Ok(Arc::new(Followed(index)))
    }
}

struct Followed(Arc<Index>);

impl Following for Followed {
    fn index(&self) -> &Arc<Index> {
        &self.0
    }
}
