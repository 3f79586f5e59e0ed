//! Manifests on disk: the resulting cluster, changes, and errors.

use cluster::{Request, Source};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use kubeapi::Subscriber;
use metrics::Registry;

use crate::log::Log;
use crate::support::{Edge, folder, on_a_local_set, quick};

fn request(path: &Path) -> Request {
    Request::new(Source::Manifests(vec![path.to_owned()]))
}

/// Starts a subscription to one file with this text.
fn read(folder: &Path, text: &str) -> Edge {
    fs::write(folder.join("all.yaml"), text).unwrap();
    let edge = Edge::start(&request(folder));
    edge.wait_synced();
    assert_eq!(edge.logged("["), 0, "{:?}", edge.lines());
    edge
}

/// Replaces a file atomically, like a careful editor.
fn replace(file: &Path, text: &str) {
    let new = file.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, file).unwrap();
}

fn service(name: &str, spec: &str) -> String {
    format!("---\napiVersion: v1\nkind: Service\nmetadata: {{ name: {name}, namespace: shop }}\nspec: {{ {spec} }}\n")
}

fn pod(name: &str, labels: &str, spec: &str, status: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{ name: {name}, namespace: shop, labels: {{ {labels} }} }}\n\
         spec: {{ {spec} }}\nstatus: {{ {status} }}\n"
    )
}

#[test]
fn completes_services_like_an_api_server() {
    let text = [
        service("given", "clusterIP: 10.96.0.5, ports: [{ port: 80 }]"),
        service("dual", "clusterIPs: [10.96.0.6, 'fd00::6'], ports: [{ name: dns, port: 53, protocol: UDP }]"),
        service("headless", "clusterIP: None, ports: [{ name: http, port: 80, targetPort: web }]"),
        service("external", "type: ExternalName, externalName: www.example.com"),
        service("web", "ports: [{ name: http, port: 80 }]"),
        service("six", "ipFamilies: [IPv6], ports: [{ port: 80 }]"),
        service("both", "ipFamilyPolicy: PreferDualStack, ports: [{ port: 80 }]"),
        "---\napiVersion: v1\nkind: Service\nmetadata: { name: bare }\n".to_owned(),
    ];
    let folder = folder("completed");
    let edge = read(&folder, &text.concat());
    for (path, expected) in [
        ("shop/given", "10.96.0.5 :80/TCP"),
        ("shop/dual", "10.96.0.6,fd00::6 dns:53/UDP"),
        ("shop/headless", "Headless http:80/TCP"),
        ("shop/external", "-> www.example.com :-/"),
        ("shop/web", "10.96.179.92 http:80/TCP"),
        ("shop/six", "fd00:10:96::59c5 :80/TCP"),
        ("shop/both", "10.96.55.202,fd00:10:96::37ca :80/TCP"),
        ("default/bare", "10.96.154.182 :-/"),
    ] {
        assert_eq!(edge.service(path), expected, "{path}");
    }
    assert!(edge.has_namespace("shop") && edge.has_namespace("default") && !edge.has_namespace("kube-system"));
}

#[test]
fn derives_endpoints_from_pods() {
    let text = [
        service(
            "web",
            "selector: { app: web }, ports: [{ name: http, port: 80, targetPort: http }, { name: raw, port: 81 }]",
        ),
        service(
            "tolerant",
            "clusterIP: None, selector: { app: web }, publishNotReadyAddresses: true, ports: [{ port: 80 }]",
        ),
        service("portless", "clusterIP: None, selector: { app: web, tier: front }"),
        service("named", "clusterIP: None, selector: { app: named }"),
        service("nobody", "clusterIP: None, selector: { app: nobody }"),
        service("unselective", "clusterIP: None"),
        pod(
            "a",
            "app: web, tier: front",
            "containers: [{ ports: [{ name: http, containerPort: 8080 }] }]",
            "podIP: 10.1.0.1",
        ),
        pod(
            "b",
            "app: web",
            "containers: [{}, { ports: [{ name: http, containerPort: 9090 }] }]",
            "podIP: 10.1.0.2, podIPs: [{ ip: 10.1.0.2 }, { ip: 'fd00::2' }], conditions: [{ type: Ready, status: 'True' }]",
        ),
        pod("c", "app: web", "", "podIP: 10.1.0.3, conditions: [{ type: Ready, status: 'False' }]"),
        pod("d", "app: web", "", "podIP: 10.1.0.4, phase: Succeeded"),
        pod("e", "app: web", "", ""),
        pod("f", "app: web, tier: front", "", "podIP: 10.1.0.6"),
        pod("g", "app: named", "hostname: first, subdomain: named", "podIP: 10.1.0.7"),
        pod("h", "app: named", "hostname: second, subdomain: other", "podIP: 10.1.0.8"),
        "---\napiVersion: v1\nkind: Pod\nmetadata: { name: i, labels: { app: web } }\nstatus: { podIP: 10.1.0.9 }\n"
            .to_owned(),
    ];
    let folder = folder("pods");
    let edge = read(&folder, &text.concat());
    let web_ip = edge.service("shop/web").split_once(' ').map(|(ip, _)| ip.to_owned()).unwrap();
    for (path, expected) in [
        (
            "shop/web",
            format!(
                "{web_ip} http:80/TCP,raw:81/TCP [10.1.0.1 http:8080/TCP,raw:81/TCP] [10.1.0.2 http:9090/TCP,raw:81/TCP] \
                 [10.1.0.6 raw:81/TCP]"
            ),
        ),
        (
            "shop/tolerant",
            "Headless :80/TCP [10.1.0.1 10.1.0.2 10.1.0.3 10.1.0.6 :80/TCP] [fd00::2 :80/TCP]".to_owned(),
        ),
        ("shop/portless", "Headless :-/ [10.1.0.1 10.1.0.6 :-/]".to_owned()),
        ("shop/named", "Headless :-/ [first=10.1.0.7 10.1.0.8 :-/]".to_owned()),
        ("shop/nobody", "Headless :-/".to_owned()),
        ("shop/unselective", "Headless :-/".to_owned()),
    ] {
        let words = |text: &str| {
            let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            words.sort_unstable();
            words
        };
        assert_eq!(words(&edge.service(path)), words(&expected), "{path}: {}", edge.service(path));
    }
    assert_eq!(edge.index.counts().pods, 0, "pods are not requested");
}

#[test]
fn written_endpoints_take_precedence_over_derived_ones() {
    let slice = "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
                 metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }\n\
                 addressType: IPv4\nendpoints: [{ addresses: [10.2.0.1], hostname: w }, { addresses: [10.2.0.2], conditions: { ready: false } }]\n\
                 ports: [{ name: http, port: 8080 }]\n";
    let endpoints = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Endpoints\nmetadata: {{ name: {name}, namespace: shop }}\n\
             subsets: [{{ addresses: [{{ ip: 10.3.0.1, hostname: e }}, {{ ip: 'fd00::3' }}], notReadyAddresses: [{{ ip: 10.3.0.2 }}], \
             ports: [{{ port: 5432 }}] }}]\n"
        )
    };
    let text = [
        service("web", "clusterIP: None, selector: { app: web }"),
        service("db", "clusterIP: None, selector: { app: web }"),
        pod("a", "app: web", "", "podIP: 10.1.0.1"),
        slice.to_owned(),
        endpoints("web"),
        endpoints("db"),
    ];
    let folder = folder("written");
    let edge = read(&folder, &text.concat());
    assert_eq!(edge.service("shop/web"), "Headless :-/ [w=10.2.0.1 http:8080/TCP]");
    assert_eq!(edge.service("shop/db"), "Headless :-/ [e=10.3.0.1 :5432/TCP] [fd00::3 :5432/TCP]");
}

#[test]
fn requests_filter_manifests() {
    let text = "apiVersion: v1\nkind: List\nitems:\n\
        - { apiVersion: v1, kind: Namespace, metadata: { name: a, labels: { dns: 'yes' } } }\n\
        - { apiVersion: v1, kind: Service, metadata: { name: s, namespace: a, labels: { dns: 'yes' } }, spec: { clusterIP: None, selector: { x: y } } }\n\
        - { apiVersion: v1, kind: Service, metadata: { name: t, namespace: a }, spec: { clusterIP: None, selector: { x: y } } }\n\
        - { apiVersion: v1, kind: Service, metadata: { name: s, namespace: b, labels: { dns: 'yes' } }, spec: { clusterIP: None } }\n\
        - { apiVersion: v1, kind: Pod, metadata: { name: p, namespace: a, labels: { x: y } }, status: { podIP: 10.1.0.1 } }\n\
        - { apiVersion: v1, kind: Pod, metadata: { name: q, namespace: a, labels: { dns: 'yes' } }, status: { podIPs: [{ ip: 10.1.0.2 }] } }\n\
        - { apiVersion: v1, kind: Pod, metadata: { name: r, namespace: a, labels: { dns: 'yes' } }, status: { podIP: 10.1.0.3, phase: Failed } }\n";
    let folder = folder("selected");
    fs::write(folder.join("all.yaml"), text).unwrap();
    let selected = |request: &Request| {
        let edge = Edge::start(request);
        edge.wait_synced();
        assert_eq!(edge.logged("["), 0, "{:?}", edge.lines());
        let counts = edge.index.counts();
        let paths = ["a/s", "a/t", "b/s"].map(|path| edge.service(path));
        (paths, [counts.namespaces, counts.endpoint_slices, counts.pods])
    };
    let (all, none) = (|| "Headless :-/ [10.1.0.1 :-/]".to_owned(), || "none".to_owned());
    let bare = || "Headless :-/".to_owned();
    let request = request(&folder);
    assert_eq!(selected(&request), ([all(), all(), bare()], [2, 2, 0]));
    let labels = Request { labels: "dns=yes".to_owned(), pods: true, ..request.clone() };
    assert_eq!(selected(&labels), ([all(), none(), bare()], [2, 1, 1]));
    let namespace_labels = Request { namespace_labels: "dns".to_owned(), ..request.clone() };
    assert_eq!(selected(&namespace_labels), ([all(), all(), bare()], [1, 2, 0]));
    let name_label = Request { namespace_labels: "kubernetes.io/metadata.name=b".to_owned(), ..request.clone() };
    assert_eq!(selected(&name_label).1, [1, 2, 0]);
    let namespaces = Request { namespaces: vec!["b".to_owned()], ..request.clone() };
    assert_eq!(selected(&namespaces), ([none(), none(), bare()], [1, 0, 0]));
    let no_endpoints = Request { endpoints: false, ..request };
    assert_eq!(selected(&no_endpoints), ([bare(), bare(), bare()], [2, 0, 0]));
}

#[test]
fn namespace_labels_select_service_imports_by_their_own_labels() {
    let import = |name: &str, labels: &str| {
        format!(
            "---\napiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ServiceImport\n\
             metadata: {{ name: {name}, namespace: shop, labels: {{ {labels} }} }}\n\
             spec: {{ type: ClusterSetIP, ips: [10.112.0.1], ports: [{{ port: 80 }}] }}\n"
        )
    };
    let folder = folder("imports");
    fs::write(folder.join("all.yaml"), import("seen", "dns: x") + &import("hidden", "app: web")).unwrap();
    let imports = |namespace_labels: &str, labels: &str| {
        let (labels, namespace_labels) = (labels.to_owned(), namespace_labels.to_owned());
        let edge = Edge::start(&Request { multicluster: true, labels, namespace_labels, ..request(&folder) });
        edge.wait_synced();
        let clusterset = edge.index.clusterset().unwrap();
        ["seen", "hidden"].map(|name| clusterset.service(b"shop", name.as_bytes(), |_| ()).is_some())
    };
    assert_eq!(imports("", "app=other"), [true, true]);
    assert_eq!(imports("dns", ""), [true, false]);
}

#[test]
fn applies_changes_of_files() {
    let folder = folder("changes");
    let (a, b) = (folder.join("a.yaml"), folder.join("deep/er/b.yml"));
    fs::write(&a, service("web", "clusterIP: 10.96.0.1")).unwrap();
    fs::write(folder.join("notes.txt"), "no manifest").unwrap();
    fs::write(folder.join(".hidden.yaml"), service("hidden", "clusterIP: None")).unwrap();
    let edge = Edge::start(&request(&folder));
    edge.wait_service("shop/web", "10.96.0.1 :-/");
    replace(&a, &service("web", "clusterIP: 10.96.0.2"));
    edge.wait_service("shop/web", "10.96.0.2 :-/");
    fs::create_dir_all(b.parent().unwrap()).unwrap();
    fs::write(&b, service("late", "clusterIP: None")).unwrap();
    edge.wait_service("shop/late", "Headless :-/");
    // If an object occurs twice, the one in the later file wins.
    replace(&b, &service("web", "clusterIP: 10.96.0.3"));
    edge.wait_service("shop/web", "10.96.0.3 :-/");
    edge.wait_service("shop/late", "none");
    fs::remove_file(&b).unwrap();
    edge.wait_service("shop/web", "10.96.0.2 :-/");
    fs::remove_file(&a).unwrap();
    edge.wait_service("shop/web", "none");
    edge.wait("the end of the namespace", |index| !index.namespace_exists(b"shop"));
    assert_eq!(edge.service("shop/hidden"), "none");
    assert_eq!(edge.logged("["), 0);
}

#[test]
fn an_invalid_file_keeps_its_last_content() {
    let folder = folder("mistakes");
    let (good, bad) = (folder.join("good.yaml"), folder.join("bad.yaml"));
    fs::write(&good, service("good", "clusterIP: None")).unwrap();
    fs::write(&bad, service("bad", "clusterIP: None")).unwrap();
    let edge = Edge::start(&request(&folder));
    edge.wait_service("shop/bad", "Headless :-/");
    replace(&bad, "kind: Service\napiVersion: v1\nspec: [\n");
    let line = format!("[WARNING] plugin/kubernetes: {}:", bad.display());
    edge.wait_log(&line);
    replace(&good, &service("better", "clusterIP: None"));
    edge.wait_service("shop/better", "Headless :-/");
    assert_eq!(edge.service("shop/bad"), "Headless :-/");
    assert_eq!(edge.logged(&line), 1, "not once a second");
    assert_eq!(edge.metric("portolan_kubernetes_manifest_errors_total{reason=\"syntax\"}"), 1.0);
    replace(&bad, &service("bad", "clusterIP: 10.96.0.9"));
    edge.wait_service("shop/bad", "10.96.0.9 :-/");
}

#[test]
fn an_invalid_object_does_not_affect_the_rest_of_its_file() {
    let folder = folder("one_mistake");
    let file = folder.join("all.yaml");
    let ports = |port: &str| service("bad", &format!("clusterIP: None, ports: [{{ port: {port} }}]"));
    let good = |ip: &str| service("good", &format!("clusterIP: {ip}"));
    fs::write(&file, ports("70000") + &good("10.96.0.1")).unwrap();
    let edge = Edge::start(&request(&folder));
    edge.wait_service("shop/good", "10.96.0.1 :-/");
    assert_eq!(edge.service("shop/bad"), "none");
    let line = format!(
        "[WARNING] plugin/kubernetes: {}:5: `70000` is too large for a port; the maximum is 65535",
        file.display()
    );
    edge.wait_log(&format!("{line}; it is ignored"));
    replace(&file, &(ports("80") + &good("10.96.0.2")));
    edge.wait_service("shop/bad", "Headless :80/TCP");
    // An object that cannot be read any more keeps its last state, also if its name cannot be read.
    replace(&file, &(ports("70000") + &good("10.96.0.3")));
    edge.wait_service("shop/good", "10.96.0.3 :-/");
    edge.wait_log(&format!("{line}; its last known state is still served"));
    replace(&file, &format!("---\nkind: [\n{}", good("10.96.0.4")));
    edge.wait_service("shop/good", "10.96.0.4 :-/");
    assert_eq!(edge.service("shop/bad"), "Headless :80/TCP");
    assert_eq!(edge.metric("portolan_kubernetes_manifest_errors_total{reason=\"syntax\"}"), 3.0);
    replace(&file, &good("10.96.0.5"));
    edge.wait_service("shop/bad", "none");
}

#[test]
fn says_whether_an_unreadable_file_is_still_served() {
    let folder = folder("unreadable_files");
    let file = folder.join("all.yaml");
    fs::write(&file, b"\xff").unwrap();
    let edge = Edge::start(&request(&folder));
    let line = |end: &str| format!("[WARNING] plugin/kubernetes: cannot open {}: {end}", file.display());
    edge.wait("the report", |_| edge.lines().iter().any(|line| line.ends_with("; nothing of it is served")));
    assert_eq!(edge.logged(&line("")), 1, "{:?}", edge.lines());
    replace(&file, &service("web", "clusterIP: None"));
    edge.wait_service("shop/web", "Headless :-/");
    fs::write(folder.join("all.new"), b"\xff").unwrap();
    fs::rename(folder.join("all.new"), &file).unwrap();
    edge.wait("the report", |_| {
        edge.lines().iter().any(|line| line.ends_with("; its last known content is still served"))
    });
    assert_eq!(edge.service("shop/web"), "Headless :-/");
}

#[test]
fn an_invalid_file_does_not_affect_others() {
    let folder = folder("wrong_from_the_start");
    fs::write(folder.join("bad.json"), "{\n  \"kind\": \"Service\",\n  oops\n}").unwrap();
    fs::write(folder.join("good.yaml"), service("good", "clusterIP: None")).unwrap();
    let edge = Edge::start(&request(&folder));
    edge.wait_synced();
    assert_eq!(edge.service("shop/good"), "Headless :-/");
    edge.wait_log(&format!(
        "[WARNING] plugin/kubernetes: {}:3: key must be a string",
        folder.join("bad.json").display()
    ));
}

#[test]
fn warns_about_likely_mistakes_and_serves_the_rest() {
    let folder = folder("likely_mistakes");
    let misspelled = service("bad", "clusterIP: None").replace("kind: Service", "kind: Servic");
    fs::write(folder.join("all.yaml"), format!("{}{}", misspelled.repeat(12), service("good", "clusterIP: None")))
        .unwrap();
    let edge = Edge::start(&request(&folder));
    edge.wait_synced();
    assert_eq!(edge.service("shop/good"), "Headless :-/");
    let place = format!("[WARNING] plugin/kubernetes: {}", folder.join("all.yaml").display());
    edge.wait_log(&format!("{place}: 2 more warnings are not shown"));
    for line in [3, 8, 48] {
        let text = format!("{place}:{line}: unknown kind `Servic`; did you mean `Service`? The object is ignored");
        assert_eq!(edge.logged(&text), 1, "{:?}", edge.lines());
    }
}

#[test]
fn subscriptions_to_the_same_files_log_a_mistake_once() {
    let (folder, log) = (folder("shared_mistakes"), Log::new(false));
    let misspelled = |name: &str| service(name, "clusterIP: None").replace("kind: Service", "kind: Servic");
    fs::write(folder.join("all.yaml"), misspelled("web")).unwrap();
    let _logged = tracing::subscriber::set_default(log.clone());
    let count = || log.lines().iter().filter(|line| line.contains("unknown kind `Servic`")).count();
    on_a_local_set(async {
        let subscriber = Subscriber::with_timing(&Registry::new(), quick());
        let one = subscriber.subscribe(&request(&folder)).unwrap();
        let other = subscriber.subscribe(&Request { pods: true, ..request(&folder) }).unwrap();
        while !one.index.is_synced() || !other.index.is_synced() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(count(), 1);
        // The same mistake in the next version of the file is a new one.
        replace(&folder.join("all.yaml"), &(misspelled("web") + &service("late", "clusterIP: None")));
        let has_late = |index: &cluster::Index| index.service(b"shop", b"late", |_| ()).is_some();
        while !has_late(&one.index) || !has_late(&other.index) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(count(), 2);
    });
}

#[test]
fn follows_the_symlinks_of_a_mounted_config_map() {
    let folder = folder("config_map");
    let version = |number: u32, ip: &str| {
        let version = folder.join(format!("..2026_{number}"));
        fs::create_dir(&version).unwrap();
        fs::write(version.join("web.yaml"), service("web", &format!("clusterIP: {ip}"))).unwrap();
        let link = folder.join("..data_tmp");
        symlink(version.file_name().unwrap(), &link).unwrap();
        fs::rename(link, folder.join("..data")).unwrap();
    };
    version(1, "10.96.0.1");
    symlink("..data/web.yaml", folder.join("web.yaml")).unwrap();
    let edge = Edge::start(&request(&folder));
    edge.wait_service("shop/web", "10.96.0.1 :-/");
    version(2, "10.96.0.2");
    edge.wait_service("shop/web", "10.96.0.2 :-/");
    assert_eq!(edge.index.counts().services, 1);
}

#[test]
fn stops_at_a_symlink_cycle() {
    let folder = folder("round");
    fs::write(folder.join("web.yaml"), service("web", "clusterIP: None")).unwrap();
    symlink(".", folder.join("again")).unwrap();
    symlink("nowhere", folder.join("dangling.yaml")).unwrap();
    let edge = Edge::start(&request(&folder));
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), "Headless :-/");
    edge.wait_log("[WARNING] plugin/kubernetes: ");
    assert!(edge.metric("portolan_kubernetes_manifest_errors_total{reason=\"too_deep\"}") >= 1.0);
}

#[test]
fn a_vanished_folder_keeps_its_last_content() {
    let folder = folder("vanishing");
    let inner = folder.join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("web.yaml"), service("web", "clusterIP: None")).unwrap();
    let edge = Edge::start(&request(&inner));
    edge.wait_service("shop/web", "Headless :-/");
    fs::rename(&inner, folder.join("away")).unwrap();
    edge.wait_log(&format!("[WARNING] plugin/kubernetes: cannot open {}: no such file", inner.display()));
    assert_eq!(edge.service("shop/web"), "Headless :-/");
    fs::rename(folder.join("away"), &inner).unwrap();
    replace(&inner.join("web.yaml"), &service("web", "clusterIP: 10.96.0.7"));
    edge.wait_service("shop/web", "10.96.0.7 :-/");
    assert_eq!(edge.metric("portolan_kubernetes_manifest_errors_total{reason=\"unreadable\"}"), 1.0);
}
