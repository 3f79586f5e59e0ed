//! Tests of in-cluster and endpoint configuration, outside a Pod.

use std::fs;

use fakeapi::FakeApi;

use super::*;

/// Creates an empty folder for a service account, one per test.
fn account(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("portolan-kubeapi-{}-{test}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn configures_a_pod_from_environment_and_service_account() {
    let api = FakeApi::start_tls();
    api.require_token("token of the account");
    let account = account("in_cluster");
    fs::write(account.join("token"), "token of the account").unwrap();
    fs::write(account.join("ca.crt"), &api.pems().unwrap().authority).unwrap();
    let (host, port) = api.url().strip_prefix("https://").unwrap().rsplit_once(':').unwrap();
    let variable = |name: &str| match name {
        "KUBERNETES_SERVICE_HOST" => Some(host.to_owned()),
        "KUBERNETES_SERVICE_PORT" => Some(port.to_owned()),
        _ => None,
    };
    let config = in_cluster(variable, &account).unwrap();
    check(&config).unwrap();
    assert_eq!(super::host(&config), format!("{host}:{port}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client(&config, &Timing::default(), HttpVersion::Best).unwrap();
        let request = http::Request::get("/api/v1/services").body(Body::empty()).unwrap();
        assert_eq!(client.send(request).await.unwrap().status(), 200);
    });
    fs::remove_dir_all(account).unwrap();
}

#[test]
fn reports_what_is_missing_outside_of_a_cluster() {
    let account = account("no_cluster");
    let environment = |name: &str| Some(if name.ends_with("HOST") { "fd00::1" } else { "443" }.to_owned());
    let problem = |outcome: Result<Config, SetupError>| outcome.map(|_| ()).unwrap_err().to_string();
    let missing = problem(in_cluster(|_| None, &account));
    assert_eq!(missing, "unable to load in-cluster configuration: the environment has no KUBERNETES_SERVICE_HOST");
    let no_token = problem(in_cluster(environment, &account));
    assert!(no_token.starts_with("unable to load in-cluster configuration: ") && no_token.contains("token: no such"));
    fs::write(account.join("token"), "x").unwrap();
    fs::write(account.join("ca.crt"), "no certificate").unwrap();
    let config = in_cluster(environment, &account).unwrap();
    assert_eq!(host(&config), "[fd00::1]:443");
    fs::remove_dir_all(account).unwrap();
}

#[test]
fn adds_a_default_scheme_to_an_endpoint() {
    let url = |text: &str, tls: Option<&Tls>| endpoint(text, tls).map(|config| config.cluster_url.to_string()).unwrap();
    let tls = Tls { certificate: "a".into(), key: "b".into(), authority: "c".into() };
    assert_eq!(url("localhost:8080", None), "http://localhost:8080/");
    assert_eq!(url("10.0.0.1:6443", Some(&tls)), "https://10.0.0.1:6443/");
    assert_eq!(url("http://10.0.0.1:6443/prefix", Some(&tls)), "http://10.0.0.1:6443/prefix");
    for (text, host) in [("http://a", "a:80"), ("https://a", "a:443"), ("https://[::1]:6443", "[::1]:6443")] {
        assert_eq!(super::host(&endpoint(text, None).unwrap()), host);
    }
}
