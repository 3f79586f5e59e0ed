//! Manifest texts, valid and invalid.

use super::*;

fn describe(manifest: &Manifest) -> String {
    let (kind, metadata) = manifest.identity();
    format!("{kind} {}/{}", metadata.namespace, metadata.name)
}

fn read(parse: fn(&str) -> Parsed, text: &str) -> Vec<String> {
    let Parsed { manifests, errors, warnings } = parse(text);
    manifests.iter().map(describe).chain(errors.shown.iter().chain(&warnings.shown).map(located)).collect()
}

fn located(error: &ManifestError) -> String {
    format!("{}: {}", error.line, error.text)
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: shop\n";

#[test]
fn reads_each_document_of_a_yaml_file() {
    let deployment =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {selector: {matchLabels: {a: b}}}\n";
    let knative = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: nonsense}\n";
    let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p}}\n\
                - {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: 7}\n\
                - apiVersion: discovery.k8s.io/v1\n  kind: EndpointSlice\n  metadata: {name: s}\n  addressType: FQDN\n";
    for (text, expected) in [
        ("", &[][..]),
        ("# nothing\n", &[]),
        ("---\n---\n# nothing\n...\n", &[]),
        (SERVICE, &["Service shop/web"]),
        (&format!("---\n{SERVICE}---\n{SERVICE}"), &["Service shop/web", "Service shop/web"]),
        (
            &format!("{SERVICE}--- # and\n{deployment}---\n{knative}...\n{SERVICE}"),
            &["Service shop/web", "Service shop/web"],
        ),
        (list, &["Pod /p", "EndpointSlice /s"]),
        (
            "kind: ServiceList\napiVersion: v1\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n",
            &["Service /a", "Service /b"],
        ),
        ("kind: List\napiVersion: v1\nitems:\n", &[]),
        ("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  labels:\n  annotations:\n", &["Namespace /shop"]),
        (
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: e}\nspec: 7\n",
            &["ServiceEntry default/e"],
        ),
        ("apiVersion: example.org/v1\nkind: ServiceEntry\nmetadata: {name: e}\n", &[]),
        (
            "apiVersion: networking.istio.io/v1beta1\nkind: WorkloadEntryList\nitems:\n- metadata: {name: w, namespace: n}\n",
            &["WorkloadEntry n/w"],
        ),
        ("apiVersion: v1\nkind: Endpoints\nmetadata: {name: e}\nsubsets:\n", &["Endpoints /e"]),
        ("{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"json\"}}", &["Pod /json"]),
    ] {
        assert_eq!(read(yaml, text), expected, "{text}");
    }
}

#[test]
fn reads_each_object_of_a_json_file() {
    let service = r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"ports":null}}"#;
    let other = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":[]}"#;
    for (text, expected) in [
        ("", &[][..]),
        (service, &["Service /web"]),
        (&format!("{service}\n{other} {service}"), &["Service /web", "Service /web"]),
        (&format!(r#"{{"kind":"List","items":[{service},{other}]}}"#), &["Service /web"]),
        (
            r#"{"kind":"EndpointSliceList","items":[{"metadata":{"name":"s"},"addressType":"IPv4"}]}"#,
            &["EndpointSlice /s"],
        ),
    ] {
        assert_eq!(read(json, text), expected, "{text}");
    }
}

#[test]
fn reports_the_line_of_an_error() {
    let port = "spec:\n  ports:\n  - port: eighty\n";
    for (text, line) in [
        (format!("{SERVICE}{port}"), 8),
        (format!("# a comment\n---\n{SERVICE}---\n{SERVICE}{port}"), 16),
        ("a: [1\nb: 2\n".to_owned(), 2),
        (format!("{SERVICE}---\nkind: x\n  y: z\n"), 8),
        ("apiVersion: v1\nkind: List\nitems:\n- {kind: x}\n- {apiVersion: v1, kind: Pod, metadata: 7}\n".to_owned(), 5),
        (format!("# a comment\n---\nx: &a eighty\n{SERVICE}spec:\n  ports:\n  - port: *a\n"), 11),
        ("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {labels: 7}\n".to_owned(), 1),
        ("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPX\n".to_owned(), 3),
    ] {
        let errors = yaml(&text).errors.shown;
        let [error] = &errors[..] else { panic!("{text}: {errors:?}") };
        assert_eq!(error.line, line, "{text}\n{}", error.text);
        assert!(!error.text.contains('\n') && !error.text.is_empty());
        assert!(!error.text.contains("line"), "a second line number: {}", error.text);
    }
    for (text, line) in [
        ("{\n\"kind\": \"Pod\",\n}", 3),
        ("{}\n{\n\"kind\": 7}", 3),
        ("{\"kind\":\"List\",\n\"items\":[\n{},\n{\"kind\":\n7}]}", 5),
        ("{\"apiVersion\":\"v1\",\"kind\":\"Service\",\n\"spec\":{\"ports\":[\n{\"port\":\"x\"}]}}", 3),
        ("{\"kind\":", 1),
    ] {
        let errors = json(text).errors.shown;
        let [error] = &errors[..] else { panic!("{text}: {errors:?}") };
        assert_eq!(error.line, line, "{text}: {}", error.text);
        assert!(!error.text.contains("at line"));
    }
}

#[test]
fn reports_the_line_of_a_likely_mistake() {
    let kind = "unknown kind `Servic`; did you mean `Service`? The object is ignored";
    let address = "cluster IP `10.96.0.300` of Service `web` is not an IP address; \
                   use an IP address, `None`, or remove it";
    let misspelled = SERVICE.replace("Service", "Servic");
    let in_yaml = format!("# first\n---\n{misspelled}---\n{SERVICE}spec:\n  clusterIP: 10.96.0.300\n");
    let listed = "kind: ServiceList\nitems:\n- metadata: {name: web}\n\n- metadata: {name: web}\n  \
                  spec: {clusterIP: 10.96.0.300}\n- kind: Servic\n  apiVersion: v1\n";
    let both = format!("{SERVICE}spec:\n  clusterIP: 10.96.0.300\n  clusterIPs:\n  - 10.96.0.300\n  - None\n");
    let in_json = r#"{"kind": "List", "items": [
        {"kind": "Servic", "apiVersion": "v1"},
        {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"clusterIP": "10.96.0.300"}}
    ]}"#;
    let (kind, address) = (|line| format!("{line}: {kind}"), |line| format!("{line}: {address}"));
    for (parse, text, expected) in [
        (yaml as fn(&str) -> Parsed, in_yaml.as_str(), vec!["Service shop/web".to_owned(), kind(4), address(15)]),
        (yaml, listed, vec!["Service /web".to_owned(), "Service /web".to_owned(), address(5), kind(7)]),
        (yaml, &both, vec!["Service shop/web".to_owned(), address(9)]),
        (json, in_json, vec!["Service /web".to_owned(), kind(2), address(3)]),
    ] {
        assert_eq!(read(parse, text), expected, "{text}");
    }
}

#[test]
fn an_invalid_object_does_not_affect_the_others() {
    let port = "spec: {ports: [{port: 70000}]}\n";
    let too_large = "`70000` is too large for a port; the maximum is 65535";
    let broken = format!("{SERVICE}---\n{SERVICE}{port}---\nkind: [\n---\n{SERVICE}");
    let list = "kind: ServiceList\nitems:\n- {metadata: {name: a}}\n- {metadata: {name: b}, spec: {ports: [{port: 70000}]}}\n\
                - {metadata: {name: c}}\n";
    let in_json = r#"{"kind": "ServiceList", "items": [{"metadata": {"name": "a"}},
        {"metadata": {"name": "b"}, "spec": {"ports": [{"port": 70000}]}}, {"metadata": {"name": "c"}}]}"#;
    let two = ["Service /a".to_owned(), "Service /c".to_owned()];
    let found = read(yaml, &broken);
    assert_eq!(found[..3], ["Service shop/web", "Service shop/web", &format!("12: {too_large}")]);
    assert!(found[3].starts_with("14: "), "{found:?}");
    assert_eq!(read(yaml, list), [&two[..], &[format!("4: {too_large}")]].concat());
    assert_eq!(read(json, in_json), [&two[..], &[format!("2: {too_large}")]].concat());
    assert_eq!(read(json, &format!("{in_json}\n{{]"))[..3], [&two[..], &[format!("2: {too_large}")]].concat());
}

#[test]
fn reports_what_is_wrong_with_a_port() {
    for (port, expected) in [
        ("port: 70000", "`70000` is too large for a port; the maximum is 65535"),
        ("port: -1", "`-1` is not a port; use a number from 1 to 65535"),
        ("port: eighty", "`eighty` is not a port; use a number from 1 to 65535"),
        ("port: '80'", "`80` is not a port; use a number from 1 to 65535"),
        ("port: 80, targetPort: 70000", "`70000` is too large for a port; the maximum is 65535"),
    ] {
        let text = format!("{SERVICE}spec:\n  ports:\n  - {{{port}}}\n");
        assert_eq!(read(yaml, &text), [format!("8: {expected}")], "{port}");
    }
    let text = format!("{SERVICE}spec: {{ports: [{{port: , targetPort: http}}, {{port: 80, targetPort: 81}}]}}\n");
    assert_eq!(read(yaml, &text), ["Service shop/web"]);
}

#[test]
fn reports_misspelled_fields_and_bad_addresses() {
    let slice = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s}\naddressType: IPv4\n";
    let field =
        |field: &str, near: &str| format!("unknown field `{field}`; did you mean `{near}`? The field is ignored");
    for (text, expected) in [
        (format!("{SERVICE}spec:\n  clusterIp: None\n"), format!("7: {}", field("clusterIp", "clusterIP"))),
        (format!("# first\n---\n{SERVICE}spec:\n  portz: []\n"), format!("9: {}", field("portz", "ports"))),
        (
            format!("{slice}endpoints:\n- addresses:\n  - 10.1.0.1\n  - 10.1.0.300\n"),
            "8: address `10.1.0.300` of EndpointSlice `s` is not an IPv4 address; the endpoint is ignored".to_owned(),
        ),
        (
            format!("{slice}endpoints:\n- addresses: ['fd00::1']\n"),
            "6: address `fd00::1` of EndpointSlice `s` is not an IPv4 address; the endpoint is ignored".to_owned(),
        ),
        (
            "apiVersion: v1\nkind: Endpoints\nmetadata: {name: e}\nsubsets:\n- addresses:\n  - ip: web\n".to_owned(),
            "6: address `web` of Endpoints `e` is not an IP address; it is ignored".to_owned(),
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nstatus:\n  podIP: web\n".to_owned(),
            "5: address `web` of Pod `p` is not an IP address; it is ignored".to_owned(),
        ),
    ] {
        assert_eq!(read(yaml, &text)[1..], [expected], "{text}");
    }
}

#[test]
fn refuses_an_alias_bomb() {
    let bomb = (1..30).map(|at| format!("a{at}: &a{at} [*a{}, *a{}]\n", at - 1, at - 1)).collect::<String>();
    let parsed = yaml(&format!("a0: &a0 [x]\n{bomb}kind: List\n---\n{SERVICE}"));
    assert_eq!((parsed.errors.shown.len(), parsed.manifests.len()), (1, 1));
}
