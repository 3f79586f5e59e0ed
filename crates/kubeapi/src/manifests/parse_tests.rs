//! Manifest texts, valid and invalid.

use super::*;

fn describe(manifest: &Manifest) -> String {
    let (kind, metadata) = match manifest {
        Manifest::Namespace(namespace) => ("Namespace", &namespace.metadata),
        Manifest::Service(service) => ("Service", &service.metadata),
        Manifest::EndpointSlice(slice) => ("EndpointSlice", &slice.metadata),
        Manifest::Endpoints(endpoints) => ("Endpoints", &endpoints.metadata),
        Manifest::Pod(pod) => ("Pod", &pod.metadata),
        Manifest::ServiceImport(import) => ("ServiceImport", &import.metadata),
        Manifest::Mesh(manifest) => ("Mesh", &manifest.metadata),
    };
    format!("{kind} {}/{}", metadata.namespace, metadata.name)
}

fn read(parse: fn(&str) -> Result<Vec<Manifest>, Problem>, text: &str) -> Vec<String> {
    match parse(text) {
        Ok(manifests) => manifests.iter().map(describe).collect(),
        Err(problem) => vec![format!("{}: {}", problem.line, problem.text)],
    }
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
        ("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: e}\nspec: 7\n", &["Mesh default/e"]),
        ("apiVersion: example.org/v1\nkind: ServiceEntry\nmetadata: {name: e}\n", &[]),
        (
            "apiVersion: networking.istio.io/v1beta1\nkind: WorkloadEntryList\nitems:\n- metadata: {name: w, namespace: n}\n",
            &["Mesh n/w"],
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
        ("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: 7}\n".to_owned(), 1),
        ("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPX\n".to_owned(), 3),
    ] {
        let problem = yaml(&text).unwrap_err();
        assert_eq!(problem.line, line, "{text}\n{}", problem.text);
        assert!(!problem.text.contains('\n') && !problem.text.is_empty());
    }
    for (text, line) in [
        ("{\n\"kind\": \"Pod\",\n}", 3),
        ("{}\n{\n\"kind\": 7}", 3),
        ("{\"kind\":\"List\",\n\"items\":[\n{},\n{\"kind\":\n7}]}", 5),
        ("{\"apiVersion\":\"v1\",\"kind\":\"Service\",\n\"spec\":{\"ports\":[\n{\"port\":\"x\"}]}}", 3),
        ("{\"kind\":", 1),
    ] {
        let problem = json(text).unwrap_err();
        assert_eq!(problem.line, line, "{text}: {}", problem.text);
        assert!(!problem.text.contains("at line"));
    }
}

#[test]
fn refuses_an_alias_bomb() {
    let bomb = (1..30).map(|at| format!("a{at}: &a{at} [*a{}, *a{}]\n", at - 1, at - 1)).collect::<String>();
    assert!(yaml(&format!("a0: &a0 [x]\n{bomb}kind: List\n")).is_err());
}
