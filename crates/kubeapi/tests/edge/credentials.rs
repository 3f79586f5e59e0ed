//! Authentication, and verification of the server's certificate.

use cluster::{Request, Source, Tls};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fakeapi::{FakeApi, Fault, service};
use kubeapi::{SetupError, Subscriber};
use metrics::Registry;

use crate::support::{Edge, WEB, folder, on_a_local_set, quick};

/// Writes a kubeconfig whose current context is the server. `user` is the content of the user entry.
fn kubeconfig(folder: &Path, api: &FakeApi, user: &str) -> Source {
    let authority = api.pems().map(|pems| {
        fs::write(folder.join("ca.pem"), &pems.authority).unwrap();
        "certificate-authority: ca.pem"
    });
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: good\n\
         clusters:\n- name: c\n  cluster:\n    server: {}\n    {}\n\
         contexts:\n- name: good\n  context: {{ cluster: c, user: u }}\n- name: bad\n  context: {{ cluster: nosuch, user: u }}\n\
         users:\n- name: u\n  user:\n    {user}\n",
        api.url(),
        authority.unwrap_or_default(),
    );
    let file = folder.join("config");
    fs::write(&file, text).unwrap();
    Source::Kubeconfig { file, context: None }
}

fn tls_shop() -> FakeApi {
    let api = FakeApi::start_tls();
    api.put_shop();
    api
}

fn tls_files(folder: &Path, api: &FakeApi) -> Tls {
    let pems = api.pems().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    Tls {
        certificate: write("client.pem", &pems.certificate),
        key: write("client.key", &pems.key),
        authority: write("ca.pem", &pems.authority),
    }
}

fn program(folder: &Path, script: &str) -> PathBuf {
    // The file of a running program cannot be written to, but it can be replaced.
    let (path, fresh) = (folder.join("plugin"), folder.join("plugin.fresh"));
    fs::write(&fresh, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&fresh, &path).unwrap();
    path
}

#[test]
fn connects_to_an_endpoint_with_a_client_certificate() {
    let folder = folder("endpoint_tls");
    let api = tls_shop();
    let tls = Some(tls_files(&folder, &api));
    let edge = Edge::start(&Request::new(Source::Endpoint { url: api.url().to_owned(), tls }));
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
    assert!(api.seen().iter().all(|seen| seen.certificate && seen.authorization.is_empty()));
}

#[test]
fn accepts_a_self_signed_ca_certificate_that_is_the_given_one() {
    let folder = folder("self_signed");
    let api = FakeApi::start_tls_self_signed();
    api.put_shop();
    let tls = Some(tls_files(&folder, &api));
    for source in [Source::Endpoint { url: api.url().to_owned(), tls }, kubeconfig(&folder, &api, "token: x")] {
        let edge = Edge::start(&Request::new(source));
        edge.wait_synced();
        assert_eq!(edge.service("shop/web"), WEB);
    }
}

#[test]
fn keeps_the_last_ca_while_its_file_is_unusable() {
    let folder = folder("unusable_authority");
    let api = tls_shop();
    let tls = tls_files(&folder, &api);
    let edge = Edge::start(&Request::new(Source::Endpoint { url: api.url().to_owned(), tls: Some(tls.clone()) }));
    edge.wait_synced();
    fs::write(&tls.authority, "no certificate").unwrap();
    api.drop_connections();
    api.put(service("shop", "late", "10.96.0.60"));
    edge.wait_service("shop/late", "10.96.0.60 http:80/TCP");
    edge.wait_log("[WARNING] plugin/kubernetes: CA certificates of the API server: ");
}

#[test]
fn distrusts_another_ca_until_the_files_change() {
    let folder = folder("endpoint_distrust");
    let (api, other) = (tls_shop(), FakeApi::start_tls());
    let tls = tls_files(&folder, &other);
    let request = Request::new(Source::Endpoint { url: api.url().to_owned(), tls: Some(tls.clone()) });
    let edge = Edge::start(&request);
    edge.wait_log("[WARNING] plugin/kubernetes: Failed to watch services: no connection to the API server: ");
    assert!(!edge.index.is_synced() && api.seen().is_empty());
    // Certificates are reloaded from disk.
    tls_files(&folder, &api);
    edge.wait_synced();
    assert!(tls.authority.exists());
}

#[test]
fn reloads_a_rotated_token_file() {
    let folder = folder("token_file");
    let api = tls_shop();
    api.require_token("old");
    fs::write(folder.join("token"), "old").unwrap();
    let source = kubeconfig(&folder, &api, &format!("tokenFile: {}", folder.join("token").display()));
    let edge = Edge::start(&Request::new(source));
    edge.wait_synced();
    api.require_token("new");
    api.drop_connections();
    edge.wait_log("[ERROR] plugin/kubernetes: Failed to watch services: the API server says 401: Unauthorized");
    fs::write(folder.join("token"), "new").unwrap();
    api.put(service("shop", "late", "10.96.0.60"));
    edge.wait_service("shop/late", "10.96.0.60 http:80/TCP");
}

#[test]
fn uses_the_client_certificate_of_a_kubeconfig() {
    let folder = folder("client_certificates");
    let api = tls_shop();
    tls_files(&folder, &api);
    let source = kubeconfig(&folder, &api, "client-certificate: client.pem\n    client-key: client.key");
    let edge = Edge::start(&Request::new(source));
    edge.wait_synced();
    assert!(api.seen().iter().all(|seen| seen.certificate));
}

#[test]
fn takes_an_empty_context_for_the_current_one() {
    let folder = folder("empty_context");
    let api = FakeApi::with_shop();
    let Source::Kubeconfig { file, .. } = kubeconfig(&folder, &api, "token: x") else { panic!() };
    let edge = Edge::start(&Request::new(Source::Kubeconfig { file, context: Some(String::new()) }));
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
}

#[test]
fn uses_the_token_of_an_exec_plugin() {
    let folder = folder("exec_plugin");
    let api = FakeApi::with_shop();
    api.require_token("from-the-program");
    let script = r#"echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-the-program"}}'"#;
    let plugin = program(&folder, script);
    let exec = format!(
        "exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: {}\n      interactiveMode: Never",
        plugin.display()
    );
    let edge = Edge::start(&Request::new(kubeconfig(&folder, &api, &exec)));
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
}

#[test]
fn reports_a_failing_exec_plugin_and_runs_it_again() {
    let folder = folder("exec_fails");
    let api = FakeApi::with_shop();
    let plugin = program(&folder, "exit 1");
    let exec = format!(
        "exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: {}\n      interactiveMode: Never",
        plugin.display()
    );
    let edge = Edge::start(&Request::new(kubeconfig(&folder, &api, &exec)));
    edge.wait_log("[ERROR] plugin/kubernetes: Failed to watch services: no client for the API server: ");
    program(&folder, r#"echo '{"kind":"ExecCredential","status":{"token":"x"}}'"#);
    edge.wait_synced();
}

#[test]
fn subscribe_returns_setup_errors_immediately() {
    let folder = folder("setup_problems");
    let api = FakeApi::with_shop();
    let tls = |folder: &Path| {
        let path = |name: &str| folder.join(name);
        Some(Tls { certificate: path("none.pem"), key: path("none.key"), authority: path("none.pem") })
    };
    let good = kubeconfig(&folder, &api, "token: x");
    let file = folder.join("config");
    fs::write(folder.join("broken"), "clusters: {").unwrap();
    fs::write(
        folder.join("proxied"),
        fs::read_to_string(&file).unwrap().replace("server:", "proxy-url: http://p\n    server:"),
    )
    .unwrap();
    let endpoint = |url: &str| Source::Endpoint { url: url.to_owned(), tls: None };
    let kubeconfig = |name: &str| Source::Kubeconfig { file: folder.join(name), context: None };
    let problem = |source: Source| {
        let mut problem = String::new();
        on_a_local_set(async {
            let subscriber = Subscriber::new(&Registry::new());
            problem =
                subscriber.subscribe(&Request::new(source)).err().map_or(String::new(), |error| error.to_string());
        });
        problem
    };
    assert_eq!(problem(good.clone()), "");
    let Source::Kubeconfig { file, .. } = good else { panic!() };
    for (source, begin, contains) in [
        (endpoint("ftp://a"), "endpoint 'ftp://a': ", "neither http nor https"),
        (endpoint(""), "endpoint 'http://': ", ""),
        (endpoint("http://a b"), "endpoint 'http://a b': ", ""),
        (
            Source::Endpoint { url: "https://127.0.0.1:1".to_owned(), tls: tls(&folder) },
            "credentials for the API server: cannot open ",
            "none.pem: no such file or directory",
        ),
        (kubeconfig("nosuch"), "kubeconfig: cannot open ", "nosuch: no such file or directory"),
        (kubeconfig("broken"), "kubeconfig: ", "broken: "),
        (kubeconfig("proxied"), "kubeconfig: ", "proxied: proxy-url is not supported"),
        (Source::Kubeconfig { file: file.clone(), context: Some("bad".to_owned()) }, "kubeconfig: ", "nosuch"),
        (Source::Kubeconfig { file, context: Some("nosuch".to_owned()) }, "kubeconfig: ", "nosuch"),
        (Source::Manifests(vec![folder.join("nosuch")]), "manifests: cannot open ", "nosuch: no such file"),
    ] {
        let problem = problem(source);
        assert!(problem.starts_with(begin) && problem.contains(contains), "{begin}…{contains}: {problem}");
        assert!(problem.matches("nosuch").count() < 2 && !problem.contains("os error"), "{problem}");
    }
}

#[test]
fn refuses_an_invalid_selector() {
    on_a_local_set(async {
        let folder = folder("bad_selector");
        let source = Source::Manifests(vec![folder.to_path_buf()]);
        let request = Request { labels: "a b".to_owned(), ..Request::new(source) };
        let problem = Subscriber::new(&Registry::new()).subscribe(&request).err().unwrap();
        assert!(matches!(problem, SetupError::Selector { .. }), "{problem}");
    });
}

/// Returns a request for the shop over TLS.
fn over_tls(folder: &Path, api: &FakeApi) -> Request {
    Request::new(Source::Endpoint { url: api.url().to_owned(), tls: Some(tls_files(folder, api)) })
}

/// Watches that start at once may open a connection each, before it is known that the server offers HTTP/2. Those that
/// start later share the first of these, and the others close with their requests.
#[test]
fn all_watches_share_a_connection_over_tls() {
    const RESOURCES: [&str; 3] = ["services", "endpointslices", "namespaces"];
    let (api, folder) = (tls_shop(), folder("http2"));
    let edge = Edge::start_with(&over_tls(&folder, &api), quick());
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
    edge.wait("at most a connection for each watch", |_| (1..=RESOURCES.len()).contains(&api.connections()));
    // The connection is replaced, and one watch after the other continues from its position. Each ends once, and starts
    // again while the others are open.
    for resource in RESOURCES {
        api.script(resource, [Some(Fault::Short)]);
    }
    api.drop_connections();
    api.put(service("shop", "web", "10.96.0.77"));
    edge.wait_service("shop/web", "10.96.0.77 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
    let watches = |seen: &[fakeapi::ReceivedRequest], resource: &str| {
        seen.iter().filter(|seen| seen.is_watch() && seen.resource == resource).count()
    };
    api.wait_seen("each watch, its replacement and the next one", |seen| {
        RESOURCES.iter().all(|resource| watches(seen, resource) >= 3)
    });
    edge.wait("one connection", |_| api.connections() == 1);
}

/// An API server accepts a hundred requests in flight on a connection. A further one would wait without an end.
#[test]
fn many_watches_have_connections_of_their_own() {
    let (api, folder) = (tls_shop(), folder("http1"));
    let namespaces: Vec<String> = (0..17).map(|number| format!("n{number}")).chain(["shop".to_owned()]).collect();
    let edge = Edge::start_with(&Request { namespaces, ..over_tls(&folder, &api) }, quick());
    edge.wait("the Service of the shop", |_| edge.service("shop/web") == WEB);
    api.wait_seen("all watches", |seen| seen.iter().filter(|seen| seen.is_watch()).count() >= 54);
    edge.wait("a connection for each watch", |_| api.connections() >= 54);
}
