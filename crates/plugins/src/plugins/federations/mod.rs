//! Names of federated Services (Kubernetes Federation v1). `SERVICE.NAMESPACE.FEDERATION.svc.ZONE` is an alias of the
//! local Service if that has endpoints. Otherwise it is an alias of the federation's name for the Service in this
//! cluster's zone and region.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::{ClusterHandle, Clusters, Index, Kind, Kinds, Location, Request, Service, ServiceKind};
use config::options::{Args, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::{Failure, Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use std::rc::Rc;
use wire::{EdeCode, Name, NameError, NameRef, Owner, Section, Type};

use common_plugins::shared::cluster_view::{Exposed, is_reverse, not_ready};
use common_plugins::shared::service_records::{end_alias, labels_of};

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "federations",
    "answer names of Kubernetes Federation v1",
    || Config { zones: Vec::new(), federations: BTreeMap::new(), location: None, ttl: TTL },
    build,
)
.arguments("federations [ZONES...]", |config, args| {
    config.zones = args.zones()?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("place ZONE REGION"),
        default: "from node labels",
        doc: "Topology zone and region of this cluster. The default is taken from the labels of the nodes.",
        set: |config, args| {
            config.location = Some([label(args)?, label(args)?]);
            Ok(())
        },
    },
    Property {
        usage: Usage("ttl SECONDS"),
        default: "30",
        doc: "TTL of the aliases in seconds, 0 to 3600.",
        set: |config, args| {
            config.ttl = args.number(0..=TTL_MAX)?;
            Ok(())
        },
    },
])
.other_lines("FEDERATION DOMAIN", read_federation)
.check(|context| match context.block.directives.contains(&"kubernetes") {
    true => Ok(()),
    false => Err(Box::new(context.problem(NO_CLUSTER).with_help(BESIDE))),
})
.asks_server()
.role(|line| Role::new(Effect::AnswersSome, &line.config.zones));

const NO_CLUSTER: &str = "there is no cluster to look up Services in";
const BESIDE: &str = "add `kubernetes` to this server block";
/// Default TTL of kube-dns.
const TTL: u32 = 30;
const TTL_MAX: u32 = 3600;
/// Maximum number of federations per directive, far more than are in use: Federation v1 has been discontinued.
const FEDERATIONS_MAX: usize = 100;
/// Label below which Services are.
const SERVICES: &[u8] = b"svc";

pub struct Config {
    zones: Vec<Name>,
    federations: BTreeMap<Vec<u8>, Name>,
    location: Option<[String; 2]>,
    ttl: u32,
}

/// Parses `NAME DOMAIN`.
fn read_federation(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let name = args.name();
    let is_label = Name::root().push_label(name.text.as_bytes()).is_ok() && !name.text.contains('.');
    if !is_label {
        return Err(args.bad(name, "the name of a federation"));
    }
    let word = args.word()?;
    let domain = Name::from_text(&word.text).map_err(|_| args.bad(word, "a domain"))?;
    if config.federations.len() >= FEDERATIONS_MAX {
        return Err(args.bad(name, &format!("one of at most {FEDERATIONS_MAX} federations")));
    }
    config.federations.insert(name.text.to_ascii_lowercase().into_bytes(), domain);
    Ok(())
}

fn label(args: &mut Args<'_>) -> Result<String, Problem> {
    let word = args.word()?;
    match Name::root().push_label(word.text.as_bytes()) {
        Ok(()) => Ok(word.text.clone()),
        Err(_) => Err(args.bad(word, "a label")),
    }
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let no_cluster = || SetupError::new(NO_CLUSTER).with_help(BESIDE).missing("kubernetes");
    let exposed = setup.below.find::<Arc<Exposed>>().ok_or_else(no_cluster)?;
    let clusters: Option<Rc<dyn Clusters>> = setup.process.find();
    let handle = match (&config.location, clusters) {
        (None, Some(clusters)) => {
            let handle = clusters.follow(&Request::of_location(exposed.source.clone()));
            Some(handle.map_err(SetupError::from_error)?)
        }
        _ => None,
    };
    let named = setup.zones_or_keys(&config.zones);
    let zones = named.names().iter().filter(|zone| !is_reverse(zone.as_ref())).cloned().collect();
    let location = config.location.map(|[zone, region]| Location { zone: zone.into(), region: region.into() });
    let plugin = Federation { exposed, handle, location, federations: config.federations, ttl: config.ttl };
    Ok(Some(Part { zones: Some(zones), ..Part::new(plugin, Hooks::DOWN) }))
}

struct Federation {
    exposed: Arc<Exposed>,
    /// Watch for the location of the cluster, unless it is configured.
    handle: Option<Arc<dyn ClusterHandle>>,
    location: Option<Location>,
    federations: BTreeMap<Vec<u8>, Name>,
    ttl: u32,
}

/// A parsed name of a federated Service.
struct Federated<'a> {
    service: &'a [u8],
    namespace: &'a [u8],
    federation: &'a [u8],
    domain: &'a Name,
}

/// Kinds that must have been listed before a Service can be considered absent.
const NEEDED: Kinds = Kinds::of(&[Kind::Namespace, Kind::Service, Kind::EndpointSlice]);

impl Plugin for Federation {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        let key = query.key();
        let Some(federated) = self.read(&key.as_bytes()[..query.zone_at()]) else { return Verdict::Pass };
        if query.qtype.is_transfer() || self.is_of_cluster(&federated) {
            return Verdict::Pass;
        }
        let target = match self.target(&federated, query.zone()) {
            Ok(Ok(target)) => target,
            // The target would be too long for a name.
            Ok(Err(_)) => return Verdict::Pass,
            Err(failure) => return Verdict::Fail(failure),
        };
        response.set_authoritative(true);
        response.message.push_name(Section::Answer, Owner::Question, (Type::CNAME, self.ttl), target.as_ref());
        if query.qtype == Type::CNAME {
            response.set_local();
            return Verdict::Done;
        }
        Verdict::Subquery(Box::new(Subquery { name: target, qtype: query.qtype, target: SubqueryTarget::Top }))
    }

    fn on_subresponse(&self, _: &mut Query, sub: &mut Response, response: &mut Response, _: &mut Worker) -> Verdict {
        end_alias(sub, response)
    }
}

impl Federation {
    /// Parses the labels before the zone.
    fn read<'a>(&'a self, prefix: &'a [u8]) -> Option<Federated<'a>> {
        let mut labels = labels_of(prefix);
        let (service, namespace, federation) = (labels.next()?, labels.next()?, labels.next()?);
        let is_whole = labels.next()? == SERVICES && labels.next().is_none();
        let is_plain = |label: &[u8]| !label.starts_with(b"_") && label != b"*";
        let domain = self.federations.get(federation)?;
        let fits = is_whole && is_plain(service) && is_plain(namespace);
        fits.then_some(Federated { service, namespace, federation, domain })
    }

    /// Returns true if the name is that of a local endpoint, because a namespace has the same name as the federation.
    /// kube-dns hid such endpoints.
    fn is_of_cluster(&self, name: &Federated<'_>) -> bool {
        self.exposed.shows(name.federation)
            && self.exposed.index.service(name.federation, name.namespace, |_| ()).is_some()
    }

    /// Returns the target of the alias.
    fn target(&self, name: &Federated<'_>, zone: NameRef<'_>) -> Result<Result<Name, NameError>, Failure> {
        let index = &self.exposed.index;
        let serves = self.exposed.shows(name.namespace)
            && index.service(name.namespace, name.service, has_endpoints) == Some(true);
        if serves {
            return Ok(self.here(name, zone));
        }
        if !index.knows(NEEDED) {
            return Err(not_ready(index));
        }
        Ok(far(name, &self.location()?))
    }

    fn here(&self, name: &Federated<'_>, zone: NameRef<'_>) -> Result<Name, NameError> {
        let mut target = Name::root();
        [name.service, name.namespace, SERVICES].into_iter().try_for_each(|label| target.push_label(label))?;
        target.append(zone)?;
        Ok(target)
    }

    fn location(&self) -> Result<Location, Failure> {
        if let Some(location) = &self.location {
            return Ok(location.clone());
        }
        let index: Option<&Arc<Index>> = self.handle.as_ref().map(|handle| handle.index());
        let location = index.and_then(|index| index.location());
        location.ok_or_else(|| {
            if let Some(index) = index.filter(|index| !index.is_synced()) {
                return not_ready(index);
            }
            Failure::servfail(EdeCode::OTHER, "no Node has labels for its zone and region")
        })
    }
}

/// Returns `SERVICE.NAMESPACE.FEDERATION.svc.ZONE.REGION.DOMAIN`.
fn far(name: &Federated<'_>, location: &Location) -> Result<Name, NameError> {
    let mut target = Name::root();
    [name.service, name.namespace, name.federation, SERVICES, location.zone.as_bytes(), location.region.as_bytes()]
        .into_iter()
        .try_for_each(|label| target.push_label(label))?;
    target.append(name.domain.as_ref())?;
    Ok(target)
}

/// Returns true if the local Service can be used.
fn has_endpoints(service: &Service) -> bool {
    match service.kind {
        ServiceKind::ExternalName(_) => true,
        // kube-dns counts endpoints that are not ready for a Service with a cluster IP only. A headless Service
        // without a ready endpoint has no records.
        ServiceKind::ClusterIp(_) => service.has_endpoints() || service.not_ready_count() > 0,
        ServiceKind::Headless => service.has_endpoints(),
        ServiceKind::Undeclared => false,
    }
}
