//! Programs that check the DNS of a cluster: `portolan conformance` in a pod, and Kubernetes' own `e2e.test`.

use super::bed::{Bed, Server};
use super::report::Report;
use crate::Failed;
use crate::cluster::network::DNS;
use crate::cluster::{configuration, programs};

/// Specs of DNS in `e2e.test`.
const FOCUS: &str = r"--ginkgo.focus=\[sig-network\] DNS";
/// Specs that need images or clouds that this cluster does not have.
const SKIP: &str = r"--ginkgo.skip=\[Feature:|\[Serial\]|\[Disruptive\]";

/// Runs `portolan conformance` as a pod, for each server.
pub(crate) fn conformance(bed: &Bed<'_>, _rounds: usize, report: &mut Report) -> Result<(), Failed> {
    for server in &bed.servers {
        bed.install(*server)?;
        let manifest = CONFORMANCE.replace("IMAGE", &Server::Portolan.image()).replace("SERVER", DNS);
        bed.inside.kubectl("-n default delete pod conformance --ignore-not-found --wait")?;
        bed.inside.kubectl_with("apply -f -", &manifest)?;
        // The pod fails if a check fails.
        let ended = "-n default wait pod/conformance --for=jsonpath={.status.containerStatuses[0].state.terminated} --timeout=180s";
        let waited = bed.inside.kubectl(ended);
        let log = bed.inside.kubectl("-n default logs conformance").or(waited)?;
        let last = log.lines().last().unwrap_or_default();
        report.note(format!("conformance, {}: {last}", server.name()));
        for line in log.lines().filter(|line| line.starts_with("FAIL")) {
            report.note(format!("conformance, {}: {}", server.name(), line.trim()));
        }
    }
    bed.inside.kubectl_with("delete -f -", CONFORMANCE).map(drop)
}

/// Runs Kubernetes' own specs for each server.
pub(crate) fn e2e(bed: &Bed<'_>, _rounds: usize, report: &mut Report) -> Result<(), Failed> {
    if programs::find("e2e.test").is_none() {
        report.skip("e2e: `e2e.test` of Kubernetes is not on the PATH");
        return Ok(());
    }
    for server in &bed.servers {
        bed.install(*server)?;
        let kubeconfig = format!("--kubeconfig={}", bed.inside.home.text(configuration::KUBECONFIG));
        let output = bed.inside.output("e2e.test", &["--provider=local", &kubeconfig, FOCUS, SKIP]);
        let (Ok(text) | Err(text)) = &output;
        let ran = text.lines().rev().find(|line| line.contains("Passed") && line.contains("Failed"));
        report.note(format!("e2e specs, {}: {}", server.name(), ran.unwrap_or("no summary").trim()));
    }
    Ok(())
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
