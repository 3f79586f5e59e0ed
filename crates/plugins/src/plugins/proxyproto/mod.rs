//! Reads client addresses from the PROXY protocol headers of load balancers.

use core::fmt::Write;
use std::sync::Arc;

use config::options::{Args, Manifest, Problem, Property, Usage};
use config::setup::{Part, ProxyHeader, ProxyPolicy, Setup, SetupError};
use engine::ProxyTlvs;
use ipnet::IpNet;

/// Label with the TLVs, as in CoreDNS.
const LABEL: &str = "proxyproto/tlv";

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "proxyproto",
    "accept the PROXY protocol from load balancers",
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
    Property {
        usage: Usage("tlv_metadata"),
        default: "",
        doc: "Publish the type-length-value fields (TLVs) of headers of version 2 as the label `proxyproto/tlv`, in \
              hexadecimal.",
        set: |config, _| {
            config.keeps_tlvs = true;
            Ok(())
        },
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
    keeps_tlvs: bool,
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
        let is_trusted = move |proxy| allow.iter().any(|network| network.contains(&proxy));
        let of = Arc::new(move |proxy| if is_trusted(proxy) { ProxyHeader::Use } else { others });
        ProxyPolicy { of, keeps_tlvs: self.keeps_tlvs }
    }
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    if configs.into_iter().any(|config| config.keeps_tlvs) {
        setup.labels().publish(LABEL, |query| match &query.peer.tlvs {
            ProxyTlvs::Kept(tlvs) => Some(hexadecimal(tlvs)),
            ProxyTlvs::None | ProxyTlvs::TooLong => None,
        });
    }
    Ok(None)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
