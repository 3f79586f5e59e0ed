//! Authoritative answers: writes the records for a question into a message, section by section.

use wire::{Class, MessageBuf, Name, NameRef, Owner, Rcode, Section, Type};

use crate::find::Lookup;
use crate::store::{ALIAS, APEX, Node, RecordSet, Zone};
use crate::text::name_at_start;

/// Maximum number of aliases to follow within the zone, as in CoreDNS. A longer chain is cut here, and the client
/// follows the rest.
const ALIASES_MAX: usize = 10;
/// Maximum number of NSEC records in an answer: one for each alias, two for a denial and one for the end of the chain.
const PROOFS_MAX: usize = ALIASES_MAX + 3;
/// Maximum number of names whose addresses are added to the additional section.
const TARGETS_MAX: usize = 16;

/// Question to a zone.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// QNAME. The message must have the same name in its question section.
    pub name: NameRef<'q>,
    /// QTYPE. ANY gets one record set of the name.
    pub qtype: Type,
    /// True if the client wants signatures and proofs of nonexistence (DO bit).
    pub dnssec_ok: bool,
}

/// Outcome of an answer, besides the records in the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Response code.
    pub rcode: Rcode,
    /// True if the zone is authoritative for the first owner name in the answer (AA).
    pub authoritative: bool,
    /// Alias target outside the zone. If set, the authority section is still missing: the caller resolves the target
    /// and then calls [`Zone::end_alias`].
    pub next: Option<Name>,
    /// Wildcard that matched QNAME.
    pub wildcard: Option<Node>,
    /// No record has the name asked: it does not exist, or only names below it do (an empty non-terminal), or it is an
    /// apex with SOA and NS records only.
    pub is_unowned: bool,
}

/// End of an answer.
struct End {
    rcode: Rcode,
    authoritative: bool,
}

impl End {
    const fn authoritative(rcode: Rcode) -> End {
        End { rcode, authoritative: true }
    }

    const fn reply(self, next: Option<Name>) -> Reply {
        Reply { rcode: self.rcode, authoritative: self.authoritative, next, wildcard: None, is_unowned: false }
    }
}

impl Zone {
    /// Answers a question. Follows aliases as long as this zone has their targets. Returns `None` if the name is not
    /// in the zone.
    pub fn answer(&self, question: Question<'_>, message: &mut MessageBuf) -> Option<Reply> {
        self.answer_until(question, message, |_, _| false)
    }

    /// Answers like [`Zone::answer`], but stops at a CNAME for which `leaves` returns true. `leaves` gets each target
    /// within this zone and the lookup result for it. The answer then ends as if the target were outside of the zone.
    /// A longer zone may have it (RFC 1034 §4.3.2: a CNAME restarts at step 1, with the nearest zone).
    pub fn answer_until(
        &self,
        question: Question<'_>,
        message: &mut MessageBuf,
        leaves: impl Fn(NameRef<'_>, Lookup) -> bool,
    ) -> Option<Reply> {
        let lookup = self.find(question.name, question.qtype)?;
        let wildcard = if let Lookup::Wildcard { at, .. } = lookup { Some(at) } else { None };
        let is_unowned = match lookup {
            Lookup::Nothing(_) => true,
            Lookup::Name(Node(node)) => self.set(node, question.qtype).is_none() && !self.has_own_records(node),
            _ => false,
        };
        Some(Reply { wildcard, is_unowned, ..Writer::new(self, question, message).answer(lookup, leaves) })
    }

    /// Returns true if a name has records. The SOA and NS records of the apex do not count, because each zone must have
    /// them. CoreDNS does not keep them with the other records either.
    fn has_own_records(&self, node: u32) -> bool {
        let is_required = |rtype| node == APEX && matches!(rtype, Type::SOA | Type::NS | Type::RRSIG);
        self.all(node).any(|set| !is_required(set.rtype))
    }

    /// Writes the authority section of an answer whose alias led out of the zone.
    pub fn end_alias(&self, dnssec_ok: bool, message: &mut MessageBuf) {
        let question = Question { name: NameRef::ROOT, qtype: Type::CNAME, dnssec_ok };
        let mut writer = Writer::new(self, question, message);
        writer.prove_wildcards();
        writer.end_positive();
    }

    /// Appends the proofs for the answer's records that come from wildcards of this zone to the authority section,
    /// which may already have some of them (RFC 4035 §3.1.3.3).
    pub fn prove_wildcards(&self, dnssec_ok: bool, message: &mut MessageBuf) {
        let question = Question { name: NameRef::ROOT, qtype: Type::CNAME, dnssec_ok };
        let mut writer = Writer::new(self, question, message);
        writer.prove_wildcards();
        writer.push_proofs();
    }
}

struct Writer<'a> {
    zone: &'a Zone,
    question: Question<'a>,
    message: &'a mut MessageBuf,
    /// Current alias target, or `None` while QNAME itself is looked up.
    name: Option<Name>,
    /// True if a wildcard matches the current name.
    is_wildcard: bool,
    /// Number of aliases followed.
    followed: usize,
    /// Value of `followed` after the last wildcard or DNAME, 0 without one.
    synthesized: usize,
    /// Nodes whose DNAME records are in the answer. A DNAME may apply more than once, to a shorter name each time.
    renamers: Nodes<ALIASES_MAX>,
    /// Nodes whose NSEC records prove that no closer name than the wildcard exists.
    proofs: Nodes<PROOFS_MAX>,
}

/// Small set of nodes with a fixed capacity.
struct Nodes<const MAX: usize> {
    nodes: [u32; MAX],
    count: usize,
}

impl<const MAX: usize> Nodes<MAX> {
    const fn new() -> Self {
        Nodes { nodes: [APEX; MAX], count: 0 }
    }

    /// Adds a node. Returns false if the set already contains it or is full.
    fn add(&mut self, node: u32) -> bool {
        let fresh = !self.as_slice().contains(&node) && self.count < MAX;
        if fresh {
            self.nodes[self.count] = node;
            self.count += 1;
        }
        fresh
    }

    fn as_slice(&self) -> &[u32] {
        &self.nodes[..self.count]
    }
}

impl<'a> Writer<'a> {
    fn new(zone: &'a Zone, question: Question<'a>, message: &'a mut MessageBuf) -> Writer<'a> {
        let (renamers, proofs) = (Nodes::new(), Nodes::new());
        let (name, is_wildcard, followed, synthesized) = (None, false, 0, 0);
        Writer { zone, question, message, name, is_wildcard, followed, synthesized, renamers, proofs }
    }

    /// Follows aliases to the last name and writes its records.
    fn answer(mut self, mut lookup: Lookup, leaves: impl Fn(NameRef<'_>, Lookup) -> bool) -> Reply {
        loop {
            self.is_wildcard = matches!(lookup, Lookup::Wildcard { .. });
            let target = match lookup {
                Lookup::Name(node) => self.at_name(node),
                Lookup::Wildcard { at, .. } => {
                    self.prove_absence();
                    self.at_name(at)
                }
                Lookup::Renamed(node) => self.rename(node),
                Lookup::Cut(node) => Err(self.refer(node)),
                Lookup::Nothing(encloser) => Err(self.deny_name(encloser)),
            };
            let target = match target {
                // A CNAME record synthesized from DNAME answers a query for CNAME (RFC 6672 §3.1).
                Ok(_) if self.question.qtype == Type::CNAME => return self.end_found().reply(None),
                Ok(target) => target,
                Err(end) => return end.reply(None),
            };
            let next = self.zone.find(target.as_ref(), self.question.qtype);
            let Some(next) = next.filter(|next| !leaves(target.as_ref(), *next)) else {
                return End::authoritative(Rcode::NOERROR).reply(Some(target));
            };
            if self.is_wildcard || matches!(lookup, Lookup::Renamed(_)) {
                self.synthesized = self.followed;
            }
            let back_to = self.loops_to(target.as_ref());
            self.name = Some(target);
            if self.followed == ALIASES_MAX || back_to.is_some() {
                return self.give_up(back_to).reply(None);
            }
            lookup = next;
        }
    }

    /// Returns the place in the chain of aliases that `target` leads back to, if it does. Only a repeated name is a
    /// loop: a DNAME or a wildcard may apply to several names of a chain (RFC 6672 §2.2).
    fn loops_to(&self, target: NameRef<'_>) -> Option<usize> {
        let mut aliases = self.message.section(Section::Answer).filter(|mark| mark.rtype == Type::CNAME);
        aliases.position(|mark| self.message.owner(mark).is_ok_and(|owner| owner.as_ref().same(target)))
    }

    /// Ends an answer with an alias loop, or with too many aliases. Writes the part of the chain so far. As in
    /// CoreDNS, the response code is SERVFAIL for NS queries, and if a wildcard or DNAME made an alias of the loop or
    /// the last one of a chain that is too long (RFC 1034 §3.6.2). [`Writer::fail_alone`] ends a loop of one name.
    fn give_up(mut self, back_to: Option<usize>) -> End {
        self.end_positive();
        let is_synthesized = back_to.unwrap_or(ALIASES_MAX - 1) < self.synthesized;
        let fails = is_synthesized || self.question.qtype == Type::NS;
        End::authoritative(if fails { Rcode::SERVFAIL } else { Rcode::NOERROR })
    }

    fn end_found(&mut self) -> End {
        self.end_positive();
        End::authoritative(Rcode::NOERROR)
    }

    /// Answers for an existing name. Returns the alias target, or the end of the answer if the name is not an alias.
    fn at_name(&mut self, Node(node): Node) -> Result<Name, End> {
        let (zone, qtype) = (self.zone, self.answered_type(node));
        if let Some(set) = zone.set(node, qtype) {
            if qtype == Type::RRSIG {
                zone.all(node).filter(|set| set.rtype == qtype).for_each(|set| self.push_owned(set));
            } else if !self.has_renamed(node, qtype) {
                self.push_signed(node, set);
            }
            if node != APEX || qtype != Type::NS {
                self.end_positive();
            } else {
                self.push_proofs();
            }
            self.push_targets(set);
            return Err(End::authoritative(Rcode::NOERROR));
        }
        let alias = (zone.node(node).flags & ALIAS != 0).then(|| zone.set(node, Type::CNAME)).flatten();
        let Some(set) = alias else { return Err(self.deny_type(node)) };
        let target = name_at_start(set.first()).unwrap_or(NameRef::ROOT);
        if !self.is_wildcard && target.same(self.current()) {
            return Err(self.fail_alone());
        }
        self.push_signed(node, set);
        self.followed += 1;
        Ok(target.to_name())
    }

    /// Returns the type of the records of a node that answer the question. For ANY it is one of those that the node has
    /// (RFC 8482 §4.1).
    fn answered_type(&self, node: u32) -> Type {
        let asked = self.question.qtype;
        let is_data = |rtype: &Type| !matches!(*rtype, Type::RRSIG | Type::NSEC);
        let any = (asked == Type::ANY).then(|| self.zone.all(node).map(|set| set.rtype).find(is_data)).flatten();
        any.unwrap_or(asked)
    }

    /// Returns true if the answer already has the records of this node, the DNAME record that led to the current name.
    fn has_renamed(&self, node: u32, rtype: Type) -> bool {
        rtype == Type::DNAME && !self.is_wildcard && self.renamers.as_slice().contains(&node)
    }

    /// Fails for an alias whose target is its own owner. As in CoreDNS, the answer has no records.
    fn fail_alone(&mut self) -> End {
        self.message.clear();
        End { rcode: Rcode::SERVFAIL, authoritative: false }
    }

    /// Writes the authority section of a positive answer: the zone's NS records and the proofs for wildcards.
    fn end_positive(&mut self) {
        if let Some(set) = self.zone.set(APEX, Type::NS) {
            self.push_at(Section::Authority, APEX, set);
        }
        self.push_proofs();
    }

    /// Writes a NODATA answer. It has the SOA record behind an alias too (RFC 2308 §2.2): without it, no resolver
    /// caches the denial, and a client with the DO bit cannot verify it.
    fn deny_type(&mut self, node: u32) -> End {
        self.push_soa();
        if self.proves() {
            let own = self.zone.nsec_for(self.zone.labels(node));
            own.map(|nsec| self.proofs.add(nsec));
            self.push_proofs();
        }
        End::authoritative(Rcode::NOERROR)
    }

    /// Writes an NXDOMAIN answer with its proofs (RFC 4035 §3.1.3.2).
    fn deny_name(&mut self, Node(encloser): Node) -> End {
        self.push_soa();
        if self.proves() {
            let mut wildcard = Name::root();
            let named = wildcard.push_label(b"*").and_then(|()| wildcard.append(self.zone.name(encloser).as_ref()));
            self.prove_absence();
            let of_wildcard = named.ok().and_then(|()| self.nsec_of(wildcard.as_ref()));
            of_wildcard.map(|nsec| self.proofs.add(nsec));
            self.push_proofs();
        }
        End::authoritative(Rcode::NXDOMAIN)
    }

    /// Writes a referral: the NS records of the zone cut, DS or the proof of its absence, and glue (RFC 4035 §3.1.4).
    fn refer(&mut self, Node(node): Node) -> End {
        let servers = self.zone.set(node, Type::NS);
        if let Some(set) = servers {
            self.push_under(Section::Authority, node, set);
        }
        match self.zone.set(node, Type::DS) {
            Some(set) if self.question.dnssec_ok => self.push_at(Section::Authority, node, set),
            None if self.proves() => {
                self.proofs.add(node);
            }
            _ => {}
        }
        // An alias from a wildcard may have led here.
        self.push_proofs();
        if let Some(set) = servers {
            self.push_targets(set);
        }
        End { rcode: Rcode::NOERROR, authoritative: self.name.is_some() }
    }

    /// Answers for a name below a DNAME owner: writes the DNAME record and the CNAME synthesized from it
    /// (RFC 6672 §3.2).
    fn rename(&mut self, Node(node): Node) -> Result<Name, End> {
        let zone = self.zone;
        let Some(set) = zone.set(node, Type::DNAME) else { return Err(End::authoritative(Rcode::SERVFAIL)) };
        let stem = name_at_start(set.first()).unwrap_or(NameRef::ROOT);
        let renamed = renamed(self.current(), zone.name(node).as_ref(), stem);
        if self.renamers.add(node) {
            self.push_at(Section::Answer, node, set);
        }
        let Some(target) = renamed else {
            self.push_proofs();
            return Err(End::authoritative(Rcode::YXDOMAIN));
        };
        self.followed += 1;
        let fixed = (Type::CNAME, Class::IN, set.ttl);
        self.message.push_data(Section::Answer, owner(self.name.as_ref()), fixed, target.as_bytes());
        // A DNAME to its own owner. Its records are the answer, as for other authoritative servers.
        if target.as_ref().same(self.current()) { Err(self.end_found()) } else { Ok(target) }
    }

    /// Returns the name to look up: QNAME or the current alias target.
    fn current(&self) -> NameRef<'_> {
        self.name.as_ref().map_or(self.question.name, Name::as_ref)
    }

    /// Returns true if negative answers need proofs: the zone is signed and the client wants them.
    const fn proves(&self) -> bool {
        self.question.dnssec_ok && self.zone.is_signed()
    }

    fn nsec_of(&self, name: NameRef<'_>) -> Option<u32> {
        let labels_len = name.prefix_len(self.zone.origin())?;
        self.zone.nsec_for(name.as_bytes().get(..labels_len)?)
    }

    /// Schedules the proof that the current name does not exist (RFC 4035 §3.1.3.3).
    fn prove_absence(&mut self) {
        if self.proves()
            && let Some(nsec) = self.nsec_of(self.current())
        {
            self.proofs.add(nsec);
        }
    }

    /// Schedules the proofs for the records of the answer section that come from wildcards, and are not yet proved.
    fn prove_wildcards(&mut self) {
        if !self.proves() {
            return;
        }
        for mark in self.message.section(Section::Answer) {
            let Ok(owner) = self.message.owner(mark) else { continue };
            if !matches!(self.zone.find(owner.as_ref(), mark.rtype), Some(Lookup::Wildcard { .. })) {
                continue;
            }
            if let Some(nsec) = self.nsec_of(owner.as_ref()).filter(|nsec| !self.has_nsec(*nsec)) {
                self.proofs.add(nsec);
            }
        }
    }

    /// Returns true if the authority section has the NSEC record of this node.
    fn has_nsec(&self, node: u32) -> bool {
        let mut nsecs = self.message.section(Section::Authority).filter(|mark| mark.rtype == Type::NSEC);
        let name = self.zone.name(node);
        nsecs.any(|mark| self.message.owner(mark).is_ok_and(|owner| owner.as_ref().same(name.as_ref())))
    }

    fn push_proofs(&mut self) {
        for at in 0..self.proofs.count {
            self.push_nsec(self.proofs.nodes[at]);
        }
    }

    fn push_soa(&mut self) {
        if let Some(set) = self.zone.soa_set() {
            self.push_at(Section::Authority, APEX, set);
        }
    }

    fn push_nsec(&mut self, node: u32) {
        if let Some(set) = self.zone.set(node, Type::NSEC) {
            self.push_at(Section::Authority, node, set);
        }
    }

    /// Appends records owned by the current name to the answer section.
    fn push_owned(&mut self, set: RecordSet<'_>) {
        set.push_to(self.message, Section::Answer, owner(self.name.as_ref()));
    }

    /// Appends records like [`Writer::push_owned`], followed by their signatures.
    fn push_signed(&mut self, node: u32, set: RecordSet<'_>) {
        self.push_owned(set);
        if let Some(signatures) = self.signatures(node, set.rtype) {
            self.push_owned(signatures);
        }
    }

    /// Appends records of a node, owned by the node's own name.
    fn push_under(&mut self, section: Section, node: u32, set: RecordSet<'_>) {
        let name = self.zone.name(node);
        let is_asked = self.question.name.as_bytes() == name.as_bytes();
        set.push_to(self.message, section, if is_asked { Owner::Question } else { Owner::Name(name.as_ref()) });
    }

    /// Appends records like [`Writer::push_under`], followed by their signatures.
    fn push_at(&mut self, section: Section, node: u32, set: RecordSet<'_>) {
        self.push_under(section, node, set);
        if let Some(signatures) = self.signatures(node, set.rtype) {
            self.push_under(section, node, signatures);
        }
    }

    fn signatures(&self, node: u32, covered: Type) -> Option<RecordSet<'a>> {
        if self.question.dnssec_ok { self.zone.signatures(node, covered) } else { None }
    }

    /// Appends the addresses of the names that the records point to.
    fn push_targets(&mut self, set: RecordSet<'_>) {
        let Some(offset) = target_at(set.rtype) else { return };
        let mut seen = Nodes::<TARGETS_MAX>::new();
        for rdata in set.data() {
            let Some(target) = rdata.get(offset..).and_then(name_at_start) else { continue };
            let Some(node) = self.target_node(set.rtype, target).filter(|node| seen.add(*node)) else { continue };
            for rtype in [Type::A, Type::AAAA] {
                if let Some(addresses) = self.zone.set(node, rtype) {
                    self.push_at(Section::Additional, node, addresses);
                }
            }
        }
    }

    /// Returns the node of a target name. In SVCB and HTTPS records, the target `.` means the owner (RFC 9460 §2.5.2).
    fn target_node(&self, rtype: Type, target: NameRef<'_>) -> Option<u32> {
        let is_owner = target.is_root() && matches!(rtype, Type::SVCB | Type::HTTPS);
        let target = if is_owner { self.current() } else { target };
        let labels_len = target.prefix_len(self.zone.origin())?;
        self.zone.find_labels(target.as_bytes().get(..labels_len)?)
    }
}

impl RecordSet<'_> {
    /// Appends the records to a section of a message.
    pub fn push_to(self, message: &mut MessageBuf, section: Section, owner: Owner<'_>) {
        for rdata in self.data() {
            message.push_data(section, owner, (self.rtype, Class::IN, self.ttl), rdata);
        }
    }
}

/// Returns the owner of the answer's records: the current alias target, or QNAME.
fn owner(name: Option<&Name>) -> Owner<'_> {
    name.map_or(Owner::Question, |name| Owner::Name(name.as_ref()))
}

/// Returns `name` with its suffix `above` replaced by `stem`, or `None` if the result is too long.
fn renamed(name: NameRef<'_>, above: NameRef<'_>, stem: NameRef<'_>) -> Option<Name> {
    let labels = name.labels().count().checked_sub(above.labels().count())?;
    let mut renamed = Name::root();
    name.labels().take(labels).try_for_each(|label| renamed.push_label(label)).ok()?;
    renamed.append(stem).ok()?;
    Some(renamed)
}

/// Returns the offset in RDATA of the name whose addresses the client will need, or `None` if the type has no such
/// name.
const fn target_at(rtype: Type) -> Option<usize> {
    match rtype {
        Type::NS => Some(0),
        Type::MX | Type::SVCB | Type::HTTPS => Some(2),
        Type::SRV => Some(6),
        _ => None,
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
