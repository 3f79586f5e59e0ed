//! The same question asked twice at the same time goes out once (the class of CVE-2023-30464: birthday attacks on many
//! identical questions in flight).

use std::sync::{Arc, Mutex};

use foldhash::fast::RandomState;
use futures_channel::oneshot::{Receiver, Sender, channel};
use hashbrown::HashMap;

use crate::labels::Told;
use crate::{Query, Resolved};

/// What came of a question, and the values of labels that came to be with it.
pub(crate) type Outcome = (Resolved, Told);

/// All that the answer of an upstream may depend on.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    block: usize,
    step: usize,
    name: Box<[u8]>,
    qtype: u16,
    qclass: u16,
    stream: bool,
    /// What an upstream may send in one datagram: a cut answer for one client is no answer for another.
    udp_size: u16,
    flags: u16,
    dnssec_ok: bool,
    onward: Vec<(u16, Box<[u8]>)>,
}

/// RD, AD and CD: the flags that are passed on.
const FLAGS_THAT_MATTER: u16 = 0x0130;

impl Key {
    pub(crate) fn new(block: usize, step: usize, query: &Query) -> Key {
        let stream = query.path.transport.is_stream();
        Key {
            block,
            step,
            name: query.key().octets().into(),
            qtype: query.qtype.0,
            qclass: query.qclass.0,
            stream,
            // Less than we take ourselves is not asked for; who takes less gets its part of the whole.
            udp_size: if stream { 0 } else { query.onward_udp_size() },
            flags: query.flags().0 & FLAGS_THAT_MATTER,
            dnssec_ok: query.dnssec_ok,
            onward: query.onward_options().map(|(code, data)| (code.0, data.into())).collect(),
        }
    }
}

/// Those that wait for the outcome of a question.
type Followers = Vec<Sender<Arc<Outcome>>>;

/// Questions in flight, of all workers.
pub(crate) struct Inflight {
    waiting: Mutex<HashMap<Key, Followers, RandomState>>,
}

impl Default for Inflight {
    fn default() -> Self {
        Inflight { waiting: Mutex::new(HashMap::with_hasher(RandomState::default())) }
    }
}

/// Who asks the outside world.
pub(crate) enum Seat<'a> {
    /// This one does, and tells the others.
    Leader(Leader<'a>),
    /// Another one does already.
    Follower(Receiver<Arc<Outcome>>),
}

/// The duty to tell the others; if it is dropped before, they are told that nothing will come.
pub(crate) struct Leader<'a> {
    inflight: &'a Inflight,
    key: Option<Key>,
}

impl Inflight {
    /// Takes a seat for a question.
    pub(crate) fn join(&self, key: Key) -> Seat<'_> {
        let Ok(mut waiting) = self.waiting.lock() else {
            return Seat::Leader(Leader { inflight: self, key: None });
        };
        if let Some(followers) = waiting.get_mut(&key) {
            let (sender, receiver) = channel();
            followers.push(sender);
            return Seat::Follower(receiver);
        }
        waiting.insert(key.clone(), Vec::new());
        Seat::Leader(Leader { inflight: self, key: Some(key) })
    }
}

impl Leader<'_> {
    /// Tells the others.
    pub(crate) fn tell(mut self, resolved: &Resolved, query: &Query) {
        let followers = self.take_followers();
        if !followers.is_empty() {
            let outcome = Arc::new((resolved.clone(), query.all_told()));
            for follower in followers {
                let _ = follower.send(Arc::clone(&outcome));
            }
        }
    }

    fn take_followers(&mut self) -> Followers {
        let Some(key) = self.key.take() else { return Vec::new() };
        self.inflight.waiting.lock().ok().and_then(|mut waiting| waiting.remove(&key)).unwrap_or_default()
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        drop(self.take_followers());
    }
}
