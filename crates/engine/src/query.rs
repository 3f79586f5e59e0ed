//! The query that travels through the chain: the client's request, the current question, and the plugins' state.
//!
//! Two views of the question exist. [`Query::request`] holds the one that the client sent and never changes.
//! [`Query::name`], [`Query::qtype`] and [`Query::qclass`] hold the current one, which plugins such as *rewrite*
//! change on the way down.
//!
//! Plugins attach state in three ways:
//!
//! - [`Query::set_note`]: one `u64` for each step, without allocation.
//! - [`Query::keep`]: one boxed value for each step.
//! - [`LabelSetter`](crate::LabelSetter): values of metadata labels, for other plugins.
//!
//! A `Query` is reused for later queries, so that the usual path does not allocate.

use core::net::SocketAddr;

use wire::{Class, Flags, Header, Name, NameRef, Opcode, Opt, OptionCode, Request, Type};

use crate::ids::SiteId;
use crate::label_values::LabelValues;
use crate::peer::PeerInfo;
use crate::trail::{Asked, ClientTimeout, STEPS_MAX, Trail};
use host::Instant;
use host::invariant::{Expected as _, holds};

/// UDP payload size in bytes that this server announces. It avoids fragmentation (RFC 9715 §3.1).
pub const UDP_SIZE: u16 = 1232;
/// Maximum number of EDNS options for an upstream.
const ONWARD_MAX: usize = 8;
/// Message size in bytes that every client accepts over UDP (RFC 1035 §4.2.1).
const UDP_SIZE_MIN: u16 = 512;
/// Maximum size in bytes of a message over a stream.
const STREAM_SIZE_MAX: u16 = u16::MAX;

/// A query, as the plugins see it.
///
/// [`Query::request`] is the client's message. The other fields hold the current question, after any rewriting.
#[derive(Default)]
pub struct Query {
    /// Parsed request of the client, or the question of a subquery.
    pub request: Request,
    /// Request of the client in wire form; empty for a subquery.
    pub packet: Vec<u8>,
    /// Addresses and transport.
    pub peer: PeerInfo,
    /// Time of arrival.
    pub received: Instant,
    /// Current name.
    name: QueryName,
    /// Current type.
    pub qtype: Type,
    /// Current class.
    pub qclass: Class,
    /// Size in bytes of a response over UDP that the client accepts.
    pub udp_size: u16,
    /// Maximum size in bytes of a response over UDP: [`UDP_SIZE`], unless a plugin such as *bufsize* sets another one
    /// and calls [`Response::update_limit`](crate::Response::update_limit).
    ///
    /// Anybody can announce 65,535 bytes with the address of somebody else, so a larger default would send a thousand
    /// times the bytes of a query to a victim. Datagrams above this size are often fragmented, and lost or forged
    /// (RFC 9715).
    pub udp_size_max: u16,
    /// Maximum size in bytes of an upstream's reply over UDP, set by plugins such as *bufsize*.
    pub onward_size_max: u16,
    /// DNSSEC OK (DO): the client wants DNSSEC records.
    pub dnssec_ok: bool,
    /// True if the listener pads its responses for clients that ask for it.
    pub(crate) may_pad: bool,
    /// Site that serves the query: the combination of listener and zone.
    pub site: SiteId,
    /// Position in the chain, and what steps have recorded.
    pub(crate) trail: Trail,
}

/// Name in a question, as it is written and in lower case.
#[derive(Default)]
struct QueryName {
    name: Name,
    key: Name,
}

impl QueryName {
    fn set(&mut self, name: NameRef<'_>) {
        self.name.set(name);
        self.key.set_lowercase(name);
    }

    fn copy_from(&mut self, other: &QueryName) {
        self.name.set(other.name.as_ref());
        self.key.set(other.key.as_ref());
    }
}

impl Query {
    /// Initializes the current question and the EDNS parameters from [`Query::request`].
    pub(crate) fn begin(&mut self) {
        self.reset_question();
        self.udp_size = self.request.opt.map_or(UDP_SIZE_MIN, |opt| opt.udp_size.max(UDP_SIZE_MIN));
        self.udp_size_max = UDP_SIZE;
        self.onward_size_max = u16::MAX;
        self.dnssec_ok = self.request.opt.is_some_and(|opt| opt.dnssec_ok);
        self.site = SiteId::default();
        self.trail.reset();
    }

    /// Sets the current question back to that of the request.
    pub(crate) fn reset_question(&mut self) {
        self.name.set(self.request.name.as_ref());
        self.qtype = self.request.qtype;
        self.qclass = self.request.qclass;
    }

    /// Copies the current question of `other`.
    pub(crate) fn copy_question(&mut self, other: &Query) {
        self.name.copy_from(&other.name);
        self.qtype = other.qtype;
        self.qclass = other.qclass;
    }

    /// Initializes a subquery for `name` and `qtype`: same client, transport and EDNS parameters as `parent`.
    pub(crate) fn begin_for(&mut self, parent: &Query, name: NameRef<'_>, qtype: Type) {
        self.request.header = parent.request.header;
        // The parent may be a NOTIFY; a subquery never is.
        self.request.header.flags = parent.request.header.flags.with_opcode(Opcode::QUERY);
        self.request.opt = parent.request.opt;
        self.request.name.set(name);
        self.request.qtype = qtype;
        self.request.qclass = Class::IN;
        // This query may have been one of a client, whose packet had options.
        self.packet.clear();
        self.request.clear_options();
        self.peer = parent.peer.clone();
        self.received = parent.received;
        self.begin();
        self.udp_size = parent.udp_size;
        self.udp_size_max = parent.udp_size_max;
        self.onward_size_max = parent.onward_size_max;
        holds(self.is_own() && !self.is_update(), "a subquery is a query that no client has sent");
    }

    /// Copies a query in its state at the current step, except for kept values. It names each field, so that a new one
    /// cannot be forgotten.
    pub(crate) fn copy_from(&mut self, other: &Query) {
        let Query {
            request,
            packet,
            peer,
            received,
            name,
            qtype,
            qclass,
            udp_size,
            udp_size_max,
            onward_size_max,
            dnssec_ok,
            may_pad,
            site,
            trail,
        } = other;
        self.request.clone_from(request);
        self.packet.clone_from(packet);
        self.peer.clone_from(peer);
        self.received = *received;
        self.name.copy_from(name);
        (self.qtype, self.qclass) = (*qtype, *qclass);
        (self.udp_size, self.udp_size_max, self.onward_size_max) = (*udp_size, *udp_size_max, *onward_size_max);
        (self.dnssec_ok, self.may_pad) = (*dnssec_ok, *may_pad);
        self.site = *site;
        self.trail.continue_from(trail);
    }

    /// Clears the notes of the first `steps` steps.
    pub(crate) fn clear_notes(&mut self, steps: usize) {
        self.trail.notes.clear(steps);
    }

    /// Current name, with its case preserved.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        self.name.name.as_ref()
    }

    /// Current name, in lower case.
    #[must_use]
    pub fn key(&self) -> NameRef<'_> {
        self.name.key.as_ref()
    }

    /// Changes the name for the steps below.
    ///
    /// On the way up, the step that changed the name must restore it and rewrite the response for it
    /// ([`Response::rewrite`](crate::Response::rewrite)).
    pub fn set_name(&mut self, name: NameRef<'_>) {
        self.name.set(name);
        self.set_zone(0, NameRef::ROOT);
        self.trail.renamed = true;
    }

    /// Restores the original question: the client's, or that of the subquery.
    ///
    /// A step that changed the question calls it on the way up if no step above changed it as well.
    pub fn restore_question(&mut self) {
        self.trail.was_rewritten = true;
        self.reset_question();
        self.set_zone(0, NameRef::ROOT);
    }

    /// Returns true if the name changed since the last call. The response must then start again with the new question.
    pub(crate) fn take_renamed(&mut self) -> bool {
        core::mem::take(&mut self.trail.renamed)
    }

    pub(crate) fn set_zone(&mut self, index: usize, zone: NameRef<'_>) {
        debug_assert!(self.key().is_within(zone), "the zone of a step contains the name");
        self.trail.zone_index = index;
        self.trail.zone_at = self.name.key.as_bytes().len() - zone.len();
    }

    /// Zone that matched the current step, in the case of the question. The root after this step has changed the name.
    #[must_use]
    pub fn zone(&self) -> NameRef<'_> {
        let zone = NameRef::from_bytes(&self.name.name.as_bytes()[self.trail.zone_at..]).ok();
        zone.expected("a zone that begins at a label of the name").unwrap_or(NameRef::ROOT)
    }

    /// Number of bytes of the name before [`Query::zone`].
    #[must_use]
    pub const fn zone_at(&self) -> usize {
        self.trail.zone_at
    }

    /// Index of the matching zone among the zones of the current step.
    #[must_use]
    pub const fn zone_index(&self) -> usize {
        self.trail.zone_index
    }

    /// Header of the request.
    #[must_use]
    pub const fn header(&self) -> Header {
        self.request.header
    }

    /// Flags of the request.
    #[must_use]
    pub const fn flags(&self) -> Flags {
        self.request.header.flags
    }

    /// Returns true for an UPDATE message (RFC 2136).
    #[must_use]
    pub fn is_update(&self) -> bool {
        self.flags().opcode() == Opcode::UPDATE
    }

    /// Name of the key that has signed the request, in lower case. `None` if the signature was not verified.
    #[must_use]
    pub fn signer(&self) -> Option<&Name> {
        self.trail.signer.as_deref()
    }

    /// Records that the request is signed with this key, whose signature is verified.
    pub fn set_signer(&mut self, key: Name) {
        self.trail.signer = Some(Box::new(key.into_lowercase()));
    }

    /// Returns true for a subquery, which no client has sent.
    #[must_use]
    pub const fn is_own(&self) -> bool {
        self.packet.is_empty()
    }

    /// EDNS parameters of the request; `None` if it had no OPT record.
    #[must_use]
    pub const fn opt(&self) -> Option<Opt> {
        self.request.opt
    }

    /// EDNS options of the request.
    pub fn options(&self) -> impl Iterator<Item = (OptionCode, &[u8])> {
        self.request.options(&self.packet)
    }

    /// Returns true if the response is to be padded: the listener does so, and the client has sent the padding option,
    /// which is required (RFC 7830 §4).
    pub(crate) fn wants_padding(&self) -> bool {
        self.may_pad && self.options().any(|(code, _)| code == OptionCode::PADDING)
    }

    /// EDNS options for an upstream. The client's options are not among them, because EDNS is hop-by-hop (RFC 6891
    /// §6.1.1).
    pub fn onward_options(&self) -> impl Iterator<Item = (OptionCode, &[u8])> {
        self.trail.onward.iter().map(|(code, data)| (*code, &**data))
    }

    /// Adds an EDNS option for upstreams. Several options may have the same code. With `ONWARD_MAX` options present,
    /// the call has no effect.
    pub fn add_onward_option(&mut self, code: OptionCode, data: impl Into<Box<[u8]>>) {
        if self.trail.onward.len() < ONWARD_MAX {
            self.trail.onward.push((code, data.into()));
        }
    }

    /// Copies the EDNS options for upstreams from `other`.
    pub(crate) fn copy_onward_options(&mut self, other: &Query) {
        self.trail.onward.clone_from(&other.trail.onward);
    }

    /// Removes all EDNS options with this code from those for upstreams.
    pub fn remove_onward_options(&mut self, code: OptionCode) {
        self.trail.onward.retain(|(known, _)| *known != code);
    }

    /// Maximum size in bytes of an upstream's reply over UDP.
    ///
    /// The size is at least [`UDP_SIZE`], even if the client accepts less, unless a plugin has set a lower limit.
    #[must_use]
    pub fn onward_udp_size(&self) -> u16 {
        self.udp_size.min(self.udp_size_max).max(UDP_SIZE).min(self.onward_size_max)
    }

    /// Maximum size in bytes of the response.
    #[must_use]
    pub fn size_max(&self) -> u16 {
        if self.peer.transport.is_stream() { STREAM_SIZE_MAX } else { self.udp_size.min(self.udp_size_max) }
    }

    /// Size in bytes of a response that the client accepts.
    #[must_use]
    pub const fn client_size_max(&self) -> u16 {
        if self.peer.transport.is_stream() { STREAM_SIZE_MAX } else { self.udp_size }
    }

    /// Note of the current step; 0 if it has set none.
    #[must_use]
    pub fn note(&self) -> u64 {
        self.trail.notes.get(self.trail.step)
    }

    /// Stores a note for later hooks of this step.
    pub fn set_note(&mut self, word: u64) {
        self.trail.notes.set(self.trail.step, word);
    }

    /// Sets the client response timer (RFC 8767 §5): the client waits at this step until `until`.
    ///
    /// When the timer expires, the engine calls `on_response` of this step with a failure, and the step answers the
    /// client. The rest of the query continues in the background, and `on_response` runs again for its response. Two
    /// restrictions apply. No step between this one and the one that waits may change the name. A value that this step
    /// stored with [`Query::keep`] stays with the background part, whereas its note is copied to both parts.
    pub fn wait_until(&mut self, until: Instant) {
        holds(self.trail.step < STEPS_MAX, "a step sets a client timeout");
        self.trail.timeout = Some(ClientTimeout { step: self.trail.step, until });
    }

    /// Returns true if a client waits for the response. False for a refresh, and after the client's timer has expired.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        !self.trail.abandoned.as_ref().is_some_and(|abandoned| abandoned.get())
    }

    /// Returns true if the client's timer has expired ([`Query::wait_until`]). The failure that `on_response` sees is
    /// then not one of the steps below, which go on in the background.
    #[must_use]
    pub fn has_timed_out(&self) -> bool {
        self.trail.timed_out
    }

    /// Stores a value for later hooks of this step, in place of an earlier one. Allocates.
    pub fn keep<T: 'static>(&mut self, value: T) {
        let step = self.trail.step;
        self.trail.kept.retain(|(keeper, _)| *keeper != step);
        self.trail.kept.push((step, Box::new(value)));
        holds(self.trail.kept.len() <= STEPS_MAX, "each step keeps one value");
    }

    /// Value of this type that any step has stored.
    #[must_use]
    pub fn kept_by_any<T: 'static>(&self) -> Option<&T> {
        self.trail.kept.iter().find_map(|(_, value)| value.downcast_ref())
    }

    /// Moves the values that the steps above `step` have stored from `other` to this query.
    pub(crate) fn move_kept_above(&mut self, step: usize, other: &mut Query) {
        let (own, all) = (self.trail.kept.len(), other.trail.kept.len());
        self.trail.kept.extend(other.trail.kept.extract_if(.., |(keeper, _)| *keeper < step));
        holds(self.trail.kept.len() + other.trail.kept.len() == own + all, "a kept value has one owner");
    }

    /// Records that an upstream is asked for this query, for those who watch queries.
    pub fn set_upstream(&self, address: SocketAddr) {
        self.add_asked(Asked { last: Some(address), attempts: 1, has_others: false });
    }

    /// Upstream that was asked last.
    #[must_use]
    pub fn upstream(&self) -> Option<SocketAddr> {
        self.trail.asked.get().last
    }

    /// Adds upstreams that were asked for this query by another one.
    pub(crate) fn add_asked(&self, later: Asked) {
        self.trail.asked.set(self.trail.asked.get().and(later));
    }

    /// Sets the value of a label.
    pub(crate) fn set_label(&self, label: &'static str, value: String) {
        self.trail.label_values.borrow_mut().set(label, value);
    }

    /// Value of a label that a plugin has set.
    pub(crate) fn label_value(&self, label: &str) -> Option<String> {
        self.trail.label_values.borrow().get(label).map(str::to_owned)
    }

    /// All label values that plugins have set.
    pub(crate) fn label_values(&self) -> LabelValues {
        self.trail.label_values.borrow().clone()
    }

    /// Merges label values from another query; on conflict, they replace the present ones.
    pub(crate) fn merge_labels(&self, label_values: LabelValues) {
        self.trail.label_values.borrow_mut().extend(label_values);
    }

    /// Removes and returns the value of this type that this step has stored.
    pub fn take_kept<T: 'static>(&mut self) -> Option<T> {
        let at = self.trail.kept.iter().position(|(keeper, value)| *keeper == self.trail.step && value.is::<T>())?;
        self.trail.kept.swap_remove(at).1.downcast().ok().map(|value| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subquery_has_no_options_of_the_query_that_was_here_before() {
        let packet = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01x\x00\x00\x01\x00\x01\
            \x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x06\x00\x0a\x00\x02ab";
        let mut query = Query { packet: packet.to_vec(), ..Query::default() };
        query.request.read(Header::read(packet).unwrap(), packet).unwrap();
        query.begin();
        assert_eq!(query.options().count(), 1);
        query.begin_for(&Query::default(), NameRef::ROOT, Type::A);
        assert_eq!(query.options().count(), 0);
    }
}
