//! Explanations of the answers, for people.

use core::net::IpAddr;

use cluster::{Kinds, Service, ServiceKind, dashed};
use engine::{Explanation, Query, ReasonCode, Response};
use wire::{Rcode, Section, Type, address_of};

use super::alias::ChainEnd;
use super::name::{Grammar, Part, Target, text};
use super::suggest::Suggestions;
use super::unready;
use super::{Kubernetes, LOCAL, Pods, View, is_hidden};
use crate::shared::service_records::labels_of;

/// Codes of the reasons.
pub(crate) static REASONS: [&ReasonCode; 15] = [
    &NO_NAMESPACE,
    &NO_SERVICE,
    &NO_READY_ENDPOINTS,
    &NO_ENDPOINT,
    &HIDDEN,
    &NO_SUCH_TYPE,
    &NOT_A_NAME,
    &NOT_LISTED,
    &NO_POD,
    &NO_ADDRESS,
    &NO_PORT,
    &ALIAS_LOOP,
    &ALIAS_TARGET,
    &NOTHING_BEHIND,
    &ALIAS_ADDRESS,
];

static NO_NAMESPACE: ReasonCode = ReasonCode {
    code: "PE-K01",
    meaning: "The namespace in the name does not exist, or this server block does not serve it",
    advice: "Check the namespace in the name",
};
static NO_SERVICE: ReasonCode = ReasonCode {
    code: "PE-K02",
    meaning: "The namespace exists, but has no Service of this name",
    advice: "Check the name and the namespace of the Service",
};
static NO_READY_ENDPOINTS: ReasonCode = ReasonCode {
    code: "PE-K03",
    meaning: "A headless Service answers with its ready endpoints, and it has none",
    advice: "Find out why its pods are not ready, or set publishNotReadyAddresses",
};
static NO_ENDPOINT: ReasonCode = ReasonCode {
    code: "PE-K04",
    meaning: "The Service exists, but none of its ready endpoints has this name",
    advice: "Check if the pod is ready, and the hostname and subdomain of the pod",
};
static HIDDEN: ReasonCode = ReasonCode {
    code: "PE-K05",
    meaning: "The Service has no ready endpoints, and `ignore empty_service` hides such Services",
    advice: "Find out why its pods are not ready",
};
static NO_SUCH_TYPE: ReasonCode =
    ReasonCode { code: "PE-K06", meaning: "The name exists, but has no record of this type", advice: "" };
static NOT_A_NAME: ReasonCode = ReasonCode {
    code: "PE-K07",
    meaning: "The name has no form that a name of the cluster can have: it is not below `svc` or `pod`, or has too \
              many labels",
    advice: "",
};
static NOT_LISTED: ReasonCode = ReasonCode {
    code: "PE-K08",
    meaning: "The API server has not listed the objects yet that decide if the name exists",
    advice: "See `portolan status` for the state of the watches",
};
static NO_POD: ReasonCode = ReasonCode {
    code: "PE-K09",
    meaning: "The name is that of a pod, and no pod of the namespace has this address, or pod names are disabled",
    advice: "See the option `pods` of kubernetes",
};
static NO_ADDRESS: ReasonCode =
    ReasonCode { code: "PE-K10", meaning: "No Service and no ready endpoint has this address", advice: "" };
static NO_PORT: ReasonCode = ReasonCode {
    code: "PE-K11",
    meaning: "The Service exists, but has no port with this name and protocol",
    advice: "Check the names of the ports of the Service",
};
static ALIAS_LOOP: ReasonCode = ReasonCode {
    code: "PE-K12",
    meaning: "The ExternalName of the Service leads back to the Service, directly or through others",
    advice: "Change spec.externalName of one of these Services",
};
static ALIAS_TARGET: ReasonCode = ReasonCode {
    code: "PE-K13",
    meaning: "The ExternalName of the Service is a name of the cluster that does not exist",
    advice: "Change spec.externalName of the Service, or create its target",
};

static ALIAS_ADDRESS: ReasonCode = ReasonCode {
    code: "PE-K15",
    meaning: "The ExternalName of the Service is an IP address, which is not a name, so clients get no address",
    advice: "Use a Service without a selector, and an EndpointSlice with the address",
};

static NOTHING_BEHIND: ReasonCode = ReasonCode {
    code: "PE-K14",
    meaning: "The Service has an address, but no ready endpoint, so the name is answered and connections fail",
    advice: "Compare the selector of the Service with the labels of its pods, and find out why they are not ready",
};

impl Kubernetes {
    /// Explains the response to a query.
    pub(super) fn explained(&self, query: &Query, response: &Response) -> Option<Explanation> {
        let view = self.views.get(query.zone_index())?;
        if view.is_reverse {
            return Some(self.explain_address(query));
        }
        let key = query.key();
        let zone = query.zone();
        let explanation = match Target::read(&key.as_bytes()[..query.zone_at()], view.grammar) {
            Target::Apex => Explanation::new(format!("apex of the zone {zone}")),
            Target::Version => Explanation::new("version of the DNS specification"),
            Target::NameServer => Explanation::new("name server of the zone"),
            Target::Branch => no_type(Explanation::new("name above the Services and pods"), query, response),
            Target::PodNamespace(namespace) => {
                let advice = || Suggestions::new(self, view, query).for_namespace_of_pods(namespace);
                self.explain_namespace(namespace, query, response, advice)
            }
            Target::Namespace(namespace) => {
                let advice = || Suggestions::new(self, view, query).for_namespace(namespace);
                self.explain_namespace(namespace, query, response, advice)
            }
            Target::Pod { namespace, pod } => self.explain_pod(view, (namespace, pod), query, response),
            Target::Service { namespace, service, part } => {
                self.explain_service(view, (namespace, service, part), query, response)
            }
            Target::Nothing => self.explain_form(view, query),
        };
        Some(explanation)
    }

    /// Explains why a name cannot exist.
    fn explain_form(&self, view: &View, query: &Query) -> Explanation {
        let (key, prefix) = (query.key(), &query.key().as_bytes()[..query.zone_at()]);
        let labels: Vec<&[u8]> = labels_of(prefix).collect();
        let form = match *labels.as_slice() {
            [.., namespace, b"svc"] if !self.exposed.shows(namespace) => {
                format!("too many labels for a Service, and no namespace {}", text(namespace))
            }
            [.., b"svc"] => "too many labels for a Service".to_owned(),
            [.., b"pod"] => "too many labels for a pod".to_owned(),
            _ => {
                let advice = Suggestions::new(self, view, query).for_labels(prefix);
                let unknown = Explanation::new("not below svc or pod");
                return advised(unknown.because(&NOT_A_NAME, format!("{key} is not below svc or pod")), advice);
            }
        };
        let why = format!("{key} cannot exist: {form}");
        Explanation::new(form).because(&NOT_A_NAME, why)
    }

    /// Explains the answer for a namespace. `advice` is asked if it does not exist.
    fn explain_namespace(
        &self,
        namespace: &[u8],
        query: &Query,
        response: &Response,
        advice: impl FnOnce() -> Option<String>,
    ) -> Explanation {
        let name = text(namespace);
        if self.exposed.shows(namespace) {
            return no_type(Explanation::new(format!("namespace {name}")).of("Namespace", "", &name), query, response);
        }
        self.unlisted(LOCAL.namespaces).unwrap_or_else(|| {
            let missing = Explanation::new(format!("no namespace {name}"));
            advised(missing.because(&NO_NAMESPACE, format!("there is no namespace {name}")), advice())
        })
    }

    fn explain_service(
        &self,
        view: &View,
        (namespace, service, part): (&[u8], &[u8], Part<'_>),
        query: &Query,
        response: &Response,
    ) -> Explanation {
        if !self.exposed.shows(namespace) {
            let advice = || Suggestions::new(self, view, query).for_service_of(namespace, service);
            return self.explain_namespace(namespace, query, response, advice);
        }
        let found = view
            .index
            .service(namespace, service, |service| self.explain_found(view, (service, part), query, response));
        found.or_else(|| self.unlisted(view.required.services)).unwrap_or_else(|| {
            let advice = Suggestions::new(self, view, query).for_service(namespace, service);
            let (namespace, service) = (text(namespace), text(service));
            let missing = Explanation::new(format!("namespace {namespace} exists, it has no Service {service}"));
            advised(missing.because(&NO_SERVICE, format!("no Service {service} in {namespace}")), advice)
        })
    }

    fn explain_found(
        &self,
        view: &View,
        (service, part): (&Service, Part<'_>),
        query: &Query,
        response: &Response,
    ) -> Explanation {
        let (namespace, name) = (&*service.namespace, &*service.name);
        let whose = format!("{} {namespace}/{name}", view.service_kind());
        let ready = service.endpoints().count();
        let shape = match &service.kind {
            ServiceKind::ClusterIp(_) => "ClusterIP".to_owned(),
            ServiceKind::Headless => {
                let all = ready + service.not_ready_count();
                format!("headless, {all} endpoint{}, {ready} ready", if all == 1 { "" } else { "s" })
            }
            ServiceKind::ExternalName(target) => format!("ExternalName {target}"),
            ServiceKind::Undeclared => "not declared".to_owned(),
        };
        let base = Explanation::new(format!("{whose}, {shape}")).of(view.service_kind(), namespace, name);
        let base = base.at_version(service.resource_version);
        if let ServiceKind::ExternalName(target) = &service.kind
            && let Ok(address) = target.trim_end_matches('.').parse::<IpAddr>()
        {
            let text = format!("{whose} has the address {address} as its externalName, and an alias needs a name");
            return base.because(&ALIAS_ADDRESS, text);
        }
        if let ServiceKind::ExternalName(target) = &service.kind
            && part == Part::Whole
            && !is_answered(query, response)
        {
            return self.explain_alias(base, view, target, query, response);
        }
        if has_answers(response) {
            return if self.has_nothing_behind(view, service) { nothing_behind(base, service, &whose) } else { base };
        }
        let is_made_of_endpoints =
            matches!(service.kind, ServiceKind::Headless) || matches!(part, Part::Endpoint(_) | Part::EndpointIn(..));
        let needs = if is_made_of_endpoints && ready == 0 { view.required.endpoints } else { Kinds::NONE };
        if let Some(unlisted) = self.unlisted(needs) {
            return unlisted.of(view.service_kind(), namespace, name);
        }
        match part {
            _ if is_hidden(self.ignore_empty, service) => {
                let text = format!("{whose} has no ready endpoint, and `ignore empty_service` hides it");
                let explanation = unready::with_all(base.because(&HIDDEN, text), service);
                view.advise_first_pod(explanation, namespace)
            }
            Part::Whole if matches!(service.kind, ServiceKind::Headless) && ready == 0 => {
                let text = format!("{whose} is headless and has no ready endpoint");
                let usual = format!("kubectl -n {namespace} get endpointslices,pods; or set publishNotReadyAddresses");
                let explanation = base.because(&NO_READY_ENDPOINTS, text).advise(usual);
                view.advise_first_pod(unready::with_all(explanation, service), namespace)
            }
            Part::Endpoint(label) | Part::EndpointIn(label, _) if response.rcode() == Rcode::NXDOMAIN => {
                view.explain_no_endpoint(base, service, (part, label))
            }
            Part::Port(port, protocol) if response.rcode() == Rcode::NXDOMAIN => {
                let (port, protocol) = (text(port), text(protocol));
                let text = format!("{whose} has no port {port} for {protocol}; {}", ports_of(service));
                base.because(&NO_PORT, text)
            }
            Part::Protocol(protocol) if response.rcode() == Rcode::NXDOMAIN => {
                let text = format!("{whose} has no named port for {}; {}", text(protocol), ports_of(service));
                base.because(&NO_PORT, text)
            }
            _ => no_type(base, query, response),
        }
    }

    /// Returns true for a Service with an address that has no ready endpoint, if all EndpointSlices are known.
    fn has_nothing_behind(&self, view: &View, service: &Service) -> bool {
        let is_known = self.exposed.has_endpoints && !matches!(view.grammar, Grammar::Clusterset);
        matches!(service.kind, ServiceKind::ClusterIp(_))
            && service.endpoints().next().is_none()
            && is_known
            && self.unlisted(view.required.endpoints).is_none()
    }

    /// Explains an alias without records.
    fn explain_alias(
        &self,
        base: Explanation,
        view: &View,
        target: &str,
        query: &Query,
        response: &Response,
    ) -> Explanation {
        match self.end_of_chain(view, query, target) {
            ChainEnd::Loop(names) => {
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                base.because(&ALIAS_LOOP, format!("the alias leads back to itself: {}", names.join(" → ")))
            }
            ChainEnd::Missing(name) => self.unlisted(view.required.services).unwrap_or_else(|| {
                base.because(&ALIAS_TARGET, format!("the alias leads to {name}, which does not exist"))
            }),
            ChainEnd::Last(name) if response.rcode() == Rcode::NXDOMAIN => {
                base.because(&ALIAS_TARGET, format!("the alias leads to {name}, which does not exist"))
            }
            ChainEnd::Last(name) if response.rcode() == Rcode::NOERROR => {
                let why = format!("the alias leads to {name}, which has no record of type {}", query.qtype);
                base.because(&NO_SUCH_TYPE, why)
            }
            ChainEnd::Last(_) | ChainEnd::Other => base,
        }
    }

    fn explain_pod(
        &self,
        view: &View,
        (namespace, pod): (&[u8], &[u8]),
        query: &Query,
        response: &Response,
    ) -> Explanation {
        let (namespace, pod) = (text(namespace), text(pod));
        let how = match self.pods {
            Pods::Disabled => "pod names are disabled",
            Pods::Insecure => "pods insecure: made from the name",
            Pods::Verified => "pods verified",
        };
        let address = dashed::read(pod.as_bytes()).map_or_else(|| pod.clone(), |address| address.to_string());
        let base = Explanation::new(format!("pod {namespace}/{pod}, {how}"));
        match response.rcode() {
            Rcode::NXDOMAIN if !self.exposed.shows(namespace.as_bytes()) => {
                let advice = || Suggestions::new(self, view, query).for_namespace_of_pods(namespace.as_bytes());
                self.explain_namespace(namespace.as_bytes(), query, response, advice)
            }
            Rcode::NXDOMAIN => {
                base.because(&NO_POD, format!("no pod with the address {address} in {namespace} ({how})"))
            }
            _ => no_type(base, query, response),
        }
    }

    fn explain_address(&self, query: &Query) -> Explanation {
        let Some(address) = address_of(query.key()) else { return Explanation::new("not the name of an address") };
        let index = &self.exposed.index;
        let explain = |service: &Service| {
            let (namespace, name) = (&*service.namespace, &*service.name);
            let explanation = Explanation::new(format!("Service {namespace}/{name}, ClusterIP {address}"));
            explanation.of("Service", namespace, name).at_version(service.resource_version)
        };
        let shows = |service: &Service| self.exposed.shows(service.namespace.as_bytes());
        // The answer has the name of one that is shown. Without one, the explanation names another one.
        let of_service = index
            .service_of_cluster_ip(address, |service| shows(service).then(|| explain(service)))
            .or_else(|| index.service_of_cluster_ip(address, |service| Some(explain(service))));
        of_service.or_else(|| self.explain_endpoint(address)).or_else(|| self.unlisted(LOCAL.endpoints)).unwrap_or_else(
            || {
                let why = format!("no Service and no ready endpoint has the address {address}");
                Explanation::new(format!("no object has {address}")).because(&NO_ADDRESS, why)
            },
        )
    }

    fn explain_endpoint(&self, address: IpAddr) -> Option<Explanation> {
        let mut found = None;
        self.exposed.index.services_of_endpoint(address, |service, _| {
            let (namespace, name) = (&*service.namespace, &*service.name);
            let explanation = Explanation::new(format!("endpoint {address} of Service {namespace}/{name}"));
            let explanation = explanation.of("Service", namespace, name).at_version(service.resource_version);
            found.get_or_insert(explanation);
        });
        found
    }

    /// Returns the explanation of a name that is unknown because objects of one of these kinds are not listed yet.
    fn unlisted(&self, kinds: Kinds) -> Option<Explanation> {
        let kind = self.exposed.index.unlisted().find(|kind| kinds.contains(*kind))?;
        let text = format!("{kind:?} objects not listed yet");
        let why = format!("the API server has not listed all {kind:?} objects yet");
        Some(Explanation::new(text).because(&NOT_LISTED, why))
    }
}

/// Maximum number of ports in an explanation.
const PORTS_MAX: usize = 8;

/// Lists the ports of a Service as its names have them: `_http._tcp`.
fn ports_of(service: &Service) -> String {
    let named = service.ports.iter().filter(|port| !port.name.is_empty());
    let names: Vec<String> =
        named.map(|port| format!("_{}._{}", port.name, port.protocol.to_ascii_lowercase())).collect();
    match names.len() {
        0 => "none of its ports has a name".to_owned(),
        count if count > PORTS_MAX => {
            format!("it has {} and {} more", names[..PORTS_MAX].join(", "), count - PORTS_MAX)
        }
        _ => format!("it has {}", names.join(", ")),
    }
}

/// Explains the answer for a Service without a ready endpoint.
fn nothing_behind(base: Explanation, service: &Service, whose: &str) -> Explanation {
    let namespace = &service.namespace;
    let text = match service.not_ready_count() {
        0 => format!("{whose} has no endpoint, so nothing answers at its address: does its selector match a pod?"),
        count => format!("{whose} has no ready endpoint ({count} not ready), so nothing answers at its address"),
    };
    let explanation = unready::with_all(base.because(&NOTHING_BEHIND, text), service);
    let name = &service.name;
    let advice = match unready::first_pod(&explanation) {
        Some(pod) => format!("kubectl -n {namespace} describe pod {pod}"),
        None => format!(
            "kubectl -n {namespace} get service {name} -o wide; kubectl -n {namespace} get pods --show-labels: \
             compare the selector with the labels"
        ),
    };
    explanation.advise(advice)
}

impl View {
    /// Returns the kind of the objects that are the Services of the zone.
    const fn service_kind(&self) -> &'static str {
        match self.grammar {
            Grammar::Clusterset => "ServiceImport",
            Grammar::Cluster | Grammar::KubeDns | Grammar::Zonal => "Service",
        }
    }

    /// Explains why a Service has no endpoint with this label.
    fn explain_no_endpoint(
        &self,
        base: Explanation,
        service: &Service,
        (part, label): (Part<'_>, &[u8]),
    ) -> Explanation {
        let (label, namespace) = (text(label), &*service.namespace);
        let whose = format!("{} {namespace}/{}", self.service_kind(), service.name);
        if let Some(asked) = unready::asked(service, part) {
            let text = format!("the endpoint {label} of {whose} exists and is not ready");
            let explanation = unready::with_all(base.because(&NO_ENDPOINT, text), service);
            return self.advise_pod(explanation, namespace, asked.pod());
        }
        let explanation = base.because(&NO_ENDPOINT, format!("no ready endpoint of {whose} is called {label}"));
        if service.has_endpoints() {
            return explanation;
        }
        self.advise_first_pod(unready::with_all(explanation, service), namespace)
    }

    /// Advises to look at the first pod that is not ready.
    fn advise_first_pod(&self, explanation: Explanation, namespace: &str) -> Explanation {
        let pod = unready::first_pod(&explanation).map(str::to_owned);
        self.advise_pod(explanation, namespace, pod.as_deref())
    }

    /// Advises to look at a pod. Those of a ServiceImport are in another cluster, so their advice stays as it is.
    fn advise_pod(&self, explanation: Explanation, namespace: &str, pod: Option<&str>) -> Explanation {
        let pod = pod.filter(|_| self.grammar != Grammar::Clusterset);
        let advice =
            pod.map(|pod| format!("kubectl -n {namespace} describe pod {pod}; or set publishNotReadyAddresses"));
        advised(explanation, advice)
    }
}

/// Adds an advice in place of the usual one of the reason.
fn advised(explanation: Explanation, advice: Option<String>) -> Explanation {
    match advice {
        Some(advice) => explanation.advise(advice),
        None => explanation,
    }
}

/// Adds the reason if the name exists without a record of the type.
fn no_type(explanation: Explanation, query: &Query, response: &Response) -> Explanation {
    if has_answers(response) || response.rcode() != Rcode::NOERROR {
        return explanation;
    }
    let of_type = if query.qtype == Type::ANY { String::new() } else { format!(" of type {}", query.qtype) };
    let why = format!("{} exists without a record{of_type}", query.name());
    explanation.because(&NO_SUCH_TYPE, why)
}

/// Returns true if the answer has more than the aliases that lead to the records asked for.
fn is_answered(query: &Query, response: &Response) -> bool {
    let is_asked = |rtype| rtype != Type::CNAME || matches!(query.qtype, Type::CNAME | Type::ANY);
    response.message.section(Section::Answer).any(|mark| is_asked(mark.rtype))
}

fn has_answers(response: &Response) -> bool {
    response.message.section(Section::Answer).next().is_some()
}
