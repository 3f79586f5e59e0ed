//! Corefile, and whether all replicas serve the same.

use control::status::ProblemCode;
use std::collections::BTreeMap;

use control::text::counted;

use super::of_status;
use crate::known::known;
use crate::objects::{Container, Deployment};
use crate::{Area, Check, CorefileFacts, Evidence, Facts, Finding, Need, Outcome, Problem, Severity, Unknown};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-C01",
        area: Area::Corefile,
        title: "the Corefile has no errors or warnings",
        severity: Severity::Warning,
        needs: &[Need::Corefile],
        rights: &["get configmaps"],
        meaning: "Compiles the Corefile of `--conf`, else the file that the server reads, else that of the ConfigMap. \
                  With an error, the next reload or start is refused.",
        fix: "`portolan check --files FILE` shows the lines, and `portolan check --explain CODE` the background",
        run: compiles,
    },
    Check {
        code: "PD-C02",
        area: Area::Corefile,
        title: "all replicas serve the same Corefile",
        severity: Severity::Warning,
        needs: &[Need::Api, Need::Network],
        rights: &["list services", "list endpointslices"],
        meaning: "Compares `coredns_reload_version_info` of the replicas. A kubelet takes up to two minutes to write a \
                  changed ConfigMap, and *reload* half a minute to read it. A difference that lasts is a replica that \
                  does not reload.",
        fix: "Wait two minutes and run this again; then delete the Pod that has the old Corefile",
        run: same_generation,
    },
    Check {
        code: "PD-C03",
        area: Area::Corefile,
        title: "the last reload succeeded",
        severity: Severity::Error,
        needs: &[Need::Server],
        rights: &[],
        meaning: "The server could not load a newer Corefile. It serves the old one, and would not start with the new \
                  one.",
        fix: "Correct the Corefile; `portolan reload` then says if it serves",
        run: reloaded,
    },
    Check {
        code: "PD-C04",
        area: Area::Corefile,
        title: "`kubeadm upgrade` accepts image and tag",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list deployments", "get configmaps"],
        meaning: "kubeadm reads the installed version of CoreDNS from the tag of the image, and refuses the upgrade \
                  if it does not know it. It then writes the image `REPOSITORY/coredns` into the Deployment, with the \
                  repository of its ClusterConfiguration.",
        fix: "Set `dns.imageRepository` in the ClusterConfiguration (ConfigMap kube-system/kubeadm-config), and tag \
              the image as `coredns:vX.Y.Z` with the version of CoreDNS that it is compatible with",
        run: kubeadm,
    },
    Check {
        code: "PD-C05",
        area: Area::Corefile,
        title: "at most one Deployment has the label k8s-app=kube-dns",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list deployments"],
        meaning: "kubeadm finds the DNS add-on by this label, and fails with \"multiple DNS addon deployments found\" \
                  if there are several.",
        fix: "Remove the label `k8s-app` from the Deployment that is not the cluster DNS; its Pods may keep it",
        run: one_deployment,
    },
];

fn compiles(facts: &Facts) -> Outcome {
    let corefile = known(&facts.corefile)?;
    let problems = known(&corefile.problems)?;
    // An error in a file that the server has refused is the finding of PD-C03, and a loop that of PD-U01.
    let is_refused = facts.server.as_ref().is_ok_and(|server| server.status.corefile.refused.is_some());
    let finding = |problem: &Problem| {
        let severity = if problem.is_error { Severity::Error } else { Severity::Warning };
        Finding::new(format!("{}: {}", problem.place, problem.message)).severity(severity)
    };
    let fix = format!("`portolan check --files {}` shows the lines", corefile.source);
    let is_file = corefile.source.starts_with('/');
    let is_of_others = |problem: &Problem| problem.is_loop() || (problem.is_error && is_refused);
    let findings = problems.iter().filter(|problem| !is_of_others(problem)).map(finding);
    let findings = findings.chain(warnings_of_server(facts, corefile, problems));
    let findings: Vec<Finding> =
        findings.map(|finding| if is_file { finding.fix(fix.clone()) } else { finding }).collect();
    if findings.is_empty() && problems.iter().any(is_of_others) {
        return Err(Unknown::new("what is wrong with the Corefile is a finding of PD-C03 or PD-U01"));
    }
    Evidence::fact(corefile.source.as_str()).found(findings)
}

fn reloaded(facts: &Facts) -> Outcome {
    let generation = known(&facts.server)?.status.corefile.generation;
    Evidence::fact(format!("generation {generation} serves")).found(of_status(facts, ProblemCode::ReloadFailed)?)
}

/// Returns the warnings of the server about this Corefile that its compilation here does not show, such as those about
/// the files that it names.
fn warnings_of_server(facts: &Facts, corefile: &CorefileFacts, problems: &[Problem]) -> Vec<Finding> {
    let Ok(server) = &facts.server else { return Vec::new() };
    if server.files.first().is_none_or(|main| main.name != corefile.source) {
        return Vec::new();
    }
    let is_known = |warning: &str| {
        problems.iter().any(|problem| format!("{}: {}", problem.place, problem.message).starts_with(warning))
    };
    let warnings = server.status.corefile.first_warnings.iter().filter(|warning| !is_known(warning));
    warnings.map(|warning| Finding::new(warning.clone()).severity(Severity::Warning)).collect()
}

fn same_generation(facts: &Facts) -> Outcome {
    let replicas = known(&facts.replicas)?;
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for replica in replicas {
        if let Ok(hash) = &replica.hash {
            groups.entry(hash).or_default().push(&replica.name);
        }
    }
    let asked: usize = groups.values().map(Vec::len).sum();
    if replicas.len() == 1 {
        return Err(Unknown::inapplicable("the DNS Service has one replica"));
    }
    if asked < 2 {
        let reason = replicas.iter().find_map(|replica| replica.hash.as_ref().err());
        let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
        return Err(Unknown::new(format!(
            "{} told the hash of its Corefile{reason}",
            counted(asked as u64, "replica")
        )));
    }
    let silent = replicas.iter().filter_map(|replica| replica.hash.as_ref().err().cloned());
    let evidence = Evidence::of(asked, "replica")?.without_all(silent).without_all(unasked(facts, replicas.len()));
    if groups.len() < 2 {
        return evidence.found([]);
    }
    let text =
        |(hash, names): (&&str, &Vec<&str>)| format!("{} serve {}…", names.join(", "), hash.get(..4).unwrap_or(hash));
    let texts: Vec<String> = groups.iter().map(text).collect();
    evidence.found([Finding::new(texts.join("; "))])
}

/// Returns the ready replicas that were not asked, since doctor asks a limited number.
fn unasked(facts: &Facts, asked: usize) -> Option<Unknown> {
    let endpoints = facts.dns().and_then(|dns| dns.endpoints()).ok()?;
    let ready = endpoints.iter().filter(|endpoint| endpoint.is_ready()).count();
    let text = || format!("doctor has not asked {}", counted((ready - asked) as u64, "replica"));
    (ready > asked).then(|| Unknown::new(text()))
}

/// Namespace and label by which kubeadm finds the Deployment.
const KUBEADM_NAMESPACE: &str = "kube-system";
const KUBEADM_LABEL: (&str, &str) = ("k8s-app", "kube-dns");

fn one_deployment(facts: &Facts) -> Outcome {
    let deployments = known(&facts.objects.deployments)?;
    let named: Vec<&Deployment> = deployments.iter().filter(|one| is_addon(one)).collect();
    let evidence = Evidence::list(deployments, "Deployment")?;
    if named.len() < 2 {
        return evidence.found([]);
    }
    let names: Vec<&str> = named.iter().map(|deployment| deployment.metadata.name.as_str()).collect();
    let text = format!("Deployments in {KUBEADM_NAMESPACE} with the label: {}", names.join(", "));
    let extra = names.iter().find(|name| **name != "coredns").unwrap_or(&"NAME");
    let fix = format!("`kubectl -n {KUBEADM_NAMESPACE} label deployment {extra} k8s-app-`");
    evidence.found([Finding::new(text).fix(fix).about("Deployment", KUBEADM_NAMESPACE, extra)])
}

fn is_addon(deployment: &Deployment) -> bool {
    let (key, value) = KUBEADM_LABEL;
    deployment.metadata.namespace == KUBEADM_NAMESPACE && deployment.metadata.label(key) == value
}

fn kubeadm(facts: &Facts) -> Outcome {
    let Some(config) = known(&facts.objects.kubeadm)? else {
        return Err(Unknown::inapplicable(
            "kubeadm did not install this cluster: there is no ConfigMap kube-system/kubeadm-config",
        ));
    };
    let settings = config.get("ClusterConfiguration").map_or("", String::as_str);
    if is_dns_disabled(settings) {
        return Err(Unknown::inapplicable("kubeadm does not manage the DNS of this cluster (`dns.disabled`)"));
    }
    let deployments = known(&facts.objects.deployments)?;
    let Some(deployment) = deployments.iter().find(|one| is_addon(one)) else {
        let reason = "no Deployment in kube-system has the label k8s-app=kube-dns";
        return Err(if deployments.cut { Unknown::new(reason) } else { Unknown::inapplicable(reason) });
    };
    let missing = || Unknown::new(format!("Deployment {} has no container", deployment.metadata.path()));
    let container = deployment.spec.template.spec.containers.first().ok_or_else(missing)?;
    let findings = [tag_problem(container), repository_problem(container, settings)].into_iter().flatten();
    let evidence = Evidence::fact(format!("image `{}`", container.image));
    evidence.found(findings.map(|finding| finding.about("Deployment", KUBEADM_NAMESPACE, &deployment.metadata.name)))
}

/// Returns true if a ClusterConfiguration has `disabled: true` below `dns:`.
fn is_dns_disabled(settings: &str) -> bool {
    below_dns(settings).any(|line| line.trim() == "disabled: true")
}

/// Lines below `dns:` of a ClusterConfiguration, which is YAML in the form that kubeadm writes.
fn below_dns(settings: &str) -> impl Iterator<Item = &str> {
    let after = settings.lines().skip_while(|line| line.trim_end() != "dns:").skip(1);
    after.take_while(|line| line.starts_with(' '))
}

fn tag_problem(container: &Container) -> Option<Finding> {
    let (_, tag) = split_image(&container.image);
    let tag = tag.unwrap_or_default();
    let numbers: Vec<&str> = tag.strip_prefix('v').unwrap_or(tag).split('.').collect();
    let is_version = numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok());
    (!is_version).then(|| {
        let text = format!("image `{}` has no tag of the form `vX.Y.Z`; `kubeadm upgrade` refuses it", container.image);
        Finding::new(text).severity(Severity::Error)
    })
}

fn repository_problem(container: &Container, settings: &str) -> Option<Finding> {
    let (repository, _) = split_image(&container.image);
    let value = |line: &str| line.trim().strip_prefix("imageRepository:").map(|value| value.trim().to_owned());
    let of_dns = below_dns(settings).find_map(value);
    let of_all = settings.lines().filter(|line| !line.starts_with(' ')).find_map(value);
    let configured = of_dns.or(of_all)?;
    let (own, name) = repository.rsplit_once('/').unwrap_or(("", repository));
    // The default registry has the image one level deeper.
    let is_same = name == "coredns" && (own == configured || own == format!("{configured}/coredns"));
    (!is_same).then(|| {
        let text = format!(
            "`kubeadm upgrade` replaces the image `{}` with one of `{configured}`, as its ClusterConfiguration says",
            container.image
        );
        Finding::new(text).fix(format!(
            "`kubectl -n kube-system edit configmap kubeadm-config`, and below `dns:` set `imageRepository: {own}`"
        ))
    })
}

/// Splits an image into repository and tag. A digest is not a tag.
fn split_image(image: &str) -> (&str, Option<&str>) {
    let name = image.split('@').next().unwrap_or(image);
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        _ => (name, None),
    }
}
