//! Reads client addresses from the PROXY protocol headers of load balancers.

use std::sync::Arc;

use config::options::{Args, Manifest, Problem, Property, Usage};
use config::setup::{Part, ProxyHeader, ProxyPolicy, Setup, SetupError};
use ipnet::IpNet;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "proxyproto",
    "accept the PROXY protocol from load balancers",
    include_str!("README.md"),
    Config::default,
    build,
)
.without_handler()
.repeated()
.properties(&[
    Property {
        usage: Usage("allow [CIDR...]"),
        default: "",
        doc: "Networks of trusted proxies.",
        set: |config, args| {
            while let Some(word) = args.next_word() {
                let network = word.text.parse().map_err(|_| args.bad(word, "a network such as `10.0.0.0/8`"))?;
                config.allow.push(network);
            }
            Ok(())
        },
    },
    Property {
        usage: Usage("default use|ignore|reject|skip"),
        default: "ignore",
        doc: "Treatment of headers from all other proxies. Without `allow`, it applies to all proxies and its default \
              is `use`.",
        set: |config, args| {
            config.default = Some(args.choice(&HEADERS)?);
            Ok(())
        },
    },
    Property {
        usage: Usage("udp_session_tracking DURATION [NUMBER]"),
        default: "0s",
        doc: "Only `0s` is supported by this build: every datagram has its own header.",
        set: refuse_sessions,
    },
])
.settings(|config, settings| settings.listening.proxy = Some(config.policy()));

const HEADERS: [(&str, ProxyHeader); 4] = [
    ("use", ProxyHeader::Use),
    ("ignore", ProxyHeader::Ignore),
    ("reject", ProxyHeader::Reject),
    ("skip", ProxyHeader::Skip),
];

#[derive(Default)]
pub struct Config {
    allow: Vec<IpNet>,
    default: Option<ProxyHeader>,
}

fn refuse_sessions(_: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let word = args.rest().first();
    let span = args.duration()?;
    if args.next_word().is_some_and(|number| number.text.parse::<u32>().is_err()) {
        return Err(args.problem("the number of sessions must be a whole number"));
    }
    match word {
        Some(word) if !span.is_zero() => Err(args.bad(word, "`0s`: this build does not support UDP sessions")),
        _ => Ok(()),
    }
}

impl Config {
    /// Policy for the headers of a proxy.
    fn policy(&self) -> ProxyPolicy {
        let allow = self.allow.clone();
        let others = match self.default {
            Some(default) => default,
            // Without any options, all proxies are trusted.
            None if allow.is_empty() => ProxyHeader::Use,
            None => ProxyHeader::Ignore,
        };
        ProxyPolicy(Arc::new(move |proxy| {
            if allow.iter().any(|network| network.contains(&proxy)) { ProxyHeader::Use } else { others }
        }))
    }
}

fn build(_: Vec<Config>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
