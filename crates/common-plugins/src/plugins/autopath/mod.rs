//! Resolves the search path of clients on the server: one response replaces up to five queries of the client.
//!
//! The original query goes down the chain first. Only if its name is denied does the search start, on the way up, with
//! one subquery after the other: to the plugins below or, for a name of another server block, to that block. `path`
//! decides which names are tried and for which clients.

mod manifest;
mod path;

use std::path::Path;
use std::sync::Arc;

use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use metrics::{Counter, Kind, Metric};
use upstream::search_list;
use wire::{EdeCode, Name, Owner, Rcode, Section, Type};

pub(crate) use manifest::MANIFEST;

use crate::shared::cluster_view::Exposed;
use crate::shared::last_good::{self, Wanted};
use crate::shared::option_helpers::FixedSearch;
use manifest::{Clients, Config, Source};
use path::{ClusterPath, SearchPath};
use plugin::PerSite;

static SUCCESSES: Metric = Metric {
    name: "coredns_autopath_success_total",
    help: "Counter of requests that did autopath.",
    kind: Kind::Counter,
    labels: &["server"],
};

/// File with the search list of this machine. The kubelet appends that list to the cluster domains of Pods.
const NODE: &str = "/etc/resolv.conf";

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    // As in CoreDNS, the last line wins.
    let Some(config) = configs.into_iter().next_back() else { return Ok(None) };
    let Some(path) = search_path(&config, setup)? else { return Ok(None) };
    let successes = PerSite::new(setup.block, |site| setup.registry.counter(&SUCCESSES, &[&site.server]));
    let plugin = Autopath { path, successes };
    let zones = setup.zones_or_keys(&config.zones);
    Ok(Some(Part { zones: Some(zones), ..Part::new(plugin, Hooks::UP) }))
}

/// Returns the search path of a line, or `None` if no client could use it.
fn search_path(config: &Config, setup: &mut Setup<'_>) -> Result<Option<SearchPath>, SetupError> {
    let name = match &config.source {
        Source::None => return Ok(None),
        Source::File(name) => return fixed_path(name, setup).map(Some),
        Source::Directive(name) => name.as_str(),
    };
    if name == "erratic"
        && let Some(FixedSearch(domains)) = setup.below.find::<FixedSearch>()
    {
        let domains = domains.iter().filter_map(|domain| Name::from_text(domain).ok()).collect();
        return Ok(Some(SearchPath::Fixed(domains)));
    }
    let idle = match setup.below.find::<Arc<Exposed>>() {
        Some(exposed) if name == "kubernetes" && (exposed.has_pods || config.clients == Clients::Any) => {
            return Ok(Some(cluster_path(exposed, config.clients, setup)));
        }
        Some(_) if name == "kubernetes" => {
            "`@kubernetes` has no effect without `pods verified` in `kubernetes`; add it, or `clients any` here"
        }
        _ => "no search path: the directive that provides it is not in this server block",
    };
    setup.warn(idle);
    Ok(None)
}

/// Content of a file such as `resolv.conf` with a search path.
static SEARCH: Wanted<Vec<u8>> =
    Wanted { what: "a line `search DOMAIN...`", lacks: |bytes| search_list(bytes).is_empty() };

fn fixed_path(name: &str, setup: &mut Setup<'_>) -> Result<SearchPath, SetupError> {
    let bytes = last_good::read(name, &SEARCH, setup)?;
    let mut domains = search_list(&bytes);
    domains.push(Name::root());
    Ok(SearchPath::Fixed(domains))
}

fn cluster_path(exposed: Arc<Exposed>, clients: Clients, setup: &Setup<'_>) -> SearchPath {
    let mut node = search_list(&setup.files.read(Path::new(NODE)).unwrap_or_default());
    // The list of this server's own Pod may contain its own namespace, which does not apply to other clients.
    node.retain(|domain| !domain.as_ref().is_root() && !exposed.zones.contain(domain.as_ref()));
    node.push(Name::root());
    SearchPath::Cluster(ClusterPath { exposed, clients, node })
}

struct Autopath {
    path: SearchPath,
    successes: PerSite<Counter>,
}

/// State of a search, kept in the note of the query: the last subquery and its position in the path.
#[derive(Clone, Copy)]
struct Progress {
    purpose: Purpose,
    position: usize,
}

/// Purpose of a subquery.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A name of the path.
    Name,
    /// The other address type of such a name, which has no address of the queried type.
    Sibling,
    /// Check if the namespace is also a top-level domain.
    Domain,
}

/// Outcome of a lookup in the plugins below.
enum LookupResult {
    /// The name does not exist, or no plugin below serves it.
    Denied,
    /// The name exists but has no such record.
    Empty,
    /// The search ends here: there are records, or the lookup failed.
    Answer,
}

impl Plugin for Autopath {
    fn reads_client(&self, query: &Query) -> bool {
        !query.is_own() && self.path.reads_client(query)
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        // The subqueries of other plugins contain complete names.
        if query.is_own() || response.failure().is_some() || response.is_dropped() {
            return Verdict::Pass;
        }
        let Some(base) = self.path.base(query) else { return Verdict::Pass };
        if !matches!(found(response), LookupResult::Denied) {
            // Even without records the name exists, so the search ends at it.
            self.count(query, worker);
            return Verdict::Pass;
        }
        match self.path.doubtful(query, base) {
            Some(domain) => {
                let subquery = Subquery { name: domain, qtype: Type::NS, target: SubqueryTarget::BelowOrOther };
                ask(query, Progress { purpose: Purpose::Domain, position: 0 }, subquery)
            }
            None => self.try_from(query, base, 1),
        }
    }

    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Verdict {
        let Progress { purpose, position } = Progress::of(query);
        let Some(base) = self.path.base(query) else { return Verdict::Pass };
        if sub.is_dropped() {
            return Verdict::Drop;
        }
        match (purpose, found(sub)) {
            (_, LookupResult::Denied) => self.try_from(query, base, position + 1),
            // It may be a top-level domain. The client may have meant a name in it.
            (Purpose::Domain, _) => Verdict::Pass,
            (_, LookupResult::Answer) if sub.failure().is_some() => {
                sub.failure().cloned().map_or(Verdict::Done, Verdict::Fail)
            }
            // No address of either type: the client cannot mean this name.
            (Purpose::Sibling, LookupResult::Empty) => self.try_from(query, base, position + 1),
            (Purpose::Name, LookupResult::Empty) if query.qtype.is_address() => {
                self.replace_response(query, base, sub, response);
                self.ask_sibling(query, base, position)
            }
            (Purpose::Sibling, LookupResult::Answer) => self.succeed(query, worker),
            (Purpose::Name, _) => {
                self.replace_response(query, base, sub, response);
                self.succeed(query, worker)
            }
        }
    }
}

impl Autopath {
    /// Sends a subquery for the name at a position of the path, or for the next valid one. At the end of the path the
    /// response stays as it is: the first denial or, if there was one, the last name without records.
    fn try_from(&self, query: &mut Query, base: usize, mut position: usize) -> Verdict {
        let Some(name) = self.path.name_at(query, base, &mut position) else { return Verdict::Pass };
        let subquery = Subquery { name, qtype: query.qtype, target: SubqueryTarget::BelowOrOther };
        ask(query, Progress { purpose: Purpose::Name, position }, subquery)
    }

    /// Checks if a name without addresses of one family has addresses of the other. If so, the search ends at it for
    /// both types. Otherwise a client that queries A and AAAA could get addresses of two different names.
    fn ask_sibling(&self, query: &mut Query, base: usize, mut position: usize) -> Verdict {
        let Some(name) = self.path.name_at(query, base, &mut position) else { return Verdict::Pass };
        let qtype = if query.qtype == Type::A { Type::AAAA } else { Type::A };
        ask(
            query,
            Progress { purpose: Purpose::Sibling, position },
            Subquery { name, qtype, target: SubqueryTarget::BelowOrOther },
        )
    }

    /// Replaces the response by the subresponse, after a CNAME record from the query name to the name that was found.
    fn replace_response(&self, query: &Query, base: usize, sub: &Response, response: &mut Response) {
        response.begin(query);
        response.set_rcode(sub.rcode());
        let (theirs, own) = (sub.message.flags(), response.message.header.flags);
        response.message.header.flags =
            own.with_authoritative(theirs.authoritative()).with_recursion_available(theirs.recursion_available());
        response.copy_ede(sub);
        let mut position = Progress::of(query).position;
        let first = sub.message.section(Section::Answer).next();
        if let (Some(first), Some(name)) = (first, self.path.name_at(query, base, &mut position)) {
            let fields = (Type::CNAME, sub.message.ttl(first));
            response.message.push_name(Section::Answer, Owner::Question, fields, name.as_ref());
        }
        for mark in sub.message.marks() {
            if response.message.push_record(mark.section, &sub.message.record(*mark)).is_err() {
                break;
            }
        }
        if sub.message.is_truncated() {
            response.message.header.flags = response.message.header.flags.with_truncated(true);
        }
    }

    fn succeed(&self, query: &Query, worker: &mut Worker) -> Verdict {
        self.count(query, worker);
        Verdict::Done
    }

    fn count(&self, query: &Query, worker: &mut Worker) {
        if let Some(counter) = self.successes.of(query) {
            worker.counters.count(*counter);
        }
    }
}

fn ask(query: &mut Query, progress: Progress, ask: Subquery) -> Verdict {
    progress.note(query);
    Verdict::Subquery(Box::new(ask))
}

fn found(response: &Response) -> LookupResult {
    let has_records = response.message.section(Section::Answer).next().is_some() || response.message.is_truncated();
    // No plugin below serves the zone. That counts as a denial.
    let nobody_to_ask = response.failure().is_some_and(|failure| failure.ede == EdeCode::NOT_AUTHORITATIVE);
    match response.rcode() {
        Rcode::NXDOMAIN => LookupResult::Denied,
        _ if is_by_policy(response) => LookupResult::Answer,
        // A failure with records is about them, such as aliases that form a loop.
        _ if nobody_to_ask || is_bare_refusal(response) && !has_records => LookupResult::Denied,
        Rcode::NOERROR if !has_records => LookupResult::Empty,
        _ => LookupResult::Answer,
    }
}

/// Returns true if a policy of this server, such as *acl*, blocks or filters the name. A later name of the path must
/// not replace that.
fn is_by_policy(response: &Response) -> bool {
    response.is_local() && matches!(response.ede(), Some(EdeCode::BLOCKED | EdeCode::FILTERED))
}

/// Returns true if a plugin below refused the name without a cause, as `hosts` and `template` do for names that they do
/// not have. CoreDNS continues after these, and stops at a SERVFAIL of an upstream or of a cluster that has not been
/// listed yet.
fn is_bare_refusal(response: &Response) -> bool {
    let refuses = matches!(response.rcode(), Rcode::SERVFAIL | Rcode::REFUSED | Rcode::FORMERR | Rcode::NOTIMP);
    refuses && response.is_local() && response.failure().is_none()
}

impl Progress {
    fn of(query: &Query) -> Progress {
        let note = query.note();
        let purposes = [Purpose::Name, Purpose::Sibling, Purpose::Domain];
        Progress {
            purpose: purposes.get((note & 3) as usize).copied().unwrap_or(Purpose::Name),
            position: usize::try_from(note >> 2).unwrap_or(usize::MAX),
        }
    }

    fn note(self, query: &mut Query) {
        query.set_note((self.position as u64) << 2 | self.purpose as u64);
    }
}
