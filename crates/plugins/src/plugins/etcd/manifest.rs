//! Configuration of the `etcd` directive.

use std::path::PathBuf;

use config::options::{Args, DirectiveContext, Manifest, Problem, Property, Role, Usage};
use gotext::parse_duration;
use skydns::{Credentials, LeaseBounds, Request, Tls};
use wire::Name;

use super::walk::ApexFallback;
use common_plugins::shared::option_helpers::no_arguments;
use plugin::fallthrough::{DENIED, FallsThrough, fallthrough};

/// Parsed `etcd` directive.
#[derive(Debug)]
pub struct Config {
    pub(super) zones: Vec<Name>,
    path: String,
    endpoints: Vec<String>,
    credentials: Option<Credentials>,
    tls: Option<TlsFiles>,
    pub(super) lease: LeaseBounds,
    pub(super) fallback: ApexFallback,
    pub(super) fallthrough: Vec<Name>,
}

impl FallsThrough for Config {
    fn fallthrough(&mut self) -> &mut Vec<Name> {
        &mut self.fallthrough
    }
}

/// Files of the property `tls`, as written.
#[derive(Debug)]
struct TlsFiles {
    identity: Option<(String, String)>,
    authorities: Option<String>,
}

const ENDPOINT_DEFAULT: &str = "http://localhost:2379";
const LEASE_DEFAULT: LeaseBounds = LeaseBounds { min: 30, max: 24 * 3600 };

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "etcd",
    "serve records from etcd in the format of SkyDNS",
    || Config {
        zones: Vec::new(),
        path: "/skydns".to_owned(),
        endpoints: Vec::new(),
        credentials: None,
        tls: None,
        lease: LEASE_DEFAULT,
        fallback: ApexFallback::Zone,
        fallthrough: Vec::new(),
    },
    super::build,
)
.arguments("etcd [ZONES...]", |config, args| {
    config.zones = args.zones()?;
    Ok(())
})
.properties(PROPERTIES)
.metrics(&super::METRICS)
.check(check)
.asks_server()
.role(|line| Role::answers(&line.config.zones, &line.config.fallthrough));

/// Warns of `tls` that no connection uses, because it looks as if the credentials went over TLS.
fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let is_plain = context.config.endpoints.iter().all(|endpoint| endpoint.starts_with("http://"));
    match context.word_of("tls").filter(|_| is_plain) {
        Some(word) => {
            let message = "tls has no effect: connections to these endpoints are not encrypted";
            Err(context.warning_at(word, message, "write the endpoints as `https://HOST:PORT`"))
        }
        None => Ok(()),
    }
}

static PROPERTIES: &[Property<Config>] = &[
    Property {
        usage: Usage("path PATH"),
        default: "/skydns",
        doc: "Prefix of all keys.",
        set: |config, args| {
            config.path.clone_from(&args.word()?.text);
            Ok(())
        },
    },
    Property {
        usage: Usage("endpoint URL..."),
        default: ENDPOINT_DEFAULT,
        doc: "URLs of the etcd members, tried in turn. The default port is 2379. Without `http://` or `https://`, TLS \
              is used if `tls` is present.",
        set: |config, args| {
            config.endpoints = args.take_rest().iter().map(|word| word.text.clone()).collect();
            Ok(())
        },
    },
    Property {
        usage: Usage("credentials USER PASSWORD"),
        default: "",
        doc: "User name and password for etcd with authentication enabled.",
        set: |config, args| {
            let (user, password) = (args.word()?.text.clone(), args.word()?.text.clone());
            config.credentials = Some(Credentials { user, password });
            Ok(())
        },
    },
    Property {
        usage: Usage("tls [CERT KEY] [CA]"),
        default: "system CAs",
        doc: "PEM files for TLS: the client certificate and its key, and the CA certificates that members are verified \
              with. They are read again for every connection.",
        set: |config, args| {
            let files: Vec<String> = args.take_rest().iter().map(|word| word.text.clone()).collect();
            let (identity, authorities) = files.split_at(files.len() / 2 * 2);
            let identity = identity.first().cloned().zip(identity.get(1).cloned());
            config.tls = Some(TlsFiles { identity, authorities: authorities.first().cloned() });
            Ok(())
        },
    },
    Property {
        usage: Usage("min-lease-ttl DURATION"),
        default: "30s",
        doc: "Minimum TTL of records whose key has a lease, in seconds or as a duration.",
        set: |config, args| {
            config.lease.min = seconds(args)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("max-lease-ttl DURATION"),
        default: "24h",
        doc: "Maximum TTL of records whose key has a lease, in seconds or as a duration.",
        set: |config, args| {
            config.lease.max = seconds(args)?;
            Ok(())
        },
    },
    fallthrough(DENIED),
    Property {
        usage: Usage("no_apex_fallback"),
        default: "off",
        doc: "Answer address queries for the zone itself only from keys below `dns/apex`. Without it, a zone that has \
              none has the addresses of all its keys.",
        set: |config, _| {
            config.fallback = ApexFallback::Nothing;
            Ok(())
        },
    },
    Property {
        usage: Usage("stubzones"),
        default: "",
        doc: "Ignored. Use a server block for what a stub zone in etcd did for SkyDNS.",
        set: no_arguments,
    },
    Property {
        usage: Usage("upstream [IGNORED...]"),
        default: "",
        doc: "Ignored. Names outside of the zones are always resolved by this server.",
        set: no_arguments,
    },
    Property { usage: Usage("debug"), default: "", doc: "Ignored.", set: no_arguments },
];

/// Parses a number of seconds, or a duration.
fn seconds(args: &mut Args<'_>) -> Result<u32, Problem> {
    let word = args.word()?;
    let seconds = match word.text.parse::<u64>() {
        Ok(seconds) => Ok(seconds),
        Err(_) => parse_duration(&word.text).map(|span| span.as_secs()),
    };
    let seconds = seconds.map_err(|_| args.bad(word, "seconds or a duration such as `30s` or `2h30m`"))?;
    u32::try_from(seconds).map_err(|_| args.bad(word, "a time below 4294967296 seconds"))
}

impl Config {
    /// Returns the request for the records of these zones. `path` resolves the path of a file.
    pub(super) fn request(&self, zones: &[Name], path: impl Fn(&str) -> PathBuf) -> Request {
        let tls = self.tls.as_ref().map(|files| Tls {
            identity: files.identity.as_ref().map(|(certificate, key)| (path(certificate), path(key))),
            authorities: files.authorities.as_ref().map(|file| path(file)),
        });
        let endpoints =
            if self.endpoints.is_empty() { vec![ENDPOINT_DEFAULT.to_owned()] } else { self.endpoints.clone() };
        Request {
            endpoints,
            path: self.path.clone(),
            zones: zones.to_vec(),
            credentials: self.credentials.clone(),
            tls,
        }
    }
}
