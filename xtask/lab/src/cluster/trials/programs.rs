//! Programs that check the DNS of a cluster: `portolan conformance` in a pod, and Kubernetes' own `e2e.test`.

use super::bed::{Bed, Server};
use super::report::Report;
use crate::cluster::home::{KUBECONFIG, LOGS};
use crate::cluster::network::DNS;
use crate::cluster::programs;
use xtask::Failed;

/// Images of these specs, as parts of names: one of each row. The names differ between versions of Kubernetes, and
/// `e2e.test` lists those of its version.
const E2E_IMAGES: [&[&str]; 2] = [
    &["/agnhost:"],
    // The second since 1.37.
    &["/jessie-dnsutils:", "/glibc-dns-testing:"],
];
/// Specs of DNS in `e2e.test`.
const FOCUS: &str = r"--ginkgo.focus=\[sig-network\] DNS";
/// Specs for clouds and of scale, and those that break the node.
const SKIP: &str = r"--ginkgo.skip=\[Feature:|\[Provider:|\[Disruptive\]";

/// Runs `portolan conformance` as a pod, for each server. Fails if Portolan fails a check.
pub(crate) fn conformance(bed: &Bed<'_>, _rounds: usize, report: &mut Report) -> Result<(), Failed> {
    let mut passes = true;
    for server in &bed.servers {
        bed.install(*server)?;
        let manifest = CONFORMANCE.replace("IMAGE", &Server::Portolan.image()).replace("SERVER", DNS);
        bed.inside.kubectl("-n default delete pod conformance --ignore-not-found --wait")?;
        bed.inside.kubectl_with("apply -f -", &manifest)?;
        // The pod fails if a check fails.
        let ended = "-n default wait pod/conformance --for=jsonpath={.status.containerStatuses[0].state.terminated} \
                     --timeout=180s";
        let waited = bed.inside.kubectl(ended);
        let log = bed.inside.kubectl("-n default logs conformance").or(waited)?;
        let last = log.lines().last().unwrap_or_default();
        report.note(format!("conformance, {}: {last}", server.name()));
        let failures: Vec<&str> = log.lines().filter(|line| line.starts_with("FAIL")).map(str::trim).collect();
        for line in &failures {
            report.note(format!("conformance, {}: {line}", server.name()));
        }
        passes &= *server != Server::Portolan || failures.is_empty();
    }
    bed.inside.kubectl_with("delete -f -", CONFORMANCE)?;
    if passes { Ok(()) } else { Err("Portolan failed a check".to_owned()) }
}

/// Runs Kubernetes' own specs for each server. Fails if Portolan fails a spec. The whole output is in the folder with
/// the logs.
pub(crate) fn e2e(bed: &Bed<'_>, _rounds: usize, report: &mut Report) -> Result<(), Failed> {
    if programs::find("e2e.test").is_none() {
        report.skip("e2e: `e2e.test` of Kubernetes is not on the PATH");
        return Ok(());
    }
    let missing = missing_images(bed)?;
    if !missing.is_empty() {
        report.skip(&format!("e2e: import the images {}; docs/real-cluster.md says how", missing.join(", ")));
        return Ok(());
    }
    let mut passes = true;
    for server in &bed.servers {
        bed.install(*server)?;
        let kubeconfig = format!("--kubeconfig={}", bed.inside.home.text(KUBECONFIG));
        let words = ["--provider=local", "--ginkgo.no-color", "--ginkgo.v", &kubeconfig, FOCUS, SKIP];
        let output = bed.inside.output("e2e.test", &words);
        let (Ok(text) | Err(text)) = &output;
        bed.inside.home.write(&format!("{LOGS}/e2e-{}.log", server.name()), text)?;
        for line in e2e_results(text) {
            report.note(format!("e2e specs, {}: {line}", server.name()));
        }
        passes &= *server != Server::Portolan || output.is_ok();
    }
    if passes { Ok(()) } else { Err("Portolan failed a spec".to_owned()) }
}

/// Returns the images of the specs that the node does not have.
fn missing_images(bed: &Bed<'_>) -> Result<Vec<String>, Failed> {
    let listed = bed.inside.output("e2e.test", &["--list-images"])?;
    let known = bed.inside.output("ctr", &["--namespace", "k8s.io", "images", "list", "--quiet"])?;
    let needed = needed_images(&listed)?.into_iter();
    Ok(needed.filter(|image| !known.lines().any(|name| name == *image)).map(str::to_owned).collect())
}

/// Returns the images of the specs among those that `e2e.test` lists.
///
/// # Errors
/// None of a row is listed: it has a new name, and without it the pods of the specs would wait for their image.
fn needed_images(listed: &str) -> Result<Vec<&str>, Failed> {
    let mut needed = Vec::new();
    for names in E2E_IMAGES {
        let found = listed.lines().map(str::trim).filter(|image| names.iter().any(|name| image.contains(name)));
        let before = needed.len();
        needed.extend(found);
        if needed.len() == before {
            let names = names.join(" or ");
            return Err(format!("`e2e.test --list-images` lists no image {names}: add its new name to E2E_IMAGES"));
        }
    }
    Ok(needed)
}

/// Returns the lines of ginkgo's output that summarise: the specs that failed, and the counts.
fn e2e_results(output: &str) -> Vec<&str> {
    let is_result =
        |line: &&str| line.starts_with("[FAIL] ") || line.starts_with("Ran ") || line.contains(" Passed | ");
    let lines: Vec<&str> = output.lines().map(str::trim).filter(is_result).collect();
    if lines.is_empty() { vec!["no summary"] } else { lines }
}

/// Pod with the checks. They create a namespace and objects in it.
const CONFORMANCE: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: conformance, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: conformance}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: conformance, namespace: default}]
---
apiVersion: v1
kind: Pod
metadata: {name: conformance, namespace: default}
spec:
  serviceAccountName: conformance
  restartPolicy: Never
  containers:
    - name: conformance
      image: "IMAGE"
      imagePullPolicy: Never
      command: [/portolan]
      args: [conformance, --server, "SERVER"]
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_images_of_the_specs_or_says_which_one_has_a_new_name() {
        let listed = |client: &str| {
            ["e2e-test-images/agnhost:2.59", "e2e-test-images/busybox:1.37.0-1", client, "pause:3.10.1"]
                .map(|image| format!("registry.k8s.io/{image}\n"))
                .concat()
        };
        let agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.59";
        for client in ["e2e-test-images/jessie-dnsutils:1.7", "e2e-test-images/glibc-dns-testing:2.0.0"] {
            assert_eq!(needed_images(&listed(client)), Ok(vec![agnhost, &*format!("registry.k8s.io/{client}")]));
        }
        let renamed = listed("e2e-test-images/dns-client:1.0");
        let said = "lists no image /jessie-dnsutils: or /glibc-dns-testing:: add its new name to E2E_IMAGES";
        assert!(needed_images(&renamed).is_err_and(|error| error.ends_with(said)));
        assert!(needed_images("").is_err_and(|error| error.contains("/agnhost:")));
    }

    #[test]
    fn reads_failed_specs_and_counts() {
        let output = "\
• [1.2 seconds]
  [FAIL] [sig-network] DNS [It] should provide DNS for services [Conformance]
Ran 15 of 7000 Specs in 300.1 seconds
FAIL! -- 14 Passed | 1 Failed | 0 Pending | 6985 Skipped
";
        let lines: Vec<&str> = output.lines().skip(1).map(str::trim).collect();
        assert_eq!(e2e_results(output), lines);
        assert_eq!(e2e_results("panic: no cluster"), ["no summary"]);
    }
}
