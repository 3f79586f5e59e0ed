//! Walks the search path of clients for them: what a client would ask in five rounds is answered in one.
//!
//! The question goes down as it came; only if the name is denied does the search begin, on the way up, with questions to
//! the steps below, one after the other. `path` says what they are and for whom they are asked.

mod config;
mod path;

use std::path::Path;
use std::sync::Arc;

use engine::metrics::{Counter, Kind, Metric};
use engine::setup::{Part, Setup, SetupError};
use engine::{Ask, Hooks, Plugin, Query, Response, Verdict, Whom, Worker};
use wire::{EdeCode, Name, Owner, Rcode, Section, Type};

pub(crate) use config::MANIFEST;

use crate::exposed::Exposed;
use crate::sites::PerSite;
use config::{Clients, Config, Source};
use path::{ClusterPath, SearchPath, search_list};

static SUCCESSES: Metric = Metric {
    name: "coredns_autopath_success_total",
    help: "Counter of requests that did autopath.",
    kind: Kind::Counter,
    labels: &["server"],
};

/// Where the search list of this machine is: pods have it behind the domains of the cluster.
const NODE: &str = "/etc/resolv.conf";

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    // As in CoreDNS the last line counts.
    let Some(config) = configs.into_iter().next_back() else { return Ok(None) };
    let Some(path) = search_path(&config, setup)? else { return Ok(None) };
    let successes = PerSite::new(setup.block, |site| setup.registry.counter(&SUCCESSES, &[&site.server]));
    let plugin = Autopath { path, successes };
    let zones = setup.zones_or_keys(&config.zones);
    Ok(Some(Part { zones: Some(zones), ..Part::new(plugin, Hooks::UP) }))
}

/// The path that a line names; `None` if there is nobody for whom it could be walked.
fn search_path(config: &Config, setup: &mut Setup<'_>) -> Result<Option<SearchPath>, SetupError> {
    let name = match &config.source {
        Source::None => return Ok(None),
        Source::File(name) => return fixed_path(name, setup).map(Some),
        Source::Directive(name) => name.as_str(),
    };
    let idle = match setup.below.find::<Arc<Exposed>>() {
        Some(exposed) if name == "kubernetes" && (exposed.has_pods || config.clients == Clients::Any) => {
            return Ok(Some(cluster_path(exposed, config.clients, setup)));
        }
        Some(_) if name == "kubernetes" => {
            "@kubernetes does nothing without `pods verified` there; `clients any` here goes without"
        }
        _ => "nothing is searched: the directive that is to have the paths is not in this server block",
    };
    setup.warn(idle);
    Ok(None)
}

fn fixed_path(name: &str, setup: &Setup<'_>) -> Result<SearchPath, SetupError> {
    let octets = setup.files.read(&setup.path(name));
    let octets = octets.map_err(|error| SetupError::new(format!("failed to parse \"{name}\": {error}")))?;
    let mut domains = search_list(&octets);
    domains.push(Name::root());
    Ok(SearchPath::Fixed(domains))
}

fn cluster_path(exposed: Arc<Exposed>, clients: Clients, setup: &Setup<'_>) -> SearchPath {
    let mut node = search_list(&setup.files.read(Path::new(NODE)).unwrap_or_default());
    // This server's own pod may have a path with its own namespace; that is nobody else's.
    node.retain(|domain| !domain.as_ref().is_root() && !exposed.zones.contain(domain.as_ref()));
    node.push(Name::root());
    SearchPath::Cluster(ClusterPath { exposed, clients, node })
}

struct Autopath {
    path: SearchPath,
    successes: PerSite<Counter>,
}

/// What was asked last, and at which position of the path: the note of a query.
#[derive(Clone, Copy)]
struct Progress {
    asked: Asked,
    position: usize,
}

/// What a question of this plugin is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// A name of the path.
    Name,
    /// The other kind of address of such a name, which has none of the kind that the client wants.
    Sibling,
    /// Whether the namespace is a top-level domain.
    Domain,
}

/// What the steps below say of a name.
enum Found {
    /// There is no such name, or no step below has an answer for it.
    Denied,
    /// The name has no such record.
    Empty,
    /// Something that ends the search: records, or a failure that stands in a message.
    Answer,
}

impl Plugin for Autopath {
    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        // Another plugin knows the whole name that it asks for.
        if query.is_own() || response.failure().is_some() || response.is_dropped() {
            return Verdict::Pass;
        }
        let Some(base) = self.path.base(query) else { return Verdict::Pass };
        if !matches!(found(response), Found::Denied) {
            // No records: the name is there all the same, and the search ends at it.
            self.count(query, worker);
            return Verdict::Pass;
        }
        match self.path.doubtful(query, base) {
            Some(domain) => {
                let asked = Ask { name: domain, qtype: Type::NS, whom: Whom::Below };
                ask(query, Progress { asked: Asked::Domain, position: 0 }, asked)
            }
            None => self.try_from(query, base, 1),
        }
    }

    fn on_subanswer(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Verdict {
        let Progress { asked, position } = Progress::of(query);
        let Some(base) = self.path.base(query) else { return Verdict::Pass };
        if sub.is_dropped() {
            return Verdict::Drop;
        }
        match (asked, found(sub)) {
            (_, Found::Denied) => self.try_from(query, base, position + 1),
            // A top-level domain, as far as anybody knows: the client may have meant a name in it.
            (Asked::Domain, _) => Verdict::Pass,
            (_, Found::Answer) if sub.failure().is_some() => {
                sub.failure().cloned().map_or(Verdict::Done, Verdict::Fail)
            }
            // Nothing of either kind: this is no name that the client means.
            (Asked::Sibling, Found::Empty) => self.try_from(query, base, position + 1),
            (Asked::Name, Found::Empty) if query.qtype.is_address() => {
                self.take_over(query, base, sub, response);
                self.ask_sibling(query, base, position)
            }
            (Asked::Sibling, Found::Answer) => self.succeed(query, worker),
            (Asked::Name, _) => {
                self.take_over(query, base, sub, response);
                self.succeed(query, worker)
            }
        }
    }
}

impl Autopath {
    /// Asks for the name at a position of the path or the next one that can be asked for. Behind the end what stands in
    /// the response is the answer: the first denial or, if there was one, the last name without records.
    fn try_from(&self, query: &mut Query, base: usize, mut position: usize) -> Verdict {
        let Some(name) = self.path.name_at(query, base, &mut position) else { return Verdict::Pass };
        let asked = Ask { name, qtype: query.qtype, whom: Whom::Below };
        ask(query, Progress { asked: Asked::Name, position }, asked)
    }

    /// Asks whether a name without addresses of one family has such of the other: then the search ends at it for both,
    /// or a client that asks for both would get addresses of two names.
    fn ask_sibling(&self, query: &mut Query, base: usize, mut position: usize) -> Verdict {
        let Some(name) = self.path.name_at(query, base, &mut position) else { return Verdict::Pass };
        let qtype = if query.qtype == Type::A { Type::AAAA } else { Type::A };
        ask(query, Progress { asked: Asked::Sibling, position }, Ask { name, qtype, whom: Whom::Below })
    }

    /// Answers with what was found, as an alias of the name where that was found.
    fn take_over(&self, query: &Query, base: usize, sub: &Response, response: &mut Response) {
        response.begin(query);
        response.set_rcode(sub.rcode());
        let (theirs, own) = (sub.message.flags(), response.message.header.flags);
        response.message.header.flags =
            own.with_authoritative(theirs.authoritative()).with_recursion_available(theirs.recursion_available());
        if let Some(code) = sub.ede() {
            response.set_ede(code, "");
        }
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

fn ask(query: &mut Query, progress: Progress, ask: Ask) -> Verdict {
    progress.note(query);
    Verdict::Ask(Box::new(ask))
}

fn found(response: &Response) -> Found {
    let has_records = response.message.section(Section::Answer).next().is_some() || response.message.is_truncated();
    // Nobody below has the zone: as good as a denial.
    let nobody_to_ask = response.failure().is_some_and(|failure| failure.ede == EdeCode::NOT_AUTHORITATIVE);
    match response.rcode() {
        Rcode::NXDOMAIN => Found::Denied,
        _ if nobody_to_ask || is_bare_refusal(response) => Found::Denied,
        Rcode::NOERROR if !has_records => Found::Empty,
        _ => Found::Answer,
    }
}

/// Reports whether a step below refused the name without a cause, as `hosts` and `template` do with names that they do not have.
/// CoreDNS goes on after these, and ends at a SERVFAIL of an upstream or of a cluster that is not known yet.
fn is_bare_refusal(response: &Response) -> bool {
    let refuses = matches!(response.rcode(), Rcode::SERVFAIL | Rcode::REFUSED | Rcode::FORMERR | Rcode::NOTIMP);
    refuses && response.is_local() && response.failure().is_none()
}

impl Progress {
    fn of(query: &Query) -> Progress {
        let note = query.note();
        let asked = [Asked::Name, Asked::Sibling, Asked::Domain];
        Progress {
            asked: asked.get((note & 3) as usize).copied().unwrap_or(Asked::Name),
            position: usize::try_from(note >> 2).unwrap_or(usize::MAX),
        }
    }

    fn note(self, query: &mut Query) {
        query.set_note((self.position as u64) << 2 | self.asked as u64);
    }
}
