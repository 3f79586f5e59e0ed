//! Announces the encrypted transports of the server to clients that use plain DNS (DDR, RFC 9462).

use core::net::IpAddr;
use std::sync::Arc;

use config::options::{Args, Manifest, Problem, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::tls::TlsMaker;
use engine::{Hooks, Plugin, Query, Response, Scheme, Verdict, Worker};
use wire::{Class, Name, NameRef, Owner, Section, Type};

use common_plugins::shared::resolver_arpa::{self, RESOLVER_ARPA};
use common_plugins::shared::server_certificates::ServedCertificate;

/// TTL of the records in seconds. A client learns of a change after this time.
const TTL: u32 = 300;
/// Only name below `resolver.arpa` that exists.
const DISCOVERY: &[u8] = b"\x04_dns\x08resolver\x04arpa\0";
/// Transports in the order of preference, with their ALPN identifiers. A connection over TLS costs the server least.
const TRANSPORTS: [(Scheme, &[u8]); 4] =
    [(Scheme::Tls, b"dot"), (Scheme::Https, b"h2"), (Scheme::Quic, b"doq"), (Scheme::Https3, b"h3")];
/// URI template of DNS over HTTPS, as [`doh`](Scheme::Https) serves it (RFC 9461 §5).
const PATH: &[u8] = b"/dns-query{?dns}";

/// Keys of service parameters (RFC 9460 §14.3.2, RFC 9461 §5).
mod key {
    pub(super) const ALPN: u16 = 1;
    pub(super) const PORT: u16 = 3;
    pub(super) const IPV4_HINT: u16 = 4;
    pub(super) const IPV6_HINT: u16 = 6;
    pub(super) const DOH_PATH: u16 = 7;
}

/// Parsed `ddr` line.
#[derive(Default)]
pub struct Config {
    target: Name,
    addresses: Vec<IpAddr>,
    announced: Vec<(Scheme, u16)>,
}

pub static MANIFEST: Manifest<Config> =
    Manifest::new("ddr", "announce the encrypted transports of the server", Config::default, build)
        .arguments("ddr NAME [ADDRESS...]", read)
        .properties(&[Property {
            usage: Usage("announce tls|https|https3|quic [PORT]"),
            default: "the encrypted keys of the server block",
            doc: "Announces this transport, on its default port or this one. May appear more than once.",
            set: |config, args| {
                let scheme = args.choice(&[
                    ("tls", Scheme::Tls),
                    ("https", Scheme::Https),
                    ("https3", Scheme::Https3),
                    ("quic", Scheme::Quic),
                ])?;
                let port = if args.rest().is_empty() { scheme.port(0) } else { args.number(1..)? };
                config.announced.push((scheme, port));
                Ok(())
            },
        }])
        .role(|_| Role::answers(&[zone()], &[]));

fn read(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let word = args.word()?;
    config.target = Name::from_text(&word.text).map_err(|_| args.bad(word, "the name in the certificate"))?;
    if config.target.as_ref().is_root() {
        return Err(args.bad(word, "the name in the certificate"));
    }
    while let Some(word) = args.next_word() {
        config.addresses.push(word.text.parse().map_err(|_| args.bad(word, "an IP address of this server"))?);
    }
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(mut config) = configs.into_iter().next() else { return Ok(None) };
    if config.announced.is_empty() {
        config.announced = encrypted_keys(setup);
    }
    if config.announced.is_empty() {
        let error = SetupError::new("the server block has no key with encryption to announce");
        return Err(error.with_help("add a key such as `tls://.`, or `announce tls` if another server block has it"));
    }
    check_certificate(&config, setup);
    let plugin = Ddr { records: records(&config), target: config.target, addresses: config.addresses };
    Ok(Some(Part { zones: Some([zone()].into_iter().collect()), ..Part::new(plugin, Hooks::DOWN) }))
}

fn zone() -> Name {
    NameRef::from_bytes(RESOLVER_ARPA).unwrap_or(NameRef::ROOT).to_name()
}

/// Transports and ports of the keys of the server block that DDR can announce.
fn encrypted_keys(setup: &Setup<'_>) -> Vec<(Scheme, u16)> {
    let mut keys: Vec<(Scheme, u16)> = Vec::new();
    for site in &setup.block.sites {
        let is_of = |scheme: &Scheme| site.server.split_once("://").is_some_and(|(name, _)| name == scheme.name());
        let scheme = TRANSPORTS.iter().map(|(scheme, _)| *scheme).find(is_of);
        if let Some(key) = scheme.map(|scheme| (scheme, site.port)).filter(|key| !keys.contains(key)) {
            keys.push(key);
        }
    }
    if setup.block.encrypts { keys } else { Vec::new() }
}

/// Warns about addresses that the certificate does not contain. Clients connect only if it contains the address that
/// they know (RFC 9462 §4.2).
fn check_certificate(config: &Config, setup: &mut Setup<'_>) {
    let Some(maker) = setup.process.find::<Arc<dyn TlsMaker>>() else { return };
    let Some(ServedCertificate(path)) = setup.below.find() else { return };
    // Without the file, *tls* reports the error.
    let Ok(certificates) = setup.files.read(&path) else { return };
    for address in &config.addresses {
        if maker.certifies(&certificates, *address).is_ok_and(|contains| !contains) {
            let path = path.display();
            setup.warn(format_args!(
                "the certificate in {path} is not valid for {address}, so clients will not use what `ddr` announces; \
                 add the address to its subject alternative names"
            ));
        }
    }
}

/// Returns the data of the SVCB records (RFC 9460 §2.2), in the order of preference.
fn records(config: &Config) -> Vec<Vec<u8>> {
    let of = |(scheme, alpn): (Scheme, &'static [u8])| {
        config.announced.iter().filter(move |(announced, _)| *announced == scheme).map(move |(_, port)| (alpn, *port))
    };
    let announced = TRANSPORTS.into_iter().flat_map(of);
    (1u16..).zip(announced).map(|(priority, (alpn, port))| record(priority, alpn, port, config)).collect()
}

fn record(priority: u16, alpn: &[u8], port: u16, config: &Config) -> Vec<u8> {
    let mut data = priority.to_be_bytes().to_vec();
    data.extend(config.target.as_bytes());
    let mut push = |key: u16, value: &[u8]| {
        // The longest value is a list of addresses from one line.
        if let Ok(length @ 1..) = u16::try_from(value.len()) {
            data.extend([key.to_be_bytes(), length.to_be_bytes()].concat());
            data.extend(value);
        }
    };
    let hints = |is_v4: bool| {
        let addresses = config.addresses.iter().filter(move |address| address.is_ipv4() == is_v4);
        addresses.flat_map(|address| match address {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        })
    };
    let length = u8::try_from(alpn.len()).unwrap_or_default();
    push(key::ALPN, &[&[length], alpn].concat());
    push(key::PORT, &port.to_be_bytes());
    push(key::IPV4_HINT, &hints(true).collect::<Vec<_>>());
    push(key::IPV6_HINT, &hints(false).collect::<Vec<_>>());
    if alpn.starts_with(b"h") {
        push(key::DOH_PATH, PATH);
    }
    data
}

/// Plugin for the `ddr` line of a server block.
struct Ddr {
    /// Data of the SVCB records.
    records: Vec<Vec<u8>>,
    target: Name,
    addresses: Vec<IpAddr>,
}

impl Plugin for Ddr {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        if query.qtype == Type::SVCB && query.key().as_bytes() == DISCOVERY {
            self.answer(response);
        } else {
            resolver_arpa::deny(response);
        }
        Verdict::Done
    }
}

impl Ddr {
    fn answer(&self, response: &mut Response) {
        response.set_local();
        for record in &self.records {
            let svcb = (Type::SVCB, Class::IN, TTL);
            response.message.push(Section::Answer, Owner::Question, svcb, |rdata| rdata.bytes(record));
        }
        // RFC 9462 §4: the addresses spare the client another query.
        for address in &self.addresses {
            let target = Owner::Name(self.target.as_ref());
            response.message.push_address(Section::Additional, target, TTL, *address);
        }
    }
}
