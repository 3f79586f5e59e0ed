//! Queries of a background job to the server that it runs in.

use std::rc::Rc;

use engine::{Io, ListenerId, LocalFuture, PeerInfo};

/// Server block chains that serve now, for a job that asks them.
pub trait OwnQueries {
    /// Answers a query like one that a client has sent to a listener. Returns the response in wire form, or `None` if a
    /// client would get none.
    fn ask(&self, listener: ListenerId, peer: PeerInfo, packet: &[u8]) -> LocalFuture<'static, Option<Vec<u8>>>;
}

/// Background job that asks this server. The host drops it when the generation ends.
pub type QueryJob = Box<dyn FnOnce(Rc<dyn Io>, Rc<dyn OwnQueries>) -> LocalFuture<'static, ()> + Send>;
