//! Options of *forward*.

use core::net::IpAddr;
use core::time::Duration;

use config::options::{Args, DirectiveContext, Effect, Manifest, Problem, Property, QueriedUpstream, Role, Usage};
use corefile::Token;
use engine::{HttpMethod, Scheme};
use upstream::{Protocol, ScopedAddress, Target};
use wire::{Name, Rcode};

use super::metrics;
use crate::shared::upstream_options::{
    HasUpstreams, UpstreamOptions, except, parse_targets, policy, tls, tls_servername,
};

/// Configuration of a `forward` line.
#[derive(Debug)]
pub struct Config {
    pub(super) targets: Vec<Target>,
    pub(super) force_tcp: bool,
    pub(super) prefer_udp: bool,
    pub(super) expire: Duration,
    pub(super) max_age: Duration,
    pub(super) max_idle_connections: usize,
    pub(super) read_timeout: Duration,
    pub(super) max_fails: u32,
    pub(super) max_connect_attempts: Option<usize>,
    pub(super) ask_all: bool,
    pub(super) health_check: Duration,
    pub(super) probe_name: Name,
    pub(super) probe_recursion: bool,
    pub(super) max_concurrent: u32,
    pub(super) next: Vec<Rcode>,
    pub(super) next_on_nodata: bool,
    pub(super) fail_fast: bool,
    pub(super) failover: Vec<Rcode>,
    pub(super) source: Option<IpAddr>,
    pub(super) resolvers: Vec<ScopedAddress>,
    pub(super) method: HttpMethod,
    pub(super) http3: bool,
    pub(super) pads_queries: bool,
    pub(super) unwanted_reply_threshold: u64,
    pub(super) use_caps_for_id: bool,
    pub(super) sends_cookies: bool,
    pub(super) upstreams: UpstreamOptions,
}

impl HasUpstreams for Config {
    fn upstreams(&mut self) -> &mut UpstreamOptions {
        &mut self.upstreams
    }
}

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "forward",
    "forward queries to other DNS servers",
    || Config {
        targets: Vec::new(),
        force_tcp: false,
        prefer_udp: false,
        expire: Duration::from_secs(10),
        max_age: Duration::ZERO,
        max_idle_connections: 0,
        read_timeout: Duration::from_secs(2),
        max_fails: 2,
        max_connect_attempts: None,
        ask_all: false,
        health_check: Duration::from_millis(500),
        probe_name: Name::root(),
        probe_recursion: true,
        max_concurrent: 0,
        next: Vec::new(),
        next_on_nodata: false,
        fail_fast: false,
        failover: Vec::new(),
        source: None,
        resolvers: Vec::new(),
        method: HttpMethod::Post,
        http3: false,
        pads_queries: false,
        unwanted_reply_threshold: UNWANTED_REPLY_THRESHOLD,
        use_caps_for_id: false,
        sends_cookies: false,
        upstreams: UpstreamOptions::default(),
    },
    super::build,
)
.any_class()
.repeated()
.arguments("forward FROM TO...", read_targets)
.properties(PROPERTIES)
.metrics(&metrics::ALL)
.check(check)
.role(role);

/// Number of replies without a query from one upstream within a minute at which the caches are emptied. An attacker
/// who knows a source port has then tried 1.5 % of the 65,536 message IDs. Ports that are used again soon after a slow
/// reply bring a few such replies, but not that many.
const UNWANTED_REPLY_THRESHOLD: u64 = 1000;

fn read_targets(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    config.upstreams.parse_from(args)?;
    for word in parse_targets(args)? {
        let target = Target::read(&word.text)
            .map_err(|error| args.problem_at(word.span, format!("`{}`: {error}", word.text)))?;
        if !config.targets.contains(&target) {
            config.targets.push(target);
        }
    }
    Ok(())
}

/// Describes the role of a line in the chain: it answers everything that matches, unless `next` can leave a response to
/// the next line.
fn role(line: &DirectiveContext<'_, Config>) -> Role {
    let config = line.config;
    let goes_on = !config.next.is_empty() || config.next_on_nodata;
    let acts = if goes_on { Effect::AnswersSome } else { Effect::AnswersAll };
    let targets = line.written.args.iter().skip(1);
    let queried = |word: &Token| match Target::read(&word.text) {
        Ok(Target::Address { protocol, address, .. }) => {
            let scheme = match protocol {
                Protocol::Dns => Scheme::Dns,
                Protocol::Tls => Scheme::Tls,
                Protocol::Https => Scheme::Https,
                Protocol::Quic => Scheme::Quic,
            };
            Some(QueriedUpstream { scheme, address: address.address, span: word.span })
        }
        _ => None,
    };
    Role {
        except: config.upstreams.except().to_vec(),
        asks: targets.filter_map(queried).collect(),
        ..Role::new(acts, core::slice::from_ref(config.upstreams.from()))
    }
}

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let config = context.config;
    if !config.max_age.is_zero() && config.max_age < config.expire {
        return Err(context.problem_with("max_age", "max_age is shorter than expire"));
    }
    let named = |target: &Target| matches!(target, Target::Address { server_name: Some(_), .. });
    if config.upstreams.tls.server_name.is_some() && config.targets.iter().any(named) {
        return Err(context
            .problem_with("tls_servername", "both tls_servername and an upstream (`%NAME`) set the certificate name"));
    }
    advise(context)
}

/// Warns of options that are valid but probably not intended.
fn advise(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let config = context.config;
    if config.pads_queries && !config.targets.iter().any(|target| protocol(target).is_encrypted()) {
        let message = "pad_queries has no effect without an upstream over TLS, HTTPS or QUIC";
        return Err(context.warning_with("pad_queries", message));
    }
    let unused = ["tls_servername", "tls"].into_iter().find(|option| context.word_of(option).is_some());
    if let Some(option) = unused
        && config.targets.iter().all(is_plain)
    {
        let message = format!("{option} has no effect: queries to these upstreams are not encrypted");
        let word = context.word_of(option).unwrap_or(&context.written.name);
        return Err(context.warning_at(word, message, "write the upstreams as `tls://ADDRESS`"));
    }
    let unused = ["doh_method", "http3"].into_iter().find(|option| context.word_of(option).is_some());
    if let Some(option) = unused
        && !config.targets.iter().any(|target| protocol(target) == Protocol::Https)
    {
        return Err(context.warning_with(option, format!("{option} has no effect without an `https://` upstream")));
    }
    let is_host = |word: &&Token| match Target::read(&word.text) {
        Ok(Target::Named { protocol, name, .. }) => protocol.is_encrypted() && !name.contains('/'),
        _ => false,
    };
    match context.written.args.iter().skip(1).find(is_host) {
        Some(word) if config.resolvers.is_empty() => {
            let message = format!("`{}` is looked up without encryption, by the resolver of the system", word.text);
            let help =
                "write `IP%NAME`, or set `resolver`; the lookup fails if the system resolves through this server";
            Err(context.warning_at(word, message, help))
        }
        _ => Ok(()),
    }
}

/// Returns true if queries to this upstream are certainly not encrypted. A file may name upstreams of any kind.
fn is_plain(target: &Target) -> bool {
    let is_file = matches!(target, Target::Named { name, .. } if name.contains('/'));
    !is_file && !protocol(target).is_encrypted()
}

const fn protocol(target: &Target) -> Protocol {
    let (Target::Address { protocol, .. } | Target::Named { protocol, .. }) = target;
    *protocol
}

static PROPERTIES: &[Property<Config>] = &[
    except("Names to leave to the next plugin or `forward` line, including all names below them."),
    Property {
        usage: Usage("force_tcp"),
        default: "off",
        doc: "Use TCP to upstreams even if the query came over UDP.",
        set: |config, _| {
            config.force_tcp = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("prefer_udp"),
        default: "off",
        doc: "Use UDP to upstreams even if the query came over TCP, and retry over TCP if the response is truncated.",
        set: |config, _| {
            config.prefer_udp = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("expire DURATION"),
        default: "10s",
        doc: "Time after which an idle connection is no longer used.",
        set: |config, args| {
            config.expire = args.duration()?;
            Ok(())
        },
    },
    Property {
        usage: Usage("max_age DURATION"),
        default: "0s",
        doc: "Age after which a connection is no longer used; 0s for no limit. Must not be shorter than `expire`.",
        set: |config, args| {
            config.max_age = args.duration()?;
            Ok(())
        },
    },
    Property {
        usage: Usage("max_idle_conns NUMBER"),
        default: "0",
        doc: "Maximum number of idle connections to keep per upstream; 0 for no limit.",
        set: |config, args| {
            config.max_idle_connections = args.number(0..)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("read_timeout DURATION"),
        default: "2s",
        doc: "Time to wait for the response of one upstream.",
        set: |config, args| {
            config.read_timeout = args.duration_above_zero()?;
            Ok(())
        },
    },
    Property {
        usage: Usage("max_fails NUMBER"),
        default: "2",
        doc: "Number of consecutive failed probes that an upstream may have; with one more it is down. 0: upstreams \
              are never down.",
        set: |config, args| {
            config.max_fails = args.number(0..)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("max_connect_attempts NUMBER"),
        default: "2 × upstreams",
        doc: "Number of failed attempts after which a query fails; 0: only the five-second timeout applies.",
        set: |config, args| {
            config.max_connect_attempts = Some(args.number(0..)?);
            Ok(())
        },
    },
    Property {
        usage: Usage("doh_method POST|GET"),
        default: "POST",
        doc: "HTTP method of queries to `https://` upstreams. HTTP caches can answer only GET.",
        set: |config, args| {
            config.method = args.choice(&[("POST", HttpMethod::Post), ("GET", HttpMethod::Get)])?;
            Ok(())
        },
    },
    Property {
        usage: Usage("http3"),
        default: "off",
        doc: "Ask `https://` upstreams over HTTP/3 after they have offered it with `Alt-Svc` (RFC 7838), at the same \
              address. A query that gets no reply in half of its time is sent over TCP again. CoreDNS does not have \
              this property.",
        set: |config, _| {
            config.http3 = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("pad_queries"),
        default: "off",
        doc: "Pads queries over TLS, HTTPS and QUIC to a multiple of 128 bytes (RFC 7830, RFC 8467 §4.1), and with it \
              asks upstreams to pad their responses. Health checks are not padded. CoreDNS does not have this \
              property.",
        set: |config, _| {
            config.pads_queries = true;
            Ok(())
        },
    },
    tls(
        "system CAs",
        "PEM files for upstreams over TLS, HTTPS and QUIC: the client certificate and its key, and the CA \
         certificates that upstreams are verified with.",
    ),
    tls_servername(
        "Name that the certificates of upstreams over TLS, HTTPS and QUIC must contain; without it, their IP address. \
         To set it for a single upstream, write `tls://IP%NAME`.",
    ),
    policy(),
    Property {
        usage: Usage("ask_all"),
        default: "off",
        doc: "Query all healthy upstreams at once and use the first NOERROR or NXDOMAIN response. CoreDNS does not \
              have this property.",
        set: |config, _| {
            config.ask_all = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("health_check DURATION [no_rec] [domain FQDN]"),
        default: "0.5s",
        doc: "Interval of probes to an upstream that has failed. `no_rec` clears the RD flag of probes, `domain` \
              queries another name than the root.",
        set: read_health_check,
    },
    Property {
        usage: Usage("max_concurrent NUMBER"),
        default: "0",
        doc: "Maximum number of concurrent queries; further ones are REFUSED. Of 16 or more, one client gets about \
              nine tenths, so that others have a share. 0 for no limit.",
        set: |config, args| {
            config.max_concurrent = args.number(0..)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("next RCODE..."),
        default: "",
        doc: "Try the next `forward` line that matches the name if the response has one of these codes.",
        set: |config, args| {
            let codes = rcodes(args)?;
            config.next.extend(codes);
            Ok(())
        },
    },
    Property {
        usage: Usage("next_on_nodata"),
        default: "off",
        doc: "Try the next `forward` line that matches the name if the response is NOERROR without records.",
        set: |config, _| {
            config.next_on_nodata = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("failfast_all_unhealthy_upstreams"),
        default: "off",
        doc: "Answer SERVFAIL at once if all upstreams are down, instead of trying one of them.",
        set: |config, _| {
            config.fail_fast = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("failover RCODE..."),
        default: "",
        doc: "Try another upstream if the response has one of these codes. The last upstream's response is returned in \
              any case.",
        set: |config, args| {
            let words = args.rest();
            let codes = rcodes(args)?;
            if let Some(at) = codes.iter().position(|code| *code == Rcode::NOERROR) {
                return Err(args.bad(&words[at], "a code to fail over on: NOERROR is a successful response"));
            }
            config.failover.extend(codes);
            Ok(())
        },
    },
    Property {
        usage: Usage("unwanted_reply_threshold NUMBER"),
        default: "1000",
        doc: "Number of replies with a wrong message ID or question from one upstream within a minute at which the \
              caches above are emptied, because some of their entries may be forged; 0: never. Every four failed \
              exchanges allow one more. CoreDNS does not have this property.",
        set: |config, args| {
            config.unwanted_reply_threshold = args.number(0..)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("use_caps_for_id"),
        default: "off",
        doc: "Gives names in queries over UDP random case, which replies must have too (0x20). A reply with another \
              case is used only if the upstream says the same three times in a row; for 15 minutes, it then gets \
              names as clients write them. CoreDNS does not have this property.",
        set: |config, _| {
            config.use_caps_for_id = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("send_cookie"),
        default: "off",
        doc: "Sends a DNS cookie (RFC 7873) with queries over UDP. After an upstream has returned one, a reply without \
              the cookie is not used, and the query is sent over TCP. CoreDNS does not have this property.",
        set: |config, _| {
            config.sends_cookies = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("source_address IP"),
        default: "",
        doc: "Source IP address of queries to upstreams.",
        set: |config, args| {
            config.source = Some(args.parse("an IP address")?);
            Ok(())
        },
    },
    Property {
        usage: Usage("resolver IP[:PORT]..."),
        default: "",
        doc: "DNS servers that look up the host names in TO. The default is the resolver of the system. The names are \
              complete: no search domain is appended.",
        set: |config, args| {
            let first = args.word()?;
            for word in core::iter::once(first).chain(args.take_rest()) {
                match Target::read(&word.text) {
                    Ok(Target::Address { address, .. }) => config.resolvers.push(address),
                    _ => return Err(args.bad(word, "an address")),
                }
            }
            Ok(())
        },
    },
];

fn read_health_check(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    config.health_check = args.duration()?;
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "no_rec" => config.probe_recursion = false,
            "domain" => {
                let name = args.next_word().ok_or_else(|| args.bad(word, "followed by a name"))?;
                config.probe_name = Name::from_text(&name.text).map_err(|_| args.bad(name, "a domain name"))?;
            }
            _ => return Err(args.bad(word, "`no_rec` or `domain`")),
        }
    }
    Ok(())
}

fn rcodes(args: &mut Args<'_>) -> Result<Vec<Rcode>, Problem> {
    let words = args.take_rest();
    words.iter().map(|word| word.text.parse().map_err(|_| args.bad(word, "a response code such as SERVFAIL"))).collect()
}
