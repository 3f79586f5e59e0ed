//! Permissions at the API server, and the view that the server has of the cluster.

use std::collections::BTreeMap;

use control::status::{ProblemCode, Resource, WatchState};

use super::of_status;
use crate::known::known;
use crate::{Access, Area, Check, Evidence, Facts, Finding, Need, Outcome, Severity, Unknown};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-R01",
        area: Area::Rights,
        title: "the server may list and watch what the Corefile needs",
        severity: Severity::Error,
        needs: &[Need::Corefile, Need::Api],
        rights: &["create subjectaccessreviews"],
        meaning: "Asks the API server with a SelfSubjectAccessReview, or from outside of the Pod with a \
                  SubjectAccessReview for its service account. Without a permission, names of these objects get \
                  SERVFAIL, or keep the answers of the time before.",
        fix: "Apply the role that `portolan check --rbac FILE` prints",
        run: rights,
    },
    Check {
        code: "PD-R02",
        area: Area::Rights,
        title: "the watches of the API server are current",
        severity: Severity::Error,
        needs: &[Need::Server],
        rights: &[],
        meaning: "A watch fails for more than 5 s, nothing has confirmed a resource for longer than `stale_after`, or \
                  the first list has not begun within 5 s: the API server accepts the request and does not answer. \
                  The server answers with what it last knew.",
        fix: "Is the API server reachable from the Pod? A NetworkPolicy must allow its address and port (443 and 6443)",
        run: current,
    },
    Check {
        code: "PD-R03",
        area: Area::Rights,
        title: "all Endpoints have EndpointSlices",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list endpointslices", "list endpoints"],
        meaning: "Endpoints that were made by hand are mirrored to EndpointSlices by the control plane. Portolan \
                  reads only slices. Without one, the names of these endpoints do not exist.",
        fix: "Remove the label `endpointslice.kubernetes.io/skip-mirror` from the Endpoints, enable the controller \
              `endpointslice-mirroring`, or create EndpointSlices",
        run: mirrored,
    },
];

/// Maximum number of Endpoints that are named.
const NAMED_MAX: usize = 50;

fn current(facts: &Facts) -> Outcome {
    let (late, refused) = (of_status(facts, ProblemCode::WatchLate)?, of_status(facts, ProblemCode::WatchRefused)?);
    if late.is_empty() && !refused.is_empty() {
        return Err(Unknown::new("a watch that the API server refuses is a finding of PD-R01"));
    }
    let clusters = &known(&facts.server)?.status.clusters;
    let watches: Vec<&Resource> = clusters.iter().flat_map(|cluster| &cluster.resources).collect();
    if clusters.is_empty() && late.is_empty() {
        return Err(Unknown::inapplicable("the server watches no API server"));
    }
    // The status reports a watch as a problem only after some seconds.
    let evidence =
        Evidence::of(watches.len(), "watched resource")?.without_all(watches.into_iter().filter_map(not_current));
    evidence.found(late)
}

/// Returns why a watch is not known to be current.
fn not_current(watch: &Resource) -> Option<Unknown> {
    match watch.state {
        WatchState::Current => None,
        WatchState::Listing => Some(Unknown::new(format!("{} have not been listed yet", watch.name))),
        WatchState::Failing => Some(Unknown::new(format!("the watch of {} has just failed", watch.name))),
    }
}

fn rights(facts: &Facts) -> Outcome {
    let reported = of_status(facts, ProblemCode::WatchRefused).unwrap_or_default();
    let access = match known(&facts.access) {
        Ok(access) => access,
        // The server itself knows what it was refused.
        Err(reason) if !reported.is_empty() => {
            return Evidence::fact("watches of the server").without(reason).found(reported);
        }
        Err(reason) => return Err(reason),
    };
    let mut missing: BTreeMap<(&str, &str, &str, &str), Vec<&str>> = BTreeMap::new();
    for Access { user, verb, group, resource, namespace, .. } in access.iter().filter(|access| !access.allowed) {
        missing.entry((user, group, resource, namespace)).or_default().push(verb);
    }
    let findings: Vec<Finding> = missing.iter().map(|(key, verbs)| refused(*key, verbs)).collect();
    Evidence::of(access.len(), "access review")?.found(if findings.is_empty() { reported } else { findings })
}

fn refused((user, group, resource, namespace): (&str, &str, &str, &str), verbs: &[&str]) -> Finding {
    let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
    let kind = if namespace.is_empty() { "ClusterRole" } else { "Role" };
    let fix = format!(
        "add to the {kind} of the service account: apiGroups [\"{group}\"], resources [{resource}], verbs [list, \
         watch]; or apply the output of `portolan check --rbac FILE`"
    );
    Finding::new(format!("{user} may not {} {resource}{place}", verbs.join(" or "))).fix(fix)
}

fn mirrored(facts: &Facts) -> Outcome {
    let (endpoints, slices) = (known(&facts.objects.endpoints)?, known(&facts.objects.slices)?);
    let services = known(&facts.objects.services)?;
    let is_known = |namespace: &str, name: &str| {
        slices.iter().any(|slice| slice.metadata.namespace == namespace && slice.service() == name)
    };
    let has_service = |namespace: &str, name: &str| {
        services.iter().any(|service| service.metadata.namespace == namespace && service.metadata.name == name)
    };
    let lost = endpoints.iter().filter(|one| one.subsets.iter().any(|subset| !subset.addresses.is_empty()));
    let lost = lost.filter(|one| {
        let (namespace, name) = (one.metadata.namespace.as_str(), one.metadata.name.as_str());
        has_service(namespace, name) && !is_known(namespace, name)
    });
    // A list that was cut may lack the slice.
    let lost = lost.filter(|_| !slices.cut);
    let findings = lost.take(NAMED_MAX).map(|one| {
        let text = format!("Endpoints {} have addresses, and no EndpointSlice", one.metadata.path());
        Finding::new(text).about("Endpoints", &one.metadata.namespace, &one.metadata.name)
    });
    Evidence::list(services, "Service")?;
    let evidence = Evidence::list(endpoints, "Endpoints object")?;
    let cut = (slices.cut || services.cut).then(|| Unknown::new("not all EndpointSlices or Services were read"));
    evidence.without_all(cut).found(findings)
}
