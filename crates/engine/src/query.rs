//! A query on its way through the chain.

use core::any::Any;
use core::cell::{Cell, RefCell};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use std::rc::Rc;

use wire::{Class, Flags, Header, Name, NameRef, Opcode, Opt, OptionCode, Request, Type};

use crate::labels::Told;
use crate::walk::Patience;
use crate::{Moment, UDP_SIZE};

/// Steps in the longest chain: more than there are directives, a step each; a set of passed steps is one word.
pub const STEPS_MAX: usize = 64;
/// EDNS options that go along to an upstream: more than any set of rules adds with sense.
const ONWARD_MAX: usize = 8;
/// Octets that any client takes over UDP (RFC 1035 §4.2.1).
const UDP_SIZE_MIN: u16 = 512;
/// Octets of the longest message over a stream.
const STREAM_SIZE_MAX: u16 = u16::MAX;

/// How a query came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transport {
    /// One datagram each way.
    #[default]
    Udp,
    /// A stream of length-prefixed messages.
    Tcp,
    /// One message each way, each pair in a call of its own.
    Grpc,
}

impl Transport {
    /// Whether a message may have 65,535 octets.
    #[must_use]
    pub const fn is_stream(self) -> bool {
        matches!(self, Transport::Tcp | Transport::Grpc)
    }

    /// Whether an answer may be many messages.
    #[must_use]
    pub const fn takes_many(self) -> bool {
        matches!(self, Transport::Tcp)
    }

    /// As logs and metrics write it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp | Transport::Grpc => "tcp",
        }
    }
}

/// From where to where a query came, and how.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The client.
    pub peer: SocketAddr,
    /// The address it asked.
    pub local: SocketAddr,
    /// The transport.
    pub transport: Transport,
}

impl Default for Path {
    fn default() -> Self {
        let nowhere = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
        Path { peer: nowhere, local: nowhere, transport: Transport::Udp }
    }
}

/// A query, as the plugins see it.
///
/// What the client sent stays in [`Query::request`]; what is asked now, after rewriting, are the fields beside it.
#[derive(Default)]
pub struct Query {
    /// What the client sent, read.
    pub request: Request,
    /// The octets that the client sent; empty in a question that a plugin asked.
    pub packet: Vec<u8>,
    /// From where to where.
    pub path: Path,
    /// When it was received.
    pub received: Moment,
    /// The name asked, its case kept.
    name: Name,
    /// The name asked, in lower case.
    key: Name,
    /// The type asked.
    pub qtype: Type,
    /// The class asked.
    pub qclass: Class,
    /// Octets that the client takes over UDP, as far as the answer is concerned.
    pub udp_size: u16,
    /// Octets that an answer from an upstream may have over UDP at most, by what a plugin says.
    pub onward_size_max: u16,
    /// Wants DNSSEC records (DO).
    pub dnssec_ok: bool,
    /// Index of the server block's site that serves it: which address, which zone.
    pub site: usize,
    /// Octets of the name before the zone that matched the present step.
    zone_at: usize,
    /// Index of that zone among the step's zones.
    zone_index: usize,
    /// The name has changed and the answer does not know yet.
    renamed: bool,
    /// The present step.
    pub(crate) step: usize,
    /// The step that does not wait for ever.
    pub(crate) patience: Option<Patience>,
    /// Whether the client has gone; `None` while it cannot go before its answer is there.
    pub(crate) abandoned: Option<Rc<Cell<bool>>>,
    notes: Notes,
    kept: Vec<(usize, Box<dyn Any>)>,
    /// EDNS options that go along to upstreams.
    onward: Vec<(OptionCode, Box<[u8]>)>,
    /// Values of labels that came to be with the answer.
    told: RefCell<Told>,
}

/// One word a step for what a plugin must remember between its hooks.
struct Notes([u64; STEPS_MAX]);

impl Default for Notes {
    fn default() -> Self {
        Notes([0; STEPS_MAX])
    }
}

impl Query {
    /// Takes over what [`Query::request`] has read, for a chain of `steps` steps.
    pub(crate) fn begin(&mut self) {
        self.take_request();
        self.udp_size = self.request.opt.map_or(UDP_SIZE_MIN, |opt| opt.udp_size.max(UDP_SIZE_MIN));
        self.onward_size_max = u16::MAX;
        self.dnssec_ok = self.request.opt.is_some_and(|opt| opt.dnssec_ok);
        self.reset();
    }

    /// Asks again what the client asked, whatever steps have made of it.
    pub(crate) fn take_request(&mut self) {
        self.name.set(self.request.name.as_ref());
        self.key.set_lowercase(self.request.name.as_ref());
        self.qtype = self.request.qtype;
        self.qclass = self.request.qclass;
    }

    /// Asks what `other` asks.
    pub(crate) fn take_question(&mut self, other: &Query) {
        self.name.set(other.name.as_ref());
        self.key.set(other.key.as_ref());
        self.qtype = other.qtype;
        self.qclass = other.qclass;
    }

    /// Becomes the question of a plugin: from the same client, by the same way, for another name and type.
    pub(crate) fn begin_for(&mut self, parent: &Query, name: NameRef<'_>, qtype: Type) {
        self.request.header = parent.request.header;
        // Whatever the client's message is, this is a question.
        self.request.header.flags = parent.request.header.flags.with_opcode(Opcode::QUERY);
        self.request.opt = parent.request.opt;
        self.request.name.set(name);
        self.request.qtype = qtype;
        self.request.qclass = Class::IN;
        self.packet.clear();
        self.path = parent.path;
        self.received = parent.received;
        self.begin();
        self.udp_size = parent.udp_size;
        self.onward_size_max = parent.onward_size_max;
    }

    /// Becomes a copy of a query as it stands at its present step.
    pub(crate) fn copy_from(&mut self, other: &Query) {
        self.request = other.request.clone();
        self.packet.clear();
        self.packet.extend_from_slice(&other.packet);
        self.path = other.path;
        self.received = other.received;
        self.take_question(other);
        self.udp_size = other.udp_size;
        self.onward_size_max = other.onward_size_max;
        self.dnssec_ok = other.dnssec_ok;
        self.reset();
        self.site = other.site;
        self.step = other.step;
        self.zone_at = other.zone_at;
        self.zone_index = other.zone_index;
        self.notes.0 = other.notes.0;
        self.take_onward(other);
        self.hear(other.all_told());
    }

    fn reset(&mut self) {
        self.site = 0;
        self.zone_at = 0;
        self.zone_index = 0;
        self.step = 0;
        self.patience = None;
        self.abandoned = None;
        self.renamed = false;
        self.kept.clear();
        self.onward.clear();
        self.told.get_mut().clear();
    }

    /// Forgets what the steps of a longer life noted.
    pub(crate) fn clear_notes(&mut self, steps: usize) {
        self.notes.0[..steps.min(STEPS_MAX)].fill(0);
    }

    /// The name asked, its case kept.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        self.name.as_ref()
    }

    /// The name asked, in lower case.
    #[must_use]
    pub fn key(&self) -> NameRef<'_> {
        self.key.as_ref()
    }

    /// Asks for another name from here on; on the way up the step that changed it must put the old one back, and write
    /// the answer for it ([`Response::rewrite`](crate::Response::rewrite)).
    pub fn set_name(&mut self, name: NameRef<'_>) {
        self.name.set(name);
        self.key.set_lowercase(name);
        self.set_zone(0, NameRef::ROOT);
        self.renamed = true;
    }

    /// Asks again what the client asked, or the plugin whose question it is: on the way up, what a step must do that has
    /// changed the question on the way down, if none above it has.
    pub fn restore_question(&mut self) {
        self.take_request();
        self.set_zone(0, NameRef::ROOT);
    }

    /// Whether the name has changed since this was last asked: the answer must then begin anew.
    pub(crate) fn take_renamed(&mut self) -> bool {
        core::mem::take(&mut self.renamed)
    }

    pub(crate) fn set_zone(&mut self, index: usize, zone: NameRef<'_>) {
        self.zone_index = index;
        self.zone_at = self.key.octets().len() - zone.len();
    }

    /// The zone that matched the present step, in the case of the question; the root once this step has changed the name.
    #[must_use]
    pub fn zone(&self) -> NameRef<'_> {
        NameRef::from_octets(&self.name.octets()[self.zone_at..]).unwrap_or(NameRef::ROOT)
    }

    /// Octets of the name that stand before [`Query::zone`].
    #[must_use]
    pub const fn zone_at(&self) -> usize {
        self.zone_at
    }

    /// The index of the zone that matched among the zones of the present step.
    #[must_use]
    pub const fn zone_index(&self) -> usize {
        self.zone_index
    }

    /// The header that the client sent.
    #[must_use]
    pub const fn header(&self) -> Header {
        self.request.header
    }

    /// The flags that the client sent.
    #[must_use]
    pub const fn flags(&self) -> Flags {
        self.request.header.flags
    }

    /// Whether it is a question of a plugin, for which no client has sent octets.
    #[must_use]
    pub const fn is_own(&self) -> bool {
        self.packet.is_empty()
    }

    /// What the client said by EDNS.
    #[must_use]
    pub const fn opt(&self) -> Option<Opt> {
        self.request.opt
    }

    /// The EDNS options that the client sent.
    pub fn options(&self) -> impl Iterator<Item = (OptionCode, &[u8])> {
        self.request.options(&self.packet)
    }

    /// The EDNS options that go along to an upstream. None of the client's do: they are for this server.
    pub fn onward_options(&self) -> impl Iterator<Item = (OptionCode, &[u8])> {
        self.onward.iter().map(|(code, data)| (*code, &**data))
    }

    /// Sends an EDNS option along to upstreams, beside others of its code; with [`ONWARD_MAX`] of them there already it
    /// is left out.
    pub fn add_onward_option(&mut self, code: OptionCode, data: impl Into<Box<[u8]>>) {
        if self.onward.len() < ONWARD_MAX {
            self.onward.push((code, data.into()));
        }
    }

    /// Sends the EDNS options along that `other` does.
    pub(crate) fn take_onward(&mut self, other: &Query) {
        self.onward.clone_from(&other.onward);
    }

    /// Sends no EDNS option of this code along.
    pub fn remove_onward_options(&mut self, code: OptionCode) {
        self.onward.retain(|(known, _)| *known != code);
    }

    /// Octets that an answer from an upstream may have over UDP: not less than we take ourselves, whatever the client
    /// takes, unless a plugin bounds it.
    #[must_use]
    pub fn onward_udp_size(&self) -> u16 {
        self.udp_size.max(UDP_SIZE).min(self.onward_size_max)
    }

    /// Octets that the answer may have.
    #[must_use]
    pub const fn size_max(&self) -> u16 {
        if self.path.transport.is_stream() { STREAM_SIZE_MAX } else { self.udp_size }
    }

    /// The word that the present step has noted; 0 before it did.
    #[must_use]
    pub fn note(&self) -> u64 {
        self.notes.0[self.step]
    }

    /// Notes a word for this step's later hooks.
    pub fn set_note(&mut self, word: u64) {
        self.notes.0[self.step] = word;
    }

    /// The client waits at this step only until `until`: then the step sees a failure, and what is below goes on alone,
    /// so that the step sees its answer too. No step between this one and one that waits may change the name; what this
    /// step has kept is not there for the client's part, a note is there for both.
    pub fn wait_until(&mut self, until: Moment) {
        self.patience = Some(Patience { step: self.step, until });
    }

    /// Whether somebody waits for the answer: not for that of a refresh, nor once a client's time was up.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        !self.abandoned.as_ref().is_some_and(|abandoned| abandoned.get())
    }

    /// Keeps a value for this step's later hooks; it costs an allocation.
    pub fn keep<T: 'static>(&mut self, value: T) {
        let step = self.step;
        self.kept.retain(|(keeper, _)| *keeper != step);
        self.kept.push((step, Box::new(value)));
    }

    /// What a step of this walk, whichever, has kept of this type.
    #[must_use]
    pub fn kept_by_any<T: 'static>(&self) -> Option<&T> {
        self.kept.iter().find_map(|(_, value)| value.downcast_ref())
    }

    /// Takes over what the steps above `step` have kept.
    pub(crate) fn take_kept_above(&mut self, step: usize, other: &mut Query) {
        self.kept.extend(other.kept.extract_if(.., |(keeper, _)| *keeper < step));
    }

    /// Keeps the value of a label.
    pub(crate) fn tell(&self, label: &'static str, value: String) {
        self.told.borrow_mut().set(label, value);
    }

    /// The value of a label that was told.
    pub(crate) fn told(&self, label: &str) -> Option<String> {
        self.told.borrow().get(label).map(str::to_owned)
    }

    /// All values of labels that were told.
    pub(crate) fn all_told(&self) -> Told {
        self.told.borrow().clone()
    }

    /// Takes over what was told elsewhere.
    pub(crate) fn hear(&self, told: Told) {
        self.told.borrow_mut().extend(told);
    }

    /// Takes back what this step has kept.
    pub fn take_kept<T: 'static>(&mut self) -> Option<T> {
        let at = self.kept.iter().position(|(keeper, value)| *keeper == self.step && value.is::<T>())?;
        self.kept.swap_remove(at).1.downcast().ok().map(|value| *value)
    }
}
