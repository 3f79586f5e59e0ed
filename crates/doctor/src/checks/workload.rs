//! Deployment of the server: disruption budget, resources, and its end.

use super::of_status;
use crate::known::known;
use crate::objects::{DisruptionBudget, PodSpec};
use crate::{Area, Check, CorefileFacts, Evidence, Facts, Finding, Need, Outcome, Severity, Unknown};
use control::status::ProblemCode;

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-K05",
        area: Area::Kubernetes,
        title: "a PodDisruptionBudget keeps a replica and allows drains",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list deployments", "list poddisruptionbudgets"],
        meaning: "Without a budget, a drain of several nodes may evict all replicas at once. A budget that allows no \
                  disruption while all replicas are healthy blocks every drain.",
        fix: "A PodDisruptionBudget with `maxUnavailable: 1` and the labels of the Pods; two replicas or more",
        run: disruption_budget,
    },
    Check {
        code: "PD-K06",
        area: Area::Kubernetes,
        title: "memory and CPU are within their limits",
        severity: Severity::Warning,
        needs: &[Need::Server],
        rights: &[],
        meaning: "Memory is above 80 % of the limit of the container, or the CPU was throttled in more than 5 % of the \
                  periods of the last minute. Throttling delays answers by up to 100 ms.",
        fix: "Raise `limits.memory`, and remove `limits.cpu` or raise it",
        run: resources,
    },
    Check {
        code: "PD-K07",
        area: Area::Kubernetes,
        title: "a replica leaves the Service before it ends",
        severity: Severity::Warning,
        needs: &[Need::Api, Need::Corefile],
        rights: &["list services", "list deployments", "get configmaps"],
        meaning: "The readiness probe must ask *ready*, so that a replica without data gets no queries. `lameduck` of \
                  *health* must give the Service time to take the replica out, and be shorter than the grace period.",
        fix: "`ready` and `health { lameduck 5s }` in the Corefile, a readinessProbe for `/ready` on port 8181, and \
              terminationGracePeriodSeconds of 10 or more",
        run: end_of_replica,
    },
];

fn disruption_budget(facts: &Facts) -> Outcome {
    let dns = facts.dns()?;
    if let Ok(Some(daemon_set)) = dns.daemon_set() {
        let path = daemon_set.metadata.path();
        return Err(Unknown::inapplicable(format!("DaemonSet {path} needs no budget: a drain leaves its Pods alone")));
    }
    let deployment = dns.deployment()?;
    let budgets = known(&facts.objects.disruption_budgets)?;
    let labels = &deployment.spec.template.metadata.labels;
    let covers = |budget: &&DisruptionBudget| {
        budget.metadata.namespace == deployment.metadata.namespace
            && budget.spec.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    };
    let path = deployment.metadata.path();
    let Some(budget) = budgets.iter().find(covers) else {
        let namespace = &deployment.metadata.namespace;
        let selector: Vec<String> =
            dns.service.spec.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let fix = format!(
            "`kubectl -n {namespace} create poddisruptionbudget cluster-dns --selector={} --max-unavailable=1`",
            selector.join(",")
        );
        let finding = Finding::new(format!("no PodDisruptionBudget covers Deployment {path}")).fix(fix);
        let evidence = Evidence::fact(format!("Deployment {path}"));
        return evidence.found([finding.about("Deployment", namespace, &deployment.metadata.name)]);
    };
    let evidence = Evidence::fact(format!("PodDisruptionBudget {}", budget.metadata.path()));
    let status = &budget.status;
    let all_healthy = status.expected_pods > 0 && status.current_healthy >= status.expected_pods;
    if all_healthy && status.disruptions_allowed == 0 {
        let text = format!(
            "PodDisruptionBudget {} wants {} of {} Pods, so no node with one of them can be drained",
            budget.metadata.path(),
            status.desired_healthy,
            status.expected_pods
        );
        let finding = Finding::new(text);
        return evidence.found([finding.about(
            "PodDisruptionBudget",
            &budget.metadata.namespace,
            &budget.metadata.name,
        )]);
    }
    let unknown = || Unknown::new("the status of the PodDisruptionBudget is not known yet: it expects no Pods");
    evidence.without_all((status.expected_pods == 0).then(unknown)).found([])
}

/// Factor between the memory in use and a limit to set: room for a relist and a burst.
const MEMORY_ROOM: u64 = 2;

fn resources(facts: &Facts) -> Outcome {
    let resources = &known(&facts.server)?.status.resources;
    let used = resources.memory_bytes;
    let limit = used.map(|bytes| format!("`limits.memory: {}Mi`, or remove `limits.cpu`", (bytes * MEMORY_ROOM) >> 20));
    let fixed = |finding: Finding| match &limit {
        Some(limit) if finding.text.starts_with("memory") => finding.fix(limit.clone()),
        _ => finding,
    };
    let findings = of_status(facts, ProblemCode::ResourcesShort)?.into_iter().map(fixed);
    let mut parts = Vec::new();
    parts.extend(resources.memory_limit_bytes.map(|_| "memory"));
    parts.extend(resources.cpu_limit.map(|_| "CPU"));
    if parts.is_empty() && findings.len() == 0 {
        return Err(Unknown::inapplicable("the server has no limit of memory or CPU"));
    }
    let unread =
        |is_unread: bool, what: &str| is_unread.then(|| Unknown::new(format!("the server cannot read its {what}")));
    let memory = unread(resources.memory_limit_bytes.is_some() && used.is_none(), "memory");
    let throttling = unread(resources.cpu_limit.is_some() && resources.throttled_share.is_none(), "throttling");
    Evidence::fact(parts.join(" and ")).without_all(memory).without_all(throttling).found(findings)
}

/// Grace period without the setting, in seconds.
const GRACE_DEFAULT: u64 = 30;
/// Time after `lameduck` for the answers in flight, in seconds.
const AFTER_LAMEDUCK: f64 = 2.0;

fn end_of_replica(facts: &Facts) -> Outcome {
    let workload = facts.dns()?.workload()?;
    let corefile = known(&facts.corefile)?;
    let spec = &workload.template.spec;
    let mut texts = Vec::new();
    texts.extend(readiness(spec, corefile));
    let grace = spec.termination_grace_period_seconds.unwrap_or(GRACE_DEFAULT);
    #[allow(clippy::cast_precision_loss, reason = "a grace period has few digits")]
    match corefile.lameduck_seconds() {
        None => texts
            .push("*health* has no `lameduck`: clients that still use a replica that ends get no answer".to_owned()),
        Some(lameduck) if lameduck + AFTER_LAMEDUCK > grace as f64 => {
            texts.push(format!("`lameduck {lameduck}s` does not fit in terminationGracePeriodSeconds {grace}"));
        }
        Some(_) => {}
    }
    let (namespace, name) = (&workload.metadata.namespace, &workload.metadata.name);
    let evidence = Evidence::fact(workload.path());
    evidence.found(texts.into_iter().map(|text| Finding::new(text).about(workload.kind, namespace, name)))
}

fn readiness(spec: &PodSpec, corefile: &CorefileFacts) -> Option<String> {
    let probe = spec.containers.iter().find_map(|container| container.readiness_probe.as_ref());
    let Some(probe) = probe else {
        return Some("no container has a readinessProbe: replicas without data get queries".to_owned());
    };
    let asks_ready = probe.http_get.as_ref().is_some_and(|request| request.path == "/ready");
    if asks_ready && !corefile.has("ready") {
        return Some("the readinessProbe asks /ready, and the Corefile has no `ready`".to_owned());
    }
    let asks_health = probe.http_get.as_ref().is_some_and(|request| request.path == "/health");
    asks_health.then(|| "the readinessProbe asks /health, which is fine before the server has data".to_owned())
}
