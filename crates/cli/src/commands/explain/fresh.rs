//! `portolan explain --fresh`: asks the server what an explanation does not ask, and explains again.
//!
//! ```text
//!   explain ──► a step waits for an upstream? ──no──► done
//!      ▲            │ yes
//!      └── ask the listener: a cache may have the answer now, or the name is denied and the search goes on
//! ```
//!
//! The queries have the mark of a probe. If no cache keeps an answer, the step shows what the server answered.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use control::Endpoint;
use control::explain::{Asked, Client, Code, Explained, Listener, Step, Why};
use control::text::{ede_meaning, harmless};
use plugins::record_text;
use tokio::runtime::Runtime;
use wire::{EdeCode, Message, Name, OptionCode, Record, Section, Type};

use super::Options;
use crate::client::{ControlError, Socket, runtime};
use crate::dns_client::{Query, Reply, exchange};

/// Time for all queries together: longer than *forward* tries, which is 5 s.
const TIME_MAX: Duration = Duration::from_secs(6);
/// Maximum number of names that are asked. A search path has four.
const NAMES_MAX: usize = 8;
/// Scheme of listeners for DNS over UDP and TCP.
const PLAIN: &str = "dns://";

/// Explains, asks the server and explains again, until nothing is left to ask.
#[allow(clippy::print_stderr, reason = "a command prints to its user")]
pub(super) fn explain(own: &Options, socket: &Socket) -> Result<Explained, ControlError> {
    if let Some(url) = socket.url() {
        return Err(ControlError::Refused(format!(
            "`--fresh` sends queries to the listener of a server on this machine, and {url} may be elsewhere; run it \
             beside the server, over the Unix socket"
        )));
    }
    let mut asking: Option<Asking> = None;
    let mut denied = String::new();
    loop {
        let mut explained: Explained = socket.get(Endpoint::Explain, &own.parameters(&denied))?;
        let Some(name) = next_name(&explained, asking.as_ref()) else {
            match &asking {
                Some(asking) => asking.add_to(&mut explained),
                None => eprintln!("note: {}", nothing_asked(&explained)),
            }
            return Ok(explained);
        };
        let asking = match &mut asking {
            Some(asking) => asking,
            None => asking.insert(Asking::new(&explained)?),
        };
        if asking.ask(name)? {
            denied = format!("{denied} {}", asking.outcomes.last().map_or("", |(name, _)| name)).trim().to_owned();
        }
    }
}

/// Returns the first name that waits for an upstream and has not been asked.
fn next_name(explained: &Explained, asking: Option<&Asking>) -> Option<String> {
    let is_new = |step: &&Step| waits(step) && asking.is_none_or(|asking| asking.outcome(&step.name).is_none());
    let step = explained.steps.iter().find(is_new)?;
    asking.is_none_or(|asking| asking.outcomes.len() < NAMES_MAX).then(|| step.name.clone())
}

/// Says why no query was sent.
fn nothing_asked(explained: &Explained) -> String {
    match explained.steps.iter().find(|step| step.cache.is_some()) {
        Some(step) => format!(
            "no query was sent, because the cache has an answer for {name}; `portolan cache flush {name}` removes it",
            name = harmless(&step.name)
        ),
        None => "no query was sent, because no answer needs an upstream".to_owned(),
    }
}

/// Returns true if a step has no answer because it waits for an upstream.
fn waits(step: &Step) -> bool {
    step.rcode.is_none() && !step.dropped
}

/// Queries to the listener, and their outcomes.
struct Asking {
    runtime: Runtime,
    server: SocketAddr,
    qtype: Type,
    deadline: Instant,
    /// Names and answers, in order.
    outcomes: Vec<(String, Asked)>,
}

impl Asking {
    fn new(explained: &Explained) -> Result<Asking, ControlError> {
        let server = address_of(explained.listener.as_ref());
        let server = server.map_err(|error| ControlError::Refused(error.to_string()))?;
        let invalid = |_| ControlError::Response(format!("`{}` is not a record type", explained.question.qtype));
        let qtype = explained.question.qtype.parse().map_err(invalid)?;
        let deadline = Instant::now() + TIME_MAX;
        Ok(Asking { runtime: runtime()?, server, qtype, deadline, outcomes: Vec::new() })
    }

    fn outcome(&self, name: &str) -> Option<&Asked> {
        self.outcomes.iter().find(|(known, _)| known == name).map(|(_, asked)| asked)
    }

    /// Asks for a name. Returns true if a stub resolver goes on with the next name of the search path.
    fn ask(&mut self, name: String) -> Result<bool, ControlError> {
        let invalid = |_| ControlError::Response(format!("`{name}` is not a domain name"));
        let wire_name = Name::from_text(&name).map_err(invalid)?;
        let asked = self.query(&wire_name, self.qtype);
        let other = match self.qtype {
            Type::A => Some(Type::AAAA),
            Type::AAAA => Some(Type::A),
            _ => None,
        };
        let has_records = |asked: &Asked| !asked.records.is_empty();
        let goes_on = match asked.rcode.as_deref() {
            Some("NXDOMAIN") => true,
            // A stub resolver asks for both families at once, and stops if it gets either.
            Some("NOERROR") if !has_records(&asked) => {
                !other.is_some_and(|other| has_records(&self.query(&wire_name, other)))
            }
            _ => false,
        };
        self.outcomes.push((name, asked));
        Ok(goes_on)
    }

    fn query(&self, name: &Name, qtype: Type) -> Asked {
        let (query, start) = (Query::new(name.clone(), qtype).marked(), Instant::now());
        let limit = self.deadline.saturating_duration_since(start);
        match self.runtime.block_on(exchange(self.server, &query, limit)) {
            Ok(reply) => read(&reply),
            Err(error) => {
                Asked { seconds: start.elapsed().as_secs_f64(), error: Some(error.to_string()), ..Asked::default() }
            }
        }
    }

    /// Adds the answers to the steps that still have none, and the reason that follows.
    fn add_to(&self, explained: &mut Explained) {
        let address = self.server.ip().to_string();
        let is_other = |client: &Client| client.address.as_deref() != Some(&address);
        explained.asked_from = explained.from.as_ref().filter(|from| is_other(from)).map(|_| address.clone());
        for (at, step) in explained.steps.iter_mut().enumerate() {
            let Some(asked) = self.outcome(&step.name) else { continue };
            step.asked = Some(asked.clone());
            if !waits(step) {
                continue;
            }
            let (before, outcome) = (step.why.clone(), outcome(step, asked));
            if !asked.records.is_empty() {
                explained.answered.get_or_insert(at);
            }
            // That all upstreams are down says more than the failure that follows from it.
            if !(asked.is_failure() && before.as_ref().is_some_and(|why| why.code == ALL_DOWN)) {
                (step.why, step.advice) = (Some(outcome.0), outcome.1);
            }
            if before.as_ref() == Some(&explained.why) || asked.is_failure() {
                explained.why = step.why.clone().unwrap_or_default();
                explained.advice.clone_from(&step.advice);
            }
        }
    }
}

/// Code of *forward* if all upstreams are down.
const ALL_DOWN: &str = "PE-F01";

/// Returns the reason of a step that was asked, and what to do.
fn outcome(step: &Step, asked: &Asked) -> (Why, Option<String>) {
    let name = &step.name;
    let text = match (&asked.rcode, &asked.ede_text) {
        (Some(rcode), Some(error)) if asked.is_failure() => format!("{name} is {rcode}: {error}"),
        (Some(rcode), _) => format!("the server answers {rcode} for {name}, and no cache keeps it"),
        (None, _) => format!("the server does not answer for {name}"),
    };
    let usual = || Code::Asked.advice().to_owned();
    let advice = asked.is_failure().then(|| command_for(step).unwrap_or_else(usual));
    (Why { code: Code::Asked.name().to_owned(), text }, advice)
}

/// Returns the command that asks the only upstream of a step, if it can be asked in clear.
fn command_for(step: &Step) -> Option<String> {
    let [upstream] = step.upstreams.as_slice() else { return None };
    let is_plain = matches!(upstream.transport.as_str(), "udp" | "tcp");
    let address: SocketAddr = upstream.address.parse().ok().filter(|_| is_plain)?;
    let port = if address.port() == 53 { String::new() } else { format!(" -p {}", address.port()) };
    // The last failure may be that of a query over TCP, after a truncated answer over UDP.
    let is_over_tcp = upstream.failure.as_ref().is_some_and(|failure| failure.starts_with(plugins::OVER_TCP));
    let tcp = if is_over_tcp { " +tcp" } else { "" };
    Some(format!("Ask the upstream itself: `dig {} @{}{port}{tcp}`", step.name, address.ip()))
}

/// Reason why a listener cannot be asked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum ListenerError {
    /// The server does not say where it listens.
    #[error("the server does not say where it listens; is it an older version?")]
    Unknown,
    /// The listener with this name has another transport.
    #[error(
        "`--fresh` asks over UDP and TCP, and `{}` is another transport; choose a listener `{}…` with `--server`",
        .0,
        PLAIN
    )]
    Transport(String),
}

/// Returns the address at which the listener is asked.
fn address_of(listener: Option<&Listener>) -> Result<SocketAddr, ListenerError> {
    let Listener { name, address } = listener.ok_or(ListenerError::Unknown)?;
    if !name.starts_with(PLAIN) {
        return Err(ListenerError::Transport(name.clone()));
    }
    let address = address.as_deref().and_then(|address| address.parse::<SocketAddr>().ok());
    let mut address = address.ok_or(ListenerError::Unknown)?;
    if address.ip().is_unspecified() {
        // The socket of a listener without an address serves both families. IPv6 may be disabled.
        let is_v6_only = name.starts_with("dns://[");
        let loopback: IpAddr = if is_v6_only { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        address.set_ip(loopback);
    }
    Ok(address)
}

/// Describes a response.
fn read(reply: &Reply) -> Asked {
    let mut asked = Asked { seconds: reply.seconds, ..Asked::default() };
    let Ok(message) = Message::parse(&reply.message) else { return asked };
    asked.rcode = Some(message.header().flags.rcode().to_string());
    for record in message.records() {
        if record.rtype() == Type::OPT {
            add_error(&mut asked, &record);
        } else if record.section() == Section::Answer {
            asked.records.extend(record.owner().ok().and_then(|owner| record_text(&owner, &record)));
        }
    }
    asked
}

/// Adds the first Extended DNS Error with its text, or else its meaning.
fn add_error(asked: &mut Asked, opt: &Record<'_>) {
    let mut errors = wire::options(opt.rdata()).filter(|(code, _)| *code == OptionCode::EXTENDED_ERROR);
    let Some((code, text)) = errors.next().and_then(|(_, data)| data.split_first_chunk::<2>()) else { return };
    let EdeCode(code) = EdeCode(u16::from_be_bytes(*code));
    let text = String::from_utf8_lossy(text).trim_end_matches('\0').to_owned();
    asked.ede = Some(code);
    asked.ede_text = if text.is_empty() { ede_meaning(code.into()).map(str::to_owned) } else { Some(text) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_a_wildcard_listener_at_the_loopback_address() {
        let address = |name: &str, bound: &str| -> Result<String, ListenerError> {
            address_of(Some(&Listener { name: name.to_owned(), address: Some(bound.to_owned()) }))
                .map(|address| address.to_string())
        };
        assert_eq!(address("dns://:53", "[::]:53"), Ok("127.0.0.1:53".to_owned()));
        assert_eq!(address("dns://:53", "0.0.0.0:53"), Ok("127.0.0.1:53".to_owned()));
        assert_eq!(address("dns://[::]:0", "[::]:5300"), Ok("[::1]:5300".to_owned()));
        assert_eq!(address("dns://10.0.0.7:53", "10.0.0.7:53"), Ok("10.0.0.7:53".to_owned()));
        assert_eq!(address("tls://:853", "[::]:853"), Err(ListenerError::Transport("tls://:853".to_owned())));
        assert_eq!(address_of(None), Err(ListenerError::Unknown));
    }
}
