//! Explanations: why a name has the answer that it has, for `GET /v1/explain` and `portolan explain`.
//!
//! [`Explainer`] runs each name that the client would ask for through a rehearsal of the generation that serves
//! (`engine::Rehearsal`). `step` turns what the plugins did into a [`Step`], `client` finds the client and its search
//! path, and `why` chooses the reason. `offline` builds a generation from files, without a server.

mod client;
pub mod offline;
mod outline;
mod step;
mod why;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use config::setup::Inspection;
use control::explain::{Client, Differing, Explained, Listener, Question, Rule, Search, Step};
use corefile::did_you_mean;
use engine::{Generation, ListenerId, PeerInfo, Rehearsal, Scheme};
use transport::MonotonicClock;
use wire::{Class, Flags, Header, MessageBuf, Name, Type};

use why::Autopath;

pub(crate) use client::{Located, locate};
pub(crate) use outline::SiteLabels;
pub use outline::{Outline, place};

/// Plugin that has the names of clusters.
const KUBERNETES: &str = "kubernetes";
/// Plugin that searches on the server.
const AUTOPATH: &str = "autopath";
/// Port of the pretended client.
const CLIENT_PORT: u16 = 40_000;
/// Seed of the random numbers of a rehearsal, which only decide the order of records.
const SEED: u64 = 1;

/// Reason why a question cannot be explained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// The name is invalid.
    #[error("`{0}` is not a domain name: {1}")]
    Name(String, String),
    /// The record type is unknown.
    #[error("`{0}` is not a record type; expected one such as AAAA")]
    Type(String),
    /// Name and record type are in the wrong order.
    #[error("`{1}` is not a record type; the name comes first: `portolan explain {1} {0}`")]
    Order(String, String),
    /// The type is that of a zone transfer.
    #[error("zone transfers are not explained; `dig ZONE {0} @ADDRESS` asks for one")]
    Transfer(String),
    /// The client is neither a pod nor an address.
    #[error("`{0}` is not a client; expected NAMESPACE/POD or an IP address")]
    From(String),
    /// The listener does not exist. The second value lists those that exist.
    #[error("there is no listener `{0}`; there is {1}")]
    Listener(String, String),
}

/// Question as text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// Name.
    pub name: &'a str,
    /// Record type; `None` for the usual one of the name.
    pub qtype: Option<&'a str>,
    /// Client: an address or a pod.
    pub from: Option<&'a str>,
    /// Listener.
    pub server: Option<&'a str>,
    /// Names with spaces between them that an upstream denied, so that the search goes on after them.
    pub denied: &'a str,
}

impl Asked<'_> {
    fn is_denied(&self, name: &Name) -> bool {
        self.denied.split_ascii_whitespace().any(|denied| Name::from_text(denied).is_ok_and(|denied| denied == *name))
    }
}

/// Explains the answers of one generation.
pub(crate) struct Explainer<'a> {
    generation: &'a Generation,
    outline: &'a Outline,
    inspection: &'a Inspection,
    rehearsal: Rehearsal,
    /// Text about a watch that fails, if one does.
    pub(crate) old_view: Option<String>,
    /// Addresses that the listeners of the running server are bound to.
    pub bound: Bound,
    /// Pod of the client in the source of its cluster, if that was asked.
    pub(crate) located: Option<Located>,
    /// Addresses of the cluster DNS, as far as they are known.
    pub(crate) cluster_dns: Vec<IpAddr>,
    /// Rules of the current question that look at the client's address.
    by_address: Vec<Rule>,
}

/// Addresses of the sockets of listeners, by the labels of the listeners.
pub type Bound = BTreeMap<String, SocketAddr>;

impl<'a> Explainer<'a> {
    /// Explains the answers of `generation`.
    pub fn new(generation: &'a Generation, outline: &'a Outline, inspection: &'a Inspection) -> Explainer<'a> {
        let rehearsal = Rehearsal::new(generation, Box::new(MonotonicClock), SEED);
        let (bound, cluster_dns, by_address) = (Bound::new(), Vec::new(), Vec::new());
        let (old_view, located) = (None, None);
        Explainer { generation, outline, inspection, rehearsal, old_view, bound, located, cluster_dns, by_address }
    }

    /// Explains the answer to a question.
    ///
    /// # Errors
    /// A part of the question is invalid.
    pub fn explain(&mut self, asked: &Asked<'_>) -> Result<Explained, ExplainError> {
        let address = asked.name.trim_end_matches('.').parse().ok();
        let usual = if address.is_some() { Type::PTR } else { Type::A };
        let qtype = type_of(asked, usual)?;
        let reversed = address.filter(|_| qtype == Type::PTR).map(|address| wire::reverse_name(address).to_string());
        let asked = Asked { name: reversed.as_deref().unwrap_or(asked.name), ..*asked };
        let listener = self.listener(asked.server)?;
        let (from, mut search) = match asked.from {
            Some(from) => client::find(from, self.inspection, self.located.as_ref())?,
            None => (None, None),
        };
        if let Some(search) = &mut search {
            search.cluster_dns = self.cluster_dns.iter().map(ToString::to_string).collect();
        }
        let names = names_of(asked.name, search.as_ref())?;
        let address = address_of(from.as_ref());
        self.by_address.clear();
        let mut steps: Vec<Step> = Vec::new();
        let mut answered = None;
        for name in names {
            let step = self.step(listener, &name, qtype, address);
            let is_denied = step.rcode.is_none() && !step.dropped && asked.is_denied(&name);
            let ends =
                !is_denied && ends_search(&step) || self.has_other_family(listener, &name, (qtype, &step), address);
            if has_answer(&step) {
                answered = Some(steps.len());
            }
            steps.push(step);
            if ends {
                break;
            }
        }
        let question = Question { name: escaped(asked.name), qtype: qtype.to_string() };
        let queries = steps.len() as u64 * if matches!(qtype, Type::A | Type::AAAA) { 2 } else { 1 };
        let first_name =
            |text: &str, search: &Search| names_of(text, Some(search)).ok()?.first().map(ToString::to_string);
        let saving = why::saving(asked.name, &steps, search.as_ref(), self.autopath(), first_name);
        let waste = why::Waste { spent: why::spent(queries, steps.len(), qtype), saving };
        let (why, advice) = why::of_all(asked.name, &steps, answered, search.as_ref(), &waste);
        let advice = steps.last().and_then(|step| self.near_zone(step)).or(advice);
        let advice = advice.map(|advice| named(&advice, &asked));
        let differing = self.differing(listener, qtype, &steps, from.as_ref());
        let unjudged = self.unjudged(from.as_ref());
        let listener = Some(self.shown_listener(listener));
        let asked_from = None;
        Ok(Explained {
            question,
            from,
            listener,
            search,
            steps,
            asked_from,
            answered,
            queries,
            why,
            advice,
            unjudged,
            differing,
        })
    }

    /// Suggests the name in the zone of a cluster, if a name that no cluster has ends in a similar zone.
    fn near_zone(&self, step: &Step) -> Option<String> {
        let is_lost = step.rcode.is_none() || step.rcode.as_deref() == Some("NXDOMAIN");
        if !is_lost || step.plugin.as_deref() == Some(KUBERNETES) {
            return None;
        }
        let zones = self.inspection.clusters.iter().flat_map(|cluster| cluster.zones());
        let name = step.name.trim_end_matches('.');
        zones.into_iter().find_map(|zone| {
            let zone = zone.to_string();
            let zone = zone.trim_end_matches('.');
            // A zone with one label is similar to many top-level domains.
            let labels = zone.split('.').count();
            let (at, _) = name.rmatch_indices('.').nth(labels.checked_sub(1)?).filter(|_| labels > 1)?;
            let (prefix, ending) = (&name[..at], &name[at + 1..]);
            let is_near = !ending.eq_ignore_ascii_case(zone) && did_you_mean(ending, [zone].into_iter()).is_some();
            is_near.then(|| format!("did you mean {prefix}.{zone}.?"))
        })
    }

    /// Returns the rules that look at the address of a client, if it is not known.
    fn unjudged(&mut self, client: Option<&Client>) -> Vec<Rule> {
        let is_unknown = client.is_some_and(|client| client.address.is_none());
        let mut rules = core::mem::take(&mut self.by_address);
        rules.retain(|_| is_unknown);
        rules
    }

    /// Returns the other addresses of a client for which a name has another result.
    fn differing(
        &mut self,
        listener: ListenerId,
        qtype: Type,
        steps: &[Step],
        client: Option<&Client>,
    ) -> Vec<Differing> {
        let others = client.iter().flat_map(|client| &client.other_addresses);
        let others = others.filter_map(|address| Some((address, address.parse().ok()?)));
        let differing = others.filter_map(|(text, address)| {
            steps.iter().find_map(|step| {
                let name = Name::from_text(&step.name).ok()?;
                let other = self.step(listener, &name, qtype, address);
                let is_same = (&other.rcode, other.dropped, &other.plugin) == (&step.rcode, step.dropped, &step.plugin);
                let (address, name, result) = (text.clone(), step.name.clone(), other.result());
                (!is_same).then_some(Differing { address, result, name })
            })
        });
        differing.collect()
    }

    /// Says if a server block has *autopath*.
    fn autopath(&self) -> Autopath {
        let mut blocks = self.outline.blocks().map(|(id, _)| id);
        let has_it = blocks.any(|id| self.outline.first_directive(id, AUTOPATH).is_some());
        if has_it { Autopath::Present } else { Autopath::Missing }
    }

    /// Runs one query.
    fn step(&mut self, listener: ListenerId, name: &Name, qtype: Type, address: IpAddr) -> Step {
        let packet = packet_of(name, qtype);
        let local = SocketAddr::new(if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { UNSPECIFIED_V6 }, 0);
        let peer = PeerInfo { address: SocketAddr::new(address, CLIENT_PORT), local, ..PeerInfo::default() };
        let rehearsed = self.rehearsal.run(listener, &packet, peer);
        let view = step::View { generation: self.generation, outline: self.outline, listener };
        for rule in step::rules_by_address(name, &rehearsed, &view) {
            if !self.by_address.contains(&rule) {
                self.by_address.push(rule);
            }
        }
        let mut step = step::of(name, &rehearsed, &view);
        why::complete(&mut step, self.old_view.as_deref());
        step
    }

    /// Returns true if a name without addresses of one family has some of the other. A client asks for both at once,
    /// and stops searching if it gets either.
    fn has_other_family(
        &mut self,
        listener: ListenerId,
        name: &Name,
        (qtype, step): (Type, &Step),
        address: IpAddr,
    ) -> bool {
        let other = match qtype {
            Type::A => Type::AAAA,
            Type::AAAA => Type::A,
            _ => return false,
        };
        step.rcode.as_deref() == Some("NOERROR") && has_answer(&self.step(listener, name, other, address))
    }

    fn shown_listener(&self, listener: ListenerId) -> Listener {
        let name = self.generation.listener(listener).label.clone();
        Listener { address: self.bound.get(&name).map(ToString::to_string), name }
    }

    /// Returns the listener with a label; without one, the first for DNS without encryption, port 53 preferred.
    fn listener(&self, label: Option<&str>) -> Result<ListenerId, ExplainError> {
        let listeners = &self.generation.listeners;
        let known = || listeners.iter().map(|listener| listener.label.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(label) = label {
            let found = self.generation.find_listener(label);
            return found.ok_or_else(|| ExplainError::Listener(label.to_owned(), known()));
        }
        let plain = || listeners.iter().enumerate().filter(|(_, one)| one.scheme == Scheme::Dns);
        let usual = plain().find(|(_, one)| one.label.ends_with(":53")).or_else(|| plain().next());
        Ok(ListenerId(usual.map_or(0, |(at, _)| at)))
    }
}

const UNSPECIFIED_V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED);

/// Returns true if a stub resolver stops after this answer: it has records to use, or the rest cannot be known.
fn ends_search(step: &Step) -> bool {
    has_answer(step) || step.dropped || step.rcode.is_none()
}

/// Returns true if the client can use the records of the answer. An SOA record in the authority section denies the last
/// target of its aliases (RFC 2308 §2).
fn has_answer(step: &Step) -> bool {
    let is_denied = step.authority.iter().any(|record| record.split(' ').nth(3) == Some("SOA"));
    !step.records.is_empty() && !is_denied && !why::has_alias_loop(step)
}

fn address_of(client: Option<&Client>) -> IpAddr {
    let address = client.and_then(|client| client.address.as_deref()?.parse().ok());
    address.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
}

/// Puts the question in place of `NAME` in a command of an advice.
fn named(advice: &str, asked: &Asked<'_>) -> String {
    let qtype = asked.qtype.map_or(String::new(), |qtype| format!(" {qtype}"));
    let option = |name: &str, value: Option<&str>| value.map_or(String::new(), |value| format!(" --{name} {value}"));
    let (from, server) = (option("from", asked.from), option("server", asked.server));
    advice.replace("portolan explain NAME", &format!("portolan explain {}{qtype}{from}{server}", escaped(asked.name)))
}

/// Writes control characters as in zone files (RFC 1035 §5.1), like the names of the steps.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_ascii_control() {
            text.push_str(&format!("\\{:03}", u32::from(letter)));
        } else {
            text.push(letter);
        }
    }
    text
}

fn type_of(asked: &Asked<'_>, usual: Type) -> Result<Type, ExplainError> {
    let Some(text) = asked.qtype else { return Ok(usual) };
    let parse = |text: &str| text.to_ascii_uppercase().parse::<Type>().ok();
    let qtype = parse(text).ok_or_else(|| match parse(asked.name) {
        Some(_) => ExplainError::Order(asked.name.to_owned(), text.to_owned()),
        None => ExplainError::Type(text.to_owned()),
    })?;
    if qtype.is_transfer() { Err(ExplainError::Transfer(qtype.to_string())) } else { Ok(qtype) }
}

/// Returns the names that a stub resolver asks for, in order (resolv.conf(5)).
fn names_of(text: &str, search: Option<&Search>) -> Result<Vec<Name>, ExplainError> {
    let invalid = |error: &dyn fmt::Display| ExplainError::Name(text.to_owned(), error.to_string());
    if text.is_empty() {
        return Err(invalid(&"it is empty"));
    }
    let absolute = Name::from_text(text).map_err(|error| invalid(&error))?;
    let Some(search) = search.filter(|_| !text.ends_with('.')) else { return Ok(vec![absolute]) };
    // A stub resolver leaves out names that are too long.
    let below = |domain: &String| Name::from_text(&format!("{text}.{domain}")).ok();
    let mut names: Vec<Name> = search.domains.iter().filter_map(below).collect();
    let dots = text.matches('.').count() as u64;
    names.insert(if dots >= search.ndots { 0 } else { names.len() }, absolute);
    Ok(names)
}

fn packet_of(name: &Name, qtype: Type) -> Vec<u8> {
    let mut message = MessageBuf::new();
    let header = Header { id: 1, flags: Flags::default().with_recursion_desired(true), ..Header::default() };
    message.start(header, Some((name.as_ref(), qtype, Class::IN)));
    message.finish(None, std::iter::empty()).to_vec()
}
