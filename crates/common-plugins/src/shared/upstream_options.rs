//! Shared parts of the plugins that query upstreams: parsing of their options, TLS from files, failure messages and
//! metrics by response code.

use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::AtomicUsize;
use std::path::Path;
use std::sync::Arc;

use config::options::{Args, Problem, Property, Usage, zone_names};
use config::setup::{Setup, SetupError};
use corefile::Token;
use engine::tls::{ClientTls, Identity, TlsClient, TlsMaker};
use engine::{
    Exchange, ExchangeError, ExchangeObservers, ExchangeReply, Failure, Instant, Io, ObservedExchange, Query, Zones,
};
use metrics::{Counter, Histogram, Metric, Registry, Table};
use upstream::{Policy, ScopedAddress, nameservers};
use wire::{EdeCode, Name, NameRef, Rcode};

use crate::shared::last_good::Wanted;
use crate::shared::{last_good, resolver_arpa};

/// Maximum number of upstreams in one directive.
const TARGETS_MAX: usize = 15;
/// Number of response codes that the header can hold (4 bits).
const RCODES: u16 = 16;

/// Options that all plugins with upstreams have.
#[derive(Debug, Default)]
pub struct UpstreamOptions {
    from: Name,
    except: Vec<Name>,
    /// Files of certificates and keys.
    pub tls: TlsFiles,
    /// Order in which upstreams are tried.
    pub policy: Policy,
}

/// Configuration with upstreams.
pub trait HasUpstreams {
    /// Returns the options of the upstreams.
    fn upstreams(&mut self) -> &mut UpstreamOptions;
}

/// Names that a directive forwards: FROM, and all below without those of `except`.
pub struct ForwardedNames {
    from: Name,
    except: Zones,
    /// True if FROM is `resolver.arpa` or below.
    has_resolver_arpa: bool,
}

impl UpstreamOptions {
    /// Parses FROM: the zone whose queries are forwarded.
    pub fn parse_from(&mut self, args: &mut Args<'_>) -> Result<(), Problem> {
        let word = args.word()?;
        let zones = zone_names(&word.text);
        self.from = zones.first().cloned().ok_or_else(|| args.bad(word, "a zone"))?;
        if zones.len() > 1 {
            args.warn(word, format!("`{}` is {} zones; only {} is forwarded", word.text, zones.len(), self.from));
        }
        Ok(())
    }

    /// Zone whose queries are forwarded.
    pub fn from(&self) -> &Name {
        &self.from
    }

    /// Names that are not forwarded.
    pub fn except(&self) -> &[Name] {
        &self.except
    }

    /// Returns the names to forward.
    pub fn forwarded_names(&self) -> ForwardedNames {
        let except = self.except.iter().cloned().collect();
        let has_resolver_arpa = resolver_arpa::contains(self.from.as_ref());
        ForwardedNames { from: self.from.clone(), except, has_resolver_arpa }
    }
}

impl ForwardedNames {
    /// Returns true if a name (in lower case) is forwarded. FROM itself is, whatever `except` says, as in CoreDNS.
    pub fn contain(&self, key: NameRef<'_>) -> bool {
        key == self.from.as_ref() || key.is_within(self.from.as_ref()) && !self.except.contain(key)
    }

    /// Returns FROM: the zone whose names are forwarded.
    pub const fn zone(&self) -> &Name {
        &self.from
    }

    /// Returns true for names that are not sent to upstreams although they are below FROM: `resolver.arpa`, unless FROM
    /// says otherwise.
    pub fn deny(&self, key: NameRef<'_>) -> bool {
        resolver_arpa::contains(key) && !self.has_resolver_arpa
    }
}

/// Returns the property `except`.
pub const fn except<C: HasUpstreams>(doc: &'static str) -> Property<C> {
    let set = |config: &mut C, args: &mut Args<'_>| {
        config.upstreams().except.extend(args.zones()?);
        Ok(())
    };
    Property { usage: Usage("except NAME..."), default: "", doc, set }
}

/// Returns the property `tls`.
pub const fn tls<C: HasUpstreams>(default: &'static str, doc: &'static str) -> Property<C> {
    let set = |config: &mut C, args: &mut Args<'_>| {
        config.upstreams().tls.take(args);
        Ok(())
    };
    Property { usage: Usage("tls [CERT KEY] [CA]"), default, doc, set }
}

/// Returns the property `tls_servername`.
pub const fn tls_servername<C: HasUpstreams>(doc: &'static str) -> Property<C> {
    let set = |config: &mut C, args: &mut Args<'_>| {
        config.upstreams().tls.server_name = Some(args.word()?.text.clone());
        Ok(())
    };
    Property { usage: Usage("tls_servername NAME"), default: "", doc, set }
}

/// Returns the property `policy`.
pub const fn policy<C: HasUpstreams>() -> Property<C> {
    let set = |config: &mut C, args: &mut Args<'_>| {
        let random: fn() -> Policy = || Policy::Random;
        let round_robin: fn() -> Policy = || Policy::RoundRobin(AtomicUsize::new(0));
        let sequential: fn() -> Policy = || Policy::Sequential;
        let policies = [("random", random), ("round_robin", round_robin), ("sequential", sequential)];
        config.upstreams().policy = args.choice(&policies)?();
        Ok(())
    };
    let usage = Usage("policy random|round_robin|sequential");
    Property { usage, default: "random", doc: "Order in which upstreams are tried.", set }
}

/// Takes the remaining words, which name the upstreams, and checks their number.
pub fn parse_targets<'a>(args: &mut Args<'a>) -> Result<&'a [Token], Problem> {
    let words = args.take_rest();
    match words.get(TARGETS_MAX) {
        None => Ok(words),
        Some(word) => {
            let message = format!("more than {TARGETS_MAX} TOs configured: {}", words.len());
            Err(args.problem_at(word.span, message))
        }
    }
}

/// Content of a file such as `resolv.conf` with name servers.
static LISTED: Wanted<Vec<u8>> = Wanted {
    what: "a line `nameserver ADDRESS`",
    lacks: |bytes| !nameservers(&String::from_utf8_lossy(bytes)).any(|server| server.is_ok()),
};

/// Returns true if [`listed_in`] has read a file before.
pub fn was_listed(name: &str, setup: &Setup<'_>) -> bool {
    last_good::is_known(name, &LISTED, setup)
}

/// Returns the name servers listed in a file such as `resolv.conf`. Logs a warning for each `nameserver` line that it
/// cannot parse.
pub fn listed_in(name: &str, setup: &mut Setup<'_>) -> Result<Vec<SocketAddr>, SetupError> {
    let bytes = last_good::read(name, &LISTED, setup)?;
    let mut found = Vec::new();
    for listed in nameservers(&String::from_utf8_lossy(&bytes)) {
        match listed {
            Ok(server) => found.push(with_interface(&server, setup)),
            Err(unlisted) => setup.warn(format_args!("{name}:{unlisted}")),
        }
    }
    Ok(found)
}

/// Returns an address with the number of its interface. Logs a warning if the address needs one and has no valid one:
/// it cannot be reached then.
pub fn with_interface(scoped: &ScopedAddress, setup: &mut Setup<'_>) -> SocketAddr {
    if scoped.lacks_interface() {
        setup.warn(format_args!("{}", lacks_interface(scoped.address.ip())));
    }
    match scoped.resolve(|file| setup.files.read(Path::new(file)).ok()) {
        Ok(address) => address,
        Err(error) => {
            setup.warn(format_args!("{} cannot be reached: {error}", scoped.address.ip()));
            scoped.address
        }
    }
}

/// Returns the warning about a link-local address without an interface.
pub fn lacks_interface(ip: IpAddr) -> String {
    format!("{ip} cannot be reached: it is valid on one link only; write its interface, as in `{ip}%eth0`")
}

/// Returns the error for a directive without upstreams because none of its `files` lists one.
pub fn none_listed<'a>(files: impl Iterator<Item = &'a str>) -> SetupError {
    let files: Vec<&str> = files.collect();
    let message = format!("no valid upstream addresses found: no line `nameserver ADDRESS` in {}", files.join(", "));
    SetupError::new(message)
}

/// Reports the outcome of an exchange that was sent at `sent` to all observers.
pub fn notify_observers(
    observers: &ExchangeObservers,
    query: &Query,
    (exchange, sent, outcome): (Exchange<'_>, Instant, &Result<ExchangeReply, ExchangeError>),
    io: &dyn Io,
) {
    if observers.is_empty() {
        return;
    }
    let (local, reply) = match outcome {
        Ok(exchanged) => (exchanged.local, Some(exchanged.reply.bytes())),
        Err(ExchangeError::Timeout { local }) => (*local, None),
        Err(_) => (None, None),
    };
    let took = io.now().since(sent);
    let observed = ObservedExchange {
        to: exchange.to,
        local,
        over: exchange.over,
        encrypted: exchange.tls.is_some(),
        query: exchange.query,
        reply,
        sent,
        sent_since_1970: io.since_1970().saturating_sub(took),
        took,
    };
    observers.notify(query, &observed);
}

/// A metric of an upstream with one series per response code of the header. Extended response codes count as the
/// highest one.
#[derive(Clone, Copy)]
pub struct ByRcode(Table);

impl ByRcode {
    /// Creates the series of the upstream that `labels` identify.
    pub fn new(registry: &Registry, metric: &'static Metric, labels: &[&str]) -> ByRcode {
        let rcodes: Vec<String> = (0..RCODES).map(|code| Rcode(code).to_string()).collect();
        let rcodes: Vec<&str> = rcodes.iter().map(String::as_str).collect();
        ByRcode(registry.table(metric, labels, &[&rcodes]))
    }

    /// Returns the counter of a response code.
    pub fn counter(self, rcode: Rcode) -> Counter {
        self.0.counter(place(rcode))
    }

    /// Returns the histogram of a response code, or `None` if it has none.
    pub fn histogram(self, rcode: Rcode) -> Option<Histogram> {
        self.0.histogram(place(rcode))
    }
}

fn place(rcode: Rcode) -> [usize; 3] {
    [usize::from(rcode.0.min(RCODES - 1)), 0, 0]
}

/// Values of `tls` and `tls_servername`.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// True if the option `tls` is set.
    pub is_set: bool,
    /// Files of the client certificate and its key.
    identity: Option<(String, String)>,
    /// File with the CA certificates that upstreams are verified with.
    authorities: Option<String>,
    /// Server name that the certificates of all upstreams must have.
    pub server_name: Option<String>,
}

impl TlsFiles {
    /// Parses `[CERT KEY] [CA]`.
    fn take(&mut self, args: &mut Args<'_>) {
        self.is_set = true;
        let files: Vec<String> = args.take_rest().iter().map(|word| word.text.clone()).collect();
        let (identity, authorities) = files.split_at(files.len() / 2 * 2);
        self.identity = identity.first().cloned().zip(identity.get(1).cloned());
        self.authorities = authorities.first().cloned();
    }

    /// Returns a TLS client for an upstream. Its certificate must match `tls_servername` if set, or else `server_name`.
    pub fn client(&self, server_name: Option<&String>, setup: &Setup<'_>) -> Result<TlsClient, SetupError> {
        let read = |name: &String| {
            setup
                .files
                .read(&setup.path(name))
                .map_err(|error| SetupError::new(host::errors::cannot_open(name, &error)))
        };
        let identity = self.identity.as_ref().map(|(certificates, key)| {
            Ok::<_, SetupError>(Identity { certificates: read(certificates)?, key: read(key)? })
        });
        let wanted = ClientTls {
            server_name: self.server_name.as_ref().or(server_name).cloned(),
            authorities: self.authorities.as_ref().map(read).transpose()?,
            identity: identity.transpose()?,
            unverified: false,
        };
        let maker: Option<Arc<dyn TlsMaker>> = setup.process.find();
        let maker = maker.ok_or_else(|| SetupError::new("TLS is not available in this process"))?;
        maker.client(&wanted).map_err(|error| SetupError::new(format!("tls: {error}")))
    }
}

/// Converts a failed exchange into a SERVFAIL with the cause that the operator sees in the log.
pub fn failure(to: impl core::fmt::Display, proto: &str, error: &ExchangeError) -> Failure {
    match error {
        ExchangeError::Timeout { local } => {
            let from = local.map_or(String::new(), |local| format!("{local}->"));
            Failure::servfail(EdeCode::NO_REACHABLE_AUTHORITY, format!("read {proto} {from}{to}: i/o timeout"))
        }
        ExchangeError::Network { during, error } => {
            Failure::servfail(EdeCode::NETWORK_ERROR, format!("{during} {proto} {to}: {error}"))
        }
        ExchangeError::Closed => Failure::servfail(EdeCode::NETWORK_ERROR, format!("read {proto} {to}: EOF"))
            .with_text("the upstream closed the connection"),
        ExchangeError::Unreadable => {
            Failure::servfail(EdeCode::INVALID_DATA, format!("read {proto} {to}: the response is not a DNS message"))
                .with_text("the response of the upstream is not a DNS message")
        }
        ExchangeError::Status { reason, .. } => {
            Failure::servfail(EdeCode::NETWORK_ERROR, format!("read {proto} {to}: {reason}"))
                .with_text("the upstream answered with an error status")
        }
        ExchangeError::Exhausted => {
            Failure::servfail(EdeCode::OTHER, format!("write {proto} {to}: too many queries on one connection"))
                .with_text("too many queries on one connection to the upstream")
        }
    }
}
