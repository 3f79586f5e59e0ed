//! Access control: allows, refuses, filters or drops queries by client address and query type.

mod networks;

use core::net::IpAddr;

use config::options::{Args, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError, SiteInfo};
use engine::{Explanation, Hook, Hooks, Instant, Plugin, Query, ReasonCode, Response, Verdict, Worker, Zones};
use ipnet::IpNet;
use metrics::{Counter, Kind, Metric};
use wire::{EdeCode, Name, Rcode, Type};

use networks::Policies;
use plugin::PerSite;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "acl",
    "allow, refuse, filter or drop queries by client address and query type",
    Config::default,
    build,
)
.repeated()
.arguments("acl [ZONES...]", |config, args| {
    config.zones = args.zones()?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("allow [type TYPE...] [net SOURCE...]"),
        default: "",
        doc: "Allow these queries; later policies are not checked.",
        set: |config, args| config.add(Action::Allow, args),
    },
    Property {
        usage: Usage("block [type TYPE...] [net SOURCE...]"),
        default: "",
        doc: "Answer these queries with REFUSED and Extended DNS Error 15 (Blocked).",
        set: |config, args| config.add(Action::Block, args),
    },
    Property {
        usage: Usage("filter [type TYPE...] [net SOURCE...]"),
        default: "",
        doc: "Answer these queries with NOERROR, no records, and Extended DNS Error 17 (Filtered). UPDATE messages \
              are refused.",
        set: |config, args| config.add(Action::Filter, args),
    },
    Property {
        usage: Usage("drop [type TYPE...] [net SOURCE...]"),
        default: "",
        doc: "Do not answer these queries. The client times out.",
        set: |config, args| config.add(Action::Drop, args),
    },
])
.other_lines("allow|block|filter|drop [type TYPE...] [net SOURCE...]", read_other)
.metrics(&METRICS)
.role(|line| Role::new(Effect::Aside, &line.config.zones));

const SITE: [&str; 3] = ["server", "zone", "view"];

static BLOCKED: Metric = Metric {
    name: "coredns_acl_blocked_requests_total",
    help: "Counter of DNS requests being blocked.",
    kind: Kind::Counter,
    labels: &SITE,
};
static FILTERED: Metric = Metric {
    name: "coredns_acl_filtered_requests_total",
    help: "Counter of DNS requests being filtered.",
    kind: Kind::Counter,
    labels: &SITE,
};
static ALLOWED: Metric = Metric {
    name: "coredns_acl_allowed_requests_total",
    help: "Counter of DNS requests being allowed.",
    kind: Kind::Counter,
    labels: &["server", "view"],
};
static DROPPED: Metric = Metric {
    name: "coredns_acl_dropped_requests_total",
    help: "Counter of DNS requests being dropped.",
    kind: Kind::Counter,
    labels: &SITE,
};
static METRICS: [&Metric; 4] = [&BLOCKED, &FILTERED, &ALLOWED, &DROPPED];

/// One `acl` line.
#[derive(Default)]
pub struct Config {
    zones: Vec<Name>,
    policies: Vec<Policy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Allow,
    Block,
    Filter,
    Drop,
}

const ACTIONS: [(&str, Action); 4] =
    [("allow", Action::Allow), ("block", Action::Block), ("filter", Action::Filter), ("drop", Action::Drop)];

/// One policy of a block.
struct Policy {
    action: Action,
    /// Types that the policy applies to. Empty means all.
    types: Vec<Type>,
    /// Networks that the policy applies to. Empty means all.
    networks: Vec<IpNet>,
    /// Its line in the Corefile, for people.
    text: Box<str>,
}

/// Takes a policy whose action is not in lower case. CoreDNS ignores the case.
fn read_other(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let name = args.name();
    let known = ACTIONS.iter().find(|(known, _)| name.text.eq_ignore_ascii_case(known));
    let (_, action) = known.ok_or_else(|| args.bad(name, "one of `allow`, `block`, `filter`, `drop`"))?;
    config.add(*action, args)
}

impl Config {
    fn add(&mut self, action: Action, args: &mut Args<'_>) -> Result<(), Problem> {
        let words = core::iter::once(args.name()).chain(args.rest()).map(|word| word.text.as_str());
        let text = words.collect::<Vec<_>>().join(" ").into();
        let mut policy = Policy { action, types: Vec::new(), networks: Vec::new(), text };
        let (mut all_types, mut all_networks) = (false, false);
        while let Some(word) = args.next_word() {
            match word.text.to_ascii_lowercase().as_str() {
                "type" => all_types |= read_types(&mut policy.types, args)?,
                "net" => all_networks |= read_networks(&mut policy.networks, args)?,
                _ => return Err(args.bad(word, "one of `type`, `net`")),
            }
        }
        if all_types {
            policy.types.clear();
        }
        if all_networks {
            policy.networks.clear();
        }
        self.policies.push(policy);
        Ok(())
    }
}

/// Returns true if a word starts a list, so that the list before it ends.
fn begins_list(text: &str) -> bool {
    text.eq_ignore_ascii_case("type") || text.eq_ignore_ascii_case("net")
}

/// Takes types up to the next list. Returns true if `*` is among them.
fn read_types(types: &mut Vec<Type>, args: &mut Args<'_>) -> Result<bool, Problem> {
    read_list(args, "type", |args, word| {
        let known = word.text.parse().ok().filter(|known: &Type| known.mnemonic() == Some(&word.text));
        types.push(known.ok_or_else(|| args.bad(word, "a type in capitals such as `AAAA`"))?);
        Ok(())
    })
}

/// Takes networks up to the next list. Returns true if `*` is among them.
fn read_networks(networks: &mut Vec<IpNet>, args: &mut Args<'_>) -> Result<bool, Problem> {
    read_list(args, "net", |args, word| {
        let network = word.text.parse().or_else(|_| word.text.parse::<IpAddr>().map(IpNet::from));
        networks.push(network.map_err(|_| args.bad(word, "an address or a network such as `10.0.0.0/8`"))?);
        Ok(())
    })
}

fn read_list(
    args: &mut Args<'_>,
    what: &str,
    mut take: impl FnMut(&Args<'_>, &corefile::Token) -> Result<(), Problem>,
) -> Result<bool, Problem> {
    let (mut count, mut all) = (0, false);
    while args.rest().first().is_some_and(|word| !begins_list(&word.text)) {
        let word = args.word()?;
        count += 1;
        match word.text.as_str() {
            "*" => all = true,
            _ => take(args, word)?,
        }
    }
    if count == 0 {
        return Err(args.problem(format!("`{what}` is not followed by a value: list some, or write `*` for all")));
    }
    Ok(all)
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let rule =
        |config: Config| Rule { zones: setup.zones_or_keys(&config.zones), policies: Policies::new(config.policies) };
    let rules: Vec<Rule> = configs.into_iter().map(rule).collect();
    let metrics = PerSite::new(setup.block, |site| rules.iter().map(|rule| rule.metrics(site, setup)).collect());
    let allowed = PerSite::new(setup.block, |site| setup.registry.counter(&ALLOWED, &[&site.server, &site.view]));
    Ok(Some(Part::new(Acl { rules, metrics, allowed }, Hooks::DOWN.with_updates())))
}

struct Rule {
    zones: Zones,
    policies: Policies,
}

/// Counters for one zone of a line.
struct ZoneMetrics {
    blocked: Counter,
    filtered: Counter,
    dropped: Counter,
}

impl Rule {
    fn metrics(&self, site: &SiteInfo, setup: &Setup<'_>) -> Vec<ZoneMetrics> {
        let of_zone = |zone: &Name| {
            let zone = zone.to_string();
            let counter = |metric| setup.registry.counter(metric, &[&site.server, &zone, &site.view]);
            ZoneMetrics { blocked: counter(&BLOCKED), filtered: counter(&FILTERED), dropped: counter(&DROPPED) }
        };
        self.zones.names().iter().map(of_zone).collect()
    }
}

struct Acl {
    rules: Vec<Rule>,
    /// Counters by line and zone.
    metrics: PerSite<Vec<Vec<ZoneMetrics>>>,
    allowed: PerSite<Counter>,
}

impl Acl {
    /// Returns the policy that decides about a query, with the index of its line and of the zone, if there is one.
    fn decide(&self, query: &Query) -> Option<(usize, usize, &networks::Rule)> {
        self.rules.iter().enumerate().find_map(|(at, rule)| {
            let zone = rule.zones.find(query.key())?;
            Some((at, zone, rule.policies.decide(query.peer.address.ip(), query.qtype)?))
        })
    }
}

/// Codes of the reasons.
pub(crate) static REASONS: [&ReasonCode; 1] = [&DENIED];

static DENIED: ReasonCode = ReasonCode {
    code: "PE-L01",
    meaning: "A policy of *acl* refuses, filters or drops the query",
    advice: "If the client may ask, put an `allow` policy for it before the one that decides",
};

impl Plugin for Acl {
    fn reads_client(&self, query: &Query) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.zones.find(query.key()).is_some());
        rules.any(|rule| rule.policies.reads_client(query.qtype))
    }

    fn explain(&self, _: Hook, query: &Query, _: &Response, _: Instant) -> Option<Explanation> {
        let (.., rule) = self.decide(query).filter(|(.., rule)| rule.action != Action::Allow)?;
        let client = query.peer.address.ip();
        let applies = format!("the policy `{}` applies to", rule.text);
        // `portolan explain` without `--from` has no client.
        let text = if client.is_unspecified() {
            format!("{applies} a client without an address; name one with `--from`")
        } else {
            format!("{applies} {client}")
        };
        Some(Explanation::new(format!("policy `{}`", rule.text)).because(&DENIED, text))
    }

    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let decided = self.decide(query).map(|(line, zone, rule)| (line, zone, rule.action));
        let Some((rule, zone, action)) = decided.filter(|(.., action)| *action != Action::Allow) else {
            if let Some(counter) = self.allowed.of(query) {
                worker.counters.count(*counter);
            }
            return Verdict::Pass;
        };
        let metrics = self.metrics.of(query).and_then(|lines| lines.get(rule)?.get(zone));
        let counter = metrics.map(|metrics| match action {
            Action::Filter => metrics.filtered,
            Action::Drop => metrics.dropped,
            Action::Block | Action::Allow => metrics.blocked,
        });
        counter.into_iter().for_each(|counter| worker.counters.count(counter));
        response.set_local();
        match action {
            Action::Drop => return Verdict::Drop,
            Action::Filter if !query.is_update() => {
                response.set_ede(EdeCode::FILTERED, "filtered by the access list");
            }
            // NOERROR would confirm an update that is not applied.
            Action::Filter | Action::Block | Action::Allow => {
                response.set_rcode(Rcode::REFUSED);
                response.set_ede(EdeCode::BLOCKED, "blocked by the access list");
            }
        }
        Verdict::Done
    }
}
