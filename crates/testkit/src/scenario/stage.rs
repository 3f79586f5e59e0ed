//! State of a scenario.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::Transport;

use crate::{Question, Server, Ticket};

/// A server, and the state of a scenario.
pub struct Stage {
    /// Server. It serves nothing before the first `corefile`.
    pub server: Server,
    pub(super) asked: HashMap<String, Asked>,
    pub(super) next_id: u16,
    /// Errors of the last Corefile.
    pub(super) problems: String,
    /// Participants in readiness added by the scenario.
    pub(super) members: HashMap<&'static str, Arc<AtomicBool>>,
}

/// A query that was sent.
pub(super) struct Asked {
    pub(super) ticket: Ticket,
    /// The query, if the response must follow the rules.
    pub(super) question: Option<(Question, Transport)>,
}
