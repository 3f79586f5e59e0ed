//! The full server on every node: what the chart, the overlay and the plain manifest promise together.

use serde_json::{Value, json};

use crate::packages::{RELEASE, render, values};
use crate::support::kubernetes::are_in_path;
use crate::support::packages::{self, parse};

/// Objects of a golden manifest of the chart.
fn golden(name: &str) -> Vec<Value> {
    packages::read(&packages::chart().join(format!("tests/golden/{name}.yaml")))
}

/// Objects of the plain manifest.
fn plain() -> Vec<Value> {
    packages::read(&packages::repository().join("deploy/every-node.yaml"))
}

/// Every rendered form of the mode, with its name.
fn forms() -> [(&'static str, Vec<Value>); 4] {
    [
        ("chart", golden("every-node")),
        ("chart in a cluster of kubeadm", golden("every-node-kubeadm")),
        ("overlay", packages::read(&packages::kustomize().join("tests/every-node.yaml"))),
        ("plain manifest", plain()),
    ]
}

fn find<'o>(objects: &'o [Value], kind: &str) -> Option<&'o Value> {
    objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] != "coredns-metrics")
}

/// True if `labels` has all of `wanted`.
fn has(labels: &Value, wanted: &Value) -> bool {
    wanted.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value)
}

/// Text of the Corefile of the DaemonSet.
fn corefile<'o>(objects: &'o [Value], daemon_set: &Value) -> &'o str {
    let volumes = daemon_set["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
    let name = volumes.iter().find_map(|volume| volume["configMap"]["name"].as_str()).unwrap();
    let is_it = |object: &&Value| object["kind"] == "ConfigMap" && object["metadata"]["name"] == name;
    objects.iter().find(is_it).unwrap()["data"]["Corefile"].as_str().unwrap()
}

/// Lines of the block of a plugin in a Corefile, without comments.
fn block<'c>(corefile: &'c str, plugin: &str) -> Vec<&'c str> {
    let lines = corefile.lines().map(str::trim);
    let mut rest = lines.skip_while(|line| !(line.ends_with('{') && line.split(' ').next() == Some(plugin)));
    rest.next();
    rest.take_while(|line| *line != "}").filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn plain_manifest_has_the_objects_of_the_overlay() {
    let (plain, overlay) = (plain(), packages::read(&packages::kustomize().join("tests/every-node.yaml")));
    assert_eq!(plain.len(), overlay.len());
    for object in overlay {
        let same = plain.iter().find(|other| other["kind"] == object["kind"]);
        assert_eq!(same, Some(&object), "{}", object["kind"]);
    }
}

#[test]
fn pods_join_the_service_and_keep_a_label_of_their_own() {
    for (form, objects) in forms() {
        let daemon_set = find(&objects, "DaemonSet").unwrap();
        let labels = &daemon_set["spec"]["template"]["metadata"]["labels"];
        let selector = &daemon_set["spec"]["selector"]["matchLabels"];
        assert!(has(labels, selector), "{form}: {labels}");
        assert_eq!(selector["app.kubernetes.io/component"], "every-node", "{form}");
        let kubeadm = json!({ "k8s-app": "kube-dns" });
        let service = find(&objects, "Service").map_or(&kubeadm, |service| &service["spec"]["selector"]);
        assert!(has(labels, service), "{form}: {labels}");
        if let Some(deployment) = find(&objects, "Deployment") {
            let beside = &deployment["spec"]["template"]["metadata"]["labels"];
            assert!(has(beside, service) && !has(beside, selector), "{form}: {beside}");
        }
    }
}

/// kubeadm refuses a second Deployment with this label.
#[test]
fn no_object_pretends_to_be_the_dns_of_kubeadm() {
    for (form, objects) in forms() {
        for object in objects {
            assert_ne!(object["metadata"]["labels"]["k8s-app"], "kube-dns", "{form}: {}", object["kind"]);
        }
    }
}

#[test]
fn an_update_starts_a_pod_before_it_ends_one() {
    for (form, objects) in forms() {
        let daemon_set = find(&objects, "DaemonSet").unwrap();
        let update = &daemon_set["spec"]["updateStrategy"]["rollingUpdate"];
        let expected = if form.contains("kubeadm") { (0, 1) } else { (10, 0) };
        let (surge, unavailable) = expected;
        assert_eq!(update, &json!({ "maxSurge": surge, "maxUnavailable": unavailable }), "{form}");
        assert_eq!(daemon_set["spec"]["minReadySeconds"], 5, "{form}");
        let pod = &daemon_set["spec"]["template"]["spec"];
        assert!(pod["hostNetwork"].is_null(), "{form}");
        let ports = pod["containers"][0]["ports"].as_array().unwrap();
        assert!(ports.iter().all(|port| port["hostPort"].is_null()), "{form}");
    }
}

/// The readiness probe fails, and kube-proxy knows, before the pod ends.
#[test]
fn a_pod_answers_until_no_node_sends_it_queries() {
    const FAILURES: u64 = 3;
    const KUBE_PROXY: u64 = 2;
    for (form, objects) in forms() {
        let daemon_set = find(&objects, "DaemonSet").unwrap();
        let pod = &daemon_set["spec"]["template"]["spec"];
        let probe = &pod["containers"][0]["readinessProbe"];
        assert_eq!(probe["httpGet"]["path"], "/ready", "{form}");
        let period = probe["periodSeconds"].as_u64().unwrap();
        let fails = period * probe["failureThreshold"].as_u64().unwrap_or(FAILURES);
        let lameduck = block(corefile(&objects, daemon_set), "health");
        let lameduck = lameduck.iter().find_map(|line| line.strip_prefix("lameduck ")?.strip_suffix('s')).unwrap();
        let lameduck: u64 = lameduck.parse().unwrap();
        assert!(fails + KUBE_PROXY < lameduck, "{form}: {fails} s");
        assert!(lameduck < pod["terminationGracePeriodSeconds"].as_u64().unwrap(), "{form}");
    }
}

#[test]
fn a_node_keeps_its_pod() {
    for (form, objects) in forms() {
        for kind in ["PodDisruptionBudget", "HorizontalPodAutoscaler"] {
            assert!(find(&objects, kind).is_none(), "{form}: {kind}");
        }
        let pod = &find(&objects, "DaemonSet").unwrap()["spec"]["template"]["spec"];
        assert_eq!(pod["priorityClassName"], "system-node-critical", "{form}");
        assert_eq!(pod["tolerations"], json!([{ "operator": "Exists" }]), "{form}");
        assert_eq!(pod["dnsPolicy"], "Default", "{form}");
        let resources = json!({ "requests": { "cpu": "20m", "memory": "40Mi" }, "limits": { "memory": "128Mi" } });
        assert_eq!(pod["containers"][0]["resources"], resources, "{form}");
    }
}

#[test]
fn snapshots_are_on_a_volume_that_outlives_the_container() {
    for (form, objects) in forms() {
        let daemon_set = find(&objects, "DaemonSet").unwrap();
        let pod = &daemon_set["spec"]["template"]["spec"];
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        let mount = mounts.iter().find(|mount| mount["name"] == "state").unwrap();
        let folder = format!("snapshot {}/", mount["mountPath"].as_str().unwrap());
        let kubernetes = block(corefile(&objects, daemon_set), "kubernetes");
        assert!(kubernetes.iter().any(|line| line.starts_with(&folder)), "{form}: {kubernetes:?}");
        let volumes = pod["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|volume| volume["name"] == "state").unwrap();
        assert_eq!(volume["emptyDir"], json!({ "sizeLimit": "512Mi" }), "{form}");
    }
}

#[test]
fn generated_lines_do_not_replace_those_of_the_values() {
    let objects = golden("every-node");
    let text = corefile(&objects, find(&objects, "DaemonSet").unwrap());
    let cache = ["serve_stale 1h verify", "disable success cluster.local", "disable denial cluster.local"];
    assert_eq!(block(text, "cache"), cache);
    assert_eq!(block(text, "health"), ["lameduck 12s"]);
    assert_eq!(block(text, "kubernetes").last(), Some(&"snapshot /var/lib/portolan/index-0"));
    assert!(text.contains("\n    nsid\n"), "{text}");

    let objects = golden("every-node-kubeadm");
    let text = corefile(&objects, find(&objects, "DaemonSet").unwrap());
    assert_eq!(block(text, "cache"), ["serve_stale 10m immediate", "disable denial k8s.corp"]);
    assert_eq!(block(text, "kubernetes").last(), Some(&"snapshot /var/lib/portolan/k8s.corp"));
    assert_eq!(text.matches("nsid").count(), 1, "only the block with the cluster: {text}");
}

#[test]
fn the_service_prefers_the_own_node_where_the_api_server_takes_the_value() {
    if !are_in_path(&["helm"]) {
        return;
    }
    for (version, more, expected) in [
        ("1.33.9", "mode=every-node", Value::Null),
        ("1.34.0", "mode=every-node", "PreferSameNode".into()),
        // Versions of managed clouds look like previews.
        ("1.34.0-gke.100", "mode=every-node", "PreferSameNode".into()),
        ("1.36.2-eks-abcdef0", "mode=every-node", "PreferSameNode".into()),
        ("1.36.0", "mode=every-node,everyNode.preferSameNode=never", Value::Null),
        ("1.33.9", "mode=every-node,everyNode.preferSameNode=always", "PreferSameNode".into()),
        ("1.33.9", "mode=every-node,service.trafficDistribution=PreferSameNode", "PreferSameNode".into()),
        (
            "1.36.0",
            "mode=every-node,everyNode.preferSameNode=never,service.trafficDistribution=PreferClose",
            "PreferClose".into(),
        ),
        ("1.36.0", "mode=central", Value::Null),
        ("1.33.9", "service.trafficDistribution=PreferClose", "PreferClose".into()),
    ] {
        let more = ["--set", more, "--kube-version", version];
        let objects = parse(&render(RELEASE, &values("defaults"), &more));
        let service = find(&objects, "Service").unwrap();
        assert_eq!(service["spec"]["trafficDistribution"], expected, "{version} {more:?}");
    }
}

/// Helm deletes what a new revision does not have, before the pods of the DaemonSet are ready.
#[test]
fn an_upgrade_to_the_mode_changes_one_field_of_what_exists() {
    if !are_in_path(&["helm"]) {
        return;
    }
    let before = parse(&render(RELEASE, &values("cluster-dns"), &["--set", "podDisruptionBudget=null"]));
    let more = ["--set", "podDisruptionBudget=null,mode=every-node"];
    let mut after = parse(&render(RELEASE, &values("cluster-dns"), &more));
    let service = after.iter_mut().find(|object| object["kind"] == "Service").unwrap();
    assert_eq!(service["spec"].as_object_mut().unwrap().remove("trafficDistribution"), Some("PreferSameNode".into()));
    let (kept, new): (Vec<_>, Vec<_>) = after.iter().partition(|object| before.contains(object));
    assert_eq!(kept.len(), before.len());
    let mut kinds: Vec<&Value> = new.iter().map(|object| &object["kind"]).collect();
    kinds.sort_by_key(ToString::to_string);
    assert_eq!(kinds, ["ConfigMap", "DaemonSet"]);
}

#[test]
fn the_service_stays_when_the_deployment_goes() {
    if !are_in_path(&["helm"]) {
        return;
    }
    let more = ["--set", "mode=every-node,deployment.enabled=false"];
    let objects =
        parse(&render(RELEASE, &values("cluster-dns"), &[&more[..], &["--set", "podDisruptionBudget=null"]].concat()));
    assert!(find(&objects, "Deployment").is_none());
    let service = find(&objects, "Service").unwrap();
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.10");
    assert_eq!(objects.iter().filter(|object| object["kind"] == "ConfigMap").count(), 1);
}

/// Files of the relays are at the same place whatever installs the pods, and the documentation names them.
#[test]
fn chart_and_component_have_the_files_of_relays() {
    let component = packages::read(&packages::kustomize().join("tests/relays.yaml"));
    let named = |list: &Value, name: &str| {
        list.as_array().unwrap().iter().find(|entry| entry["name"] == name).cloned().unwrap_or(Value::Null)
    };
    let [of_chart, of_component] = [golden("relays"), component].map(|objects| {
        let pod = find(&objects, "DaemonSet").unwrap()["spec"]["template"]["spec"].clone();
        let mounts = &pod["containers"][0]["volumeMounts"];
        let mounts = ["relay-authority", "relay-token"].map(|name| named(mounts, name));
        (mounts, named(&pod["volumes"], "relay-token"))
    });
    assert_eq!(of_chart, of_component);
    assert!(of_chart.1["projected"].is_object());
    let page = std::fs::read_to_string(packages::repository().join("docs/every-node.md")).unwrap();
    for (mount, file) in of_chart.0.iter().zip(["ca.crt", "token"]) {
        let path = format!("{}/{file}", mount["mountPath"].as_str().unwrap());
        assert!(page.contains(&path), "{path}");
    }
}

/// The patch for the Service of kubeadm.
#[test]
fn the_patch_of_the_service_has_one_field() {
    let service = packages::read(&packages::repository().join("deploy/same-node.yaml"));
    let expected = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "kube-dns", "namespace": "kube-system" },
        "spec": { "trafficDistribution": "PreferSameNode" },
    });
    assert_eq!(service, [expected]);
}
