//! The Helm chart and the Kustomize overlays in `deploy`: rendered by `helm` and `kubectl`, and compared with golden
//! manifests, which the other checks read.
//!
//! `UPDATE_GOLDEN=1 cargo test -p portolan --test integration packages` writes the golden manifests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::kubernetes::are_in_path;
use crate::support::packages::{self, chart, kustomize, parse};
use serde_json::{Value, json};

/// Kustomizations and their golden manifests.
const OVERLAYS: [(&str, &str); 7] = [
    ("overlays/every-node", "every-node"),
    ("overlays/front", "front"),
    ("overlays/node", "node"),
    ("overlays/own", "own"),
    ("overlays/swap", "swap"),
    ("tests/components", "components"),
    ("tests/relays", "relays"),
];
/// Release name of the golden manifests.
pub(crate) const RELEASE: &str = "coredns";
/// First version of Kubernetes whose API server takes `trafficDistribution: PreferSameNode`.
const SAME_NODE_SINCE: &str = "1.34.0";

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

/// Output of a program that succeeds.
fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Objects of the chart with these values, as text. Without `--kube-version` in `more`, for the first version that the
/// mode `every-node` is made for.
pub(crate) fn render(release: &str, values: &Path, more: &[&str]) -> String {
    let (chart, values) = (chart(), values.to_string_lossy());
    let mut arguments = vec!["template", release, chart.to_str().unwrap(), "-n", "kube-system", "-f", &values];
    if !more.contains(&"--kube-version") {
        arguments.extend(["--kube-version", SAME_NODE_SINCE]);
    }
    arguments.extend(more);
    output_of("helm", &arguments)
}

/// The error of a chart that is rendered with these settings.
fn refusal(settings: &str) -> String {
    let chart = chart();
    let output = run("helm", &["template", "dns", chart.to_str().unwrap(), "--set", settings]);
    assert!(!output.status.success(), "{settings}");
    String::from_utf8(output.stderr).unwrap()
}

/// Values file of a test.
pub(crate) fn values(name: &str) -> PathBuf {
    chart().join(format!("tests/values/{name}.yaml"))
}

fn golden(name: &str) -> PathBuf {
    chart().join(format!("tests/golden/{name}.yaml"))
}

/// Compares objects, so that another version of the program may format them differently.
fn compare(rendered: &str, golden: &Path) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, rendered).unwrap();
    }
    let (expected, found) = (packages::read(golden), parse(rendered));
    assert_eq!(expected.len(), found.len(), "{}", golden.display());
    for object in expected {
        let name = (&object["kind"], &object["metadata"]["name"]);
        let same = found.iter().find(|other| (&other["kind"], &other["metadata"]["name"]) == name);
        assert_eq!(same, Some(&object), "{}", golden.display());
    }
}

#[test]
fn chart_renders_its_golden_manifests() {
    if !are_in_path(&["helm"]) {
        return;
    }
    for file in packages::files(&chart().join("tests/values")) {
        let name = file.file_stem().unwrap().to_string_lossy();
        compare(&render(RELEASE, &file, &[]), &golden(&name));
    }
}

#[test]
fn overlays_render_their_golden_manifests() {
    if !are_in_path(&["kubectl"]) {
        return;
    }
    for (folder, name) in OVERLAYS {
        let rendered = output_of("kubectl", &["kustomize", kustomize().join(folder).to_str().unwrap()]);
        compare(&rendered, &kustomize().join(format!("tests/{name}.yaml")));
    }
}

#[test]
fn every_rendered_corefile_passes_check() {
    let mut checked = 0;
    for file in packages::golden() {
        let has_corefile = packages::read(&file).iter().any(|object| object["data"]["Corefile"].is_string());
        if has_corefile {
            output_of(env!("CARGO_BIN_EXE_portolan"), &["check", file.to_str().unwrap()]);
            checked += 1;
        }
    }
    assert!(checked >= 14, "{checked} Corefiles");
}

#[test]
fn misspelled_and_mistyped_values_are_rejected_by_name() {
    if !are_in_path(&["helm"]) {
        return;
    }
    for (settings, expected) in [
        // Words of the messages. Helm 3.18 has another validator than the versions before it.
        ("replicaCuont=2", ["replicaCuont", "not allowed"]),
        ("image.repo=x", ["image", "repo"]),
        ("servers[0].plugins[0].param=x", ["plugins", "param"]),
        ("mode=nodes", ["mode", "must be one of"]),
        ("replicaCount=two", ["replicaCount", "integer"]),
        ("image.tag=1", ["tag", "string"]),
        ("node.localIP=localhost", ["node", "localIP"]),
        ("everyNode.maxSurge=10%", ["everyNode", "maxSurge"]),
        ("everyNode.preferSameNode=yes", ["everyNode", "preferSameNode"]),
        ("readinessProbe.initialDelay=1", ["readinessProbe", "initialDelay"]),
    ] {
        let said = refusal(settings);
        assert!(expected.iter().all(|word| said.contains(word)), "{settings}: {said}");
    }
}

#[test]
fn values_that_cannot_work_are_rejected_with_advice() {
    if !are_in_path(&["helm"]) {
        return;
    }
    for (settings, expected) in [
        ("replicaCount=2", "image.repository is not set. No image of Portolan is published"),
        ("image.repository=coredns/coredns", "These values are those of a coredns release"),
        ("image.repository=x,mode=front", "front.upstream is not set"),
        ("image.repository=x,mode=node", "node.clusterIP is not set"),
        ("image.repository=x,mode=both", "service.clusterIP is not set"),
        ("image.repository=x,deployment.dnsPolicy=None", "deployment.dnsConfig is not set"),
        (
            "image.repository=x,podSecurityContext.runAsUser=0",
            "runAsUser is 0, but podSecurityContext.runAsNonRoot is true",
        ),
        ("image.repository=x,mode=every-node,everyNode=null", "Pass --reset-then-reuse-values"),
        ("image.repository=x,mode=every-node,hpa.enabled=true", "hpa.enabled=false,autoscaler.enabled=false"),
        ("image.repository=x,mode=every-node,autoscaler.enabled=true", "would scale the Deployment up again"),
        (
            "image.repository=x,mode=every-node,podDisruptionBudget.maxUnavailable=1",
            "Pass --set podDisruptionBudget=null",
        ),
        (
            "image.repository=x,mode=every-node,service.trafficDistribution=PreferClose",
            "service.trafficDistribution is `PreferClose`",
        ),
        ("image.repository=x,mode=every-node,servers[0].hostPort=53", "pass --set everyNode.maxUnavailable=1"),
        (
            "image.repository=x,mode=every-node,service.selector.app\\.kubernetes\\.io/component=dns",
            "the DNS Service selects app.kubernetes.io/component `dns`",
        ),
        ("image.repository=x,mode=every-node,securityContext.runAsUser=0", "runAsUser is 0"),
        ("image.repository=x,relays.enabled=true", "Pass --set mode=every-node"),
        ("image.repository=x,securityContext.runAsUser=0", "pass --set podSecurityContext.runAsNonRoot=false"),
    ] {
        let said = refusal(settings);
        assert!(said.contains(expected), "{settings}: {said}");
    }
}

fn find<'o>(objects: &'o [Value], kind: &str) -> &'o Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap()
}

/// The names, labels and ports that the chart `coredns` 1.46.2 renders for the same release names and values. The
/// selector of a Deployment is immutable.
#[test]
fn names_selectors_and_ports_are_those_of_the_chart_coredns() {
    if !are_in_path(&["helm"]) {
        return;
    }
    for (release, more, name, label, app) in [
        ("coredns", "mode=central", "coredns", "coredns", "coredns"),
        ("dns", "mode=central", "dns-coredns", "coredns", "coredns"),
        ("dns", "k8sAppLabelOverride=kube-dns", "dns-coredns", "kube-dns", "coredns"),
        ("dns", "nameOverride=cluster", "dns-cluster", "coredns", "cluster"),
        ("dns", "fullnameOverride=names", "names", "coredns", "coredns"),
    ] {
        let objects = parse(&render(release, &values("defaults"), &["--set", more]));
        let labels = json!({
            "app.kubernetes.io/instance": release, "k8s-app": label, "app.kubernetes.io/name": app,
        });
        let (deployment, service) = (find(&objects, "Deployment"), find(&objects, "Service"));
        assert_eq!(deployment["spec"]["selector"], json!({ "matchLabels": labels }), "{release} {more}");
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["name"], "coredns");
        assert_eq!(service["spec"]["selector"], labels, "{release} {more}");
        let port =
            |protocol: &str, name: &str| json!({ "name": name, "port": 53, "protocol": protocol, "targetPort": 53 });
        assert_eq!(service["spec"]["ports"], json!([port("UDP", "udp-53"), port("TCP", "tcp-53")]));
        for object in [deployment, service, find(&objects, "ConfigMap"), find(&objects, "ClusterRole")] {
            assert_eq!(object["metadata"]["name"], name, "{release} {more}");
        }
    }
}

/// `helm upgrade --reuse-values` passes the values of the old chart, which has none of the new keys.
#[test]
fn reused_values_of_a_coredns_release_render_the_server() {
    if !are_in_path(&["helm"]) {
        return;
    }
    let new_keys = "mode=null,nameOverride=null,k8sAppLabelOverride=null,fullnameOverride=null,control=null,\
        shadow=null,networkPolicy=null,everyNode=null,relays=null,node=null,front=null,prometheusRule=null,\
        dashboards=null";
    compare(&render(RELEASE, &values("defaults"), &["--set", new_keys]), &golden("defaults"));
}

#[test]
fn every_server_runs_without_root_and_with_a_read_only_root_file_system() {
    let objects: Vec<Value> = packages::golden().iter().flat_map(|file| packages::read(file)).collect();
    let is_server = |object: &&Value| object["spec"]["template"]["spec"]["volumes"][0]["name"] == "config-volume";
    let servers: Vec<&Value> = objects.iter().filter(is_server).collect();
    assert!(servers.len() >= 10, "{} servers", servers.len());
    for server in servers {
        let pod = &server["spec"]["template"]["spec"];
        let (own, common) = (&pod["containers"][0]["securityContext"], &pod["securityContext"]);
        let setting = |name: &str| if own[name].is_null() { common[name].clone() } else { own[name].clone() };
        assert_eq!(setting("runAsUser"), 65532, "{server}");
        assert_eq!(setting("runAsNonRoot"), true, "{server}");
        assert_eq!(setting("seccompProfile"), json!({ "type": "RuntimeDefault" }), "{server}");
        assert_eq!(own["readOnlyRootFilesystem"], true, "{server}");
        assert_eq!(own["allowPrivilegeEscalation"], false, "{server}");
        assert_eq!(own["capabilities"], json!({ "add": ["NET_BIND_SERVICE"], "drop": ["ALL"] }), "{server}");
        let memory = if server["kind"] == "DaemonSet" { "128Mi" } else { "170Mi" };
        assert_eq!(pod["containers"][0]["resources"]["limits"], json!({ "memory": memory }), "{server}");
    }
}

#[test]
fn every_pod_of_deploy_is_confined() {
    let own = packages::files(&packages::repository().join("deploy"));
    let manifests = own.into_iter().filter(|file| file.extension().is_some_and(|end| end == "yaml"));
    let objects = manifests.chain(packages::golden()).flat_map(|file| packages::read(&file));
    let is_patch = |object: &Value| object["kind"] == "Deployment" && object["spec"]["selector"].is_null();
    let mut confined = 0;
    for object in objects.filter(|object| !is_patch(object)) {
        let pod = &object["spec"]["template"]["spec"];
        for container in ["containers", "initContainers"].iter().filter_map(|list| pod[list].as_array()).flatten() {
            // The containers that the values of a test add.
            if ["second", "first"].iter().any(|name| container["name"] == *name) {
                continue;
            }
            let (own, common) = (&container["securityContext"], &pod["securityContext"]);
            let profile = if own["seccompProfile"].is_null() { common } else { own };
            assert_eq!(profile["seccompProfile"], json!({ "type": "RuntimeDefault" }), "{object}");
            assert_eq!(own["allowPrivilegeEscalation"], false, "{object}");
            assert_eq!(own["readOnlyRootFilesystem"], true, "{object}");
            confined += 1;
        }
    }
    assert!(confined >= 15, "{confined} containers");
}

/// The command of `docs/security.md`.
#[test]
fn the_chart_takes_the_seccomp_profile_of_a_node() {
    if !are_in_path(&["helm"]) {
        return;
    }
    let guide = std::fs::read_to_string(packages::repository().join("docs/security.md")).unwrap();
    let settings = "podSecurityContext.seccompProfile.type=Localhost,\
                    podSecurityContext.seccompProfile.localhostProfile=profiles/portolan.json";
    assert!(guide.contains(&format!("--set {settings}")), "--set {settings}");
    let objects = parse(&render(RELEASE, &values("defaults"), &["--set", settings]));
    let pod = &find(&objects, "Deployment")["spec"]["template"]["spec"];
    let expected = json!({ "type": "Localhost", "localhostProfile": "profiles/portolan.json" });
    assert_eq!(pod["securityContext"]["seccompProfile"], expected);
    assert_eq!(pod["securityContext"]["runAsUser"], 65532);
    let own = &pod["containers"][0]["securityContext"];
    assert!(own["seccompProfile"].is_null(), "the container would override the profile of the pod");
    assert_eq!(own["allowPrivilegeEscalation"], false);
}

/// The command of `docs/from-kube-dns.md`, without a server. `real_deploy.rs` has the histories of the Deployment.
#[test]
fn the_patch_of_kube_dns_leaves_one_container_and_no_volume() {
    if !are_in_path(&["kubectl"]) {
        return;
    }
    let guide = std::fs::read_to_string(packages::repository().join("docs/from-kube-dns.md")).unwrap();
    assert!(guide.contains("patch deployment kube-dns --type=merge --patch-file deploy/kube-dns.yaml"));
    let original = packages::repository().join("crates/portolan/tests/original/kube-dns.yaml");
    let patch = packages::repository().join("deploy/kube-dns.yaml");
    let (original, patch) = (original.to_str().unwrap(), patch.to_str().unwrap());
    let options = ["patch", "--local", "-f", original, "--type=merge", "--patch-file", patch, "-o", "yaml"];
    let patched = parse(&output_of("kubectl", &options)).remove(0);
    let (own, before) = (packages::read(Path::new(patch)).remove(0), packages::read(Path::new(original)).remove(0));
    let pod = &patched["spec"]["template"]["spec"];
    assert_eq!(pod["containers"], own["spec"]["template"]["spec"]["containers"]);
    assert_eq!(pod["containers"].as_array().map(Vec::len), Some(1));
    assert_eq!((&pod["volumes"], &pod["initContainers"]), (&json!([]), &json!([])));
    for kept in ["selector", "replicas"] {
        assert_eq!(patched["spec"][kept], before["spec"][kept], "{kept}");
    }
    assert!(own["metadata"]["name"].is_null(), "`kubectl apply` would merge the containers");
}

/// `kubectl wait` ends when all conditions of its `--for` hold, so two of them that exclude each other never do.
#[test]
fn no_command_waits_for_several_conditions() {
    let folder = packages::repository().join("deploy");
    let waits: Vec<String> = [packages::files(&folder), packages::files(&packages::repository().join("docs"))]
        .concat()
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.contains(" wait --for="))
        .collect();
    assert!(!waits.is_empty());
    waits.iter().for_each(|line| assert_eq!(line.matches("--for=").count(), 1, "{line}"));
}

#[test]
fn swap_overlay_changes_an_image_and_nothing_else() {
    let swap = packages::read(&kustomize().join("tests/swap.yaml"));
    let containers = json!([{ "name": "coredns", "image": "portolan:latest" }]);
    let expected = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "coredns", "namespace": "kube-system" },
        "spec": { "template": { "spec": { "containers": containers } } },
    });
    assert_eq!(swap, [expected]);
}

#[test]
fn monitoring_objects_contain_the_rules_and_the_dashboards() {
    if !are_in_path(&["helm"]) {
        return;
    }
    let more = ["--set", "dashboards.enabled=true,prometheusRule.enabled=true"];
    let objects = parse(&render(RELEASE, &values("defaults"), &more));
    let config = objects.iter().find(|object| object["metadata"]["name"] == "coredns-dashboards").unwrap();
    assert_eq!(config["metadata"]["labels"]["grafana_dashboard"], "1");
    for board in ["overview.json", "kubernetes.json", "upstreams.json"] {
        let rendered = config["data"][&format!("portolan-{board}")].as_str().unwrap();
        let file = std::fs::read_to_string(chart().join("files").join(board)).unwrap();
        assert_eq!(rendered, file.trim_end(), "{board}");
    }
    assert_eq!(find(&objects, "PrometheusRule")["spec"], packages::read(&chart().join("files/rules.yaml")).remove(0));
}

/// A rule that changes reaches the golden manifests where there is no `helm` to compare them, too.
#[test]
fn golden_manifests_have_the_current_rules() {
    let rules = packages::read(&chart().join("files/rules.yaml")).remove(0);
    let mut compared = 0;
    for file in packages::golden() {
        for object in packages::read(&file).iter().filter(|object| object["kind"] == "PrometheusRule") {
            assert_eq!(object["spec"], rules, "{}", file.display());
            compared += 1;
        }
    }
    assert!(compared >= 1, "no rules");
}

#[test]
fn chart_has_the_version_of_the_server() {
    let chart = packages::read(&chart().join("Chart.yaml")).remove(0);
    assert_eq!((&chart["version"], &chart["appVersion"]), (&json!(env!("CARGO_PKG_VERSION")), &chart["version"]));
}
