//! Options of `grpc`.

use core::net::{IpAddr, SocketAddr};

use config::options::{DirectiveContext, Manifest, Property, QueriedUpstream, Role};
use corefile::Token;
use engine::Scheme;
use upstream::ScopedAddress;
use wire::Name;

use super::metrics;
use common_plugins::shared::upstream_options::{
    HasUpstreams, UpstreamOptions, except, parse_targets, policy, tls, tls_servername,
};
use plugin::fallthrough::{FallsThrough, fallthrough};

/// Default ports: with the scheme `grpc://`, and otherwise.
const GRPC_PORT: u16 = 443;
const DNS_PORT: u16 = 53;

/// Texts of an upstream.
const TARGET: &str = "an IP address, with a number as the port if it has one, `unix://PATH` or the name of a file";

/// Upstream as written in the Corefile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// IP address and port.
    Address(ScopedAddress),
    /// Path of a Unix socket.
    Socket(String),
    /// File with `nameserver` lines.
    File(String),
}

/// Parsed `grpc` line.
#[derive(Debug, Default)]
pub struct Config {
    pub(super) targets: Vec<Target>,
    pub(super) upstreams: UpstreamOptions,
    pub(super) fallthrough: Vec<Name>,
}

impl HasUpstreams for Config {
    fn upstreams(&mut self) -> &mut UpstreamOptions {
        &mut self.upstreams
    }
}

impl FallsThrough for Config {
    fn fallthrough(&mut self) -> &mut Vec<Name> {
        &mut self.fallthrough
    }
}

pub static MANIFEST: Manifest<Config> =
    Manifest::new("grpc", "forward queries over gRPC", Config::default, super::build)
        .arguments("grpc FROM TO...", |config, args| {
            config.upstreams.parse_from(args)?;
            for word in parse_targets(args)? {
                config.targets.push(read_target(&word.text).ok_or_else(|| args.bad(word, TARGET))?);
            }
            Ok(())
        })
        .properties(PROPERTIES)
        .metrics(&metrics::ALL)
        .check(|context| match context.word_of("tls_servername") {
            Some(word) if !context.config.upstreams.tls.is_set => {
                let message = "tls_servername has no effect: queries to these upstreams are not encrypted";
                Err(context.warning_at(word, message, "add `tls`"))
            }
            _ => Ok(()),
        })
        .role(role);

fn role(line: &DirectiveContext<'_, Config>) -> Role {
    let queried = |word: &Token| match read_target(&word.text) {
        Some(Target::Address(address)) => {
            Some(QueriedUpstream { scheme: Scheme::Grpc, address: address.address, span: word.span })
        }
        _ => None,
    };
    Role {
        except: line.config.upstreams.except().to_vec(),
        asks: line.written.args.iter().skip(1).filter_map(queried).collect(),
        ..Role::answers(core::slice::from_ref(line.config.upstreams.from()), &line.config.fallthrough)
    }
}

static PROPERTIES: &[Property<Config>] = &[
    except("Names to leave to the next plugin, including all names below them."),
    tls(
        "off",
        "Use TLS. CERT and KEY are PEM files with a client certificate and its key. CA has the CA certificates that \
         upstreams are verified with; the default is those of the system.",
    ),
    tls_servername("Name that the certificates of upstreams must contain; without it, their IP address."),
    policy(),
    fallthrough("Pass queries answered with NXDOMAIN to the next plugin: in all zones, or only in ZONES."),
];

/// Parses an upstream. CoreDNS accepts any scheme here and uses gRPC for all. Only `dns://` and `grpc://` are accepted
/// here, and `unix://`.
fn read_target(text: &str) -> Option<Target> {
    if let Some(path) = text.strip_prefix("unix://") {
        return (!path.is_empty()).then(|| Target::Socket(path.to_owned()));
    }
    let (port, rest) = match text.split_once("://") {
        None => (DNS_PORT, text),
        Some(("dns", rest)) => (DNS_PORT, rest),
        Some(("grpc", rest)) => (GRPC_PORT, rest),
        Some(_) => return None,
    };
    let address = rest.parse::<SocketAddr>().ok().map(ScopedAddress::from).or_else(|| read_address(rest, port));
    let is_file = !rest.is_empty() && !has_invalid_port(rest);
    address.map(Target::Address).or_else(|| is_file.then(|| Target::File(rest.to_owned())))
}

/// Returns true for an IP address and a port that is no number up to 65535, such as its name.
fn has_invalid_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.parse::<IpAddr>().is_ok() && port.parse::<u16>().is_err()
}

/// Parses an IP address without a port, or a link-local one with its interface: `[fe80::1%eth0]:443`.
fn read_address(text: &str, default: u16) -> Option<ScopedAddress> {
    let (inside, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, "")) => (inside, default),
        Some((inside, rest)) => (inside, rest.strip_prefix(':')?.parse().ok()?),
        None => (text, default),
    };
    let (ip, zone) = inside.split_once('%').map_or((inside, None), |(ip, zone)| (ip, Some(zone)));
    Some(ScopedAddress::new(ip.parse().ok()?, port, zone))
}
