//! Objects that the checks query, and values that become known at run time.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::built_in_error::{BuiltInError, PlaceholderError};
use serde_json::{Value, json};

/// Built-in objects, with placeholders for values.
const OBJECTS: &str = include_str!("objects.yaml");

/// API of each kind used here: `apiVersion`, path and plural name.
const KINDS: [(&str, &str, &str, &str); 4] = [
    ("Namespace", "v1", "/api/v1", "namespaces"),
    ("Service", "v1", "/api/v1", "services"),
    ("Endpoints", "v1", "/api/v1", "endpoints"),
    ("EndpointSlice", "discovery.k8s.io/v1", "/apis/discovery.k8s.io/v1", "endpointslices"),
];

/// Values of the placeholders: `zone`, `ns`, `svc`, and `SERVICE-4` and `SERVICE-6` for the cluster IPs of a Service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values(BTreeMap<String, String>);

impl Values {
    /// Creates the values known from the start. The zone has no trailing dot.
    pub(crate) fn new(zone: &str, namespace: &str) -> Values {
        let known =
            [("zone", zone.to_owned()), ("ns", namespace.to_owned()), ("svc", format!("{namespace}.svc.{zone}"))];
        Values(host::sorting::map(known.into_iter().map(|(name, value)| (name.to_owned(), value))))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Adds the cluster IPs of a Service and removes its old ones.
    pub(crate) fn learn(&mut self, service: &Value) {
        let name = service["metadata"]["name"].as_str().unwrap_or_default();
        self.0.retain(|key, _| key.strip_suffix("-4").or(key.strip_suffix("-6")) != Some(name));
        let spec = &service["spec"];
        let all = spec["clusterIPs"].as_array().map_or(std::slice::from_ref(&spec["clusterIP"]), Vec::as_slice);
        for address in all.iter().filter_map(|address| address.as_str()?.parse::<IpAddr>().ok()) {
            let family = if address.is_ipv4() { 4 } else { 6 };
            self.0.insert(format!("{name}-{family}"), address.to_string());
        }
    }

    /// Replaces the placeholders in a text.
    ///
    /// # Errors
    /// Fails if a placeholder has no value, with the name of the first one.
    pub(crate) fn fill(&self, text: &str) -> Result<String, PlaceholderError> {
        let mut parts = text.split('$');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            let end = part.bytes().position(|byte| !is_name(byte)).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            filled.push_str(self.get(name).ok_or_else(|| PlaceholderError(name.to_owned()))?);
            filled.push_str(rest);
        }
        Ok(filled)
    }
}

/// Returns the words for the value of a placeholder: Service `web` and `IPv6 cluster IP` for `web-6`.
pub(crate) fn service_and_address(placeholder: &str) -> (&str, &'static str) {
    match placeholder.rsplit_once('-') {
        Some((service, "4")) => (service, "IPv4 cluster IP"),
        Some((service, "6")) => (service, "IPv6 cluster IP"),
        _ => (placeholder, "known value"),
    }
}

/// Returns the manifests as YAML.
pub(crate) fn manifests(values: &Values) -> Result<String, PlaceholderError> {
    values.fill(OBJECTS)
}

/// Returns the objects in the order of their creation.
pub(crate) fn objects(values: &Values) -> Result<Vec<Value>, BuiltInError> {
    dynserde::yaml_documents(&manifests(values)?).map_err(|error| BuiltInError::Yaml(error.into()))
}

/// Builds an object from its kind, its name and its other fields in YAML flow style.
pub(crate) fn object(values: &Values, kind: &str, name: &str, rest: &str) -> Result<Value, BuiltInError> {
    let mut object: Value = dynserde::yaml(&values.fill(rest)?).map_err(|error| BuiltInError::Yaml(error.into()))?;
    object["kind"] = kind.into();
    object["apiVersion"] = api(kind).map_or(Value::Null, |(version, ..)| json!(version));
    object["metadata"]["name"] = name.into();
    object["metadata"]["namespace"] = values.get("ns").into();
    Ok(object)
}

/// Returns the kind and the name of an object.
pub(crate) fn key(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Returns the `apiVersion`, path and plural name of a kind.
pub(crate) fn api(kind: &str) -> Option<(&'static str, &'static str, &'static str)> {
    KINDS.iter().find(|(name, ..)| *name == kind).map(|(_, version, path, plural)| (*version, *path, *plural))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_objects_have_api_version_and_namespace() {
        let values = Values::new("cluster.local", "scratch");
        let objects = objects(&values).unwrap();
        assert_eq!(key(&objects[0]), ("Namespace".to_owned(), "scratch".to_owned()));
        for object in &objects {
            let (kind, name) = key(object);
            assert_eq!(object["apiVersion"], api(&kind).unwrap().0, "{name}");
            let own = if kind == "Namespace" { Value::Null } else { "scratch".into() };
            assert_eq!(object["metadata"]["namespace"], own, "{name}");
        }
        let (kinds, names): (Vec<_>, Vec<_>) = objects.iter().map(key).unzip();
        assert_eq!((kinds.last().unwrap().as_str(), names.last().unwrap().as_str()), ("EndpointSlice", "zz-last-v4"));
    }

    #[test]
    fn replaces_placeholders_that_have_a_value() {
        let mut values = Values::new("test", "a");
        let web = |ips: &[&str]| json!({ "metadata": { "name": "web" }, "spec": { "clusterIPs": ips } });
        values.learn(&web(&["10.0.0.1", "fd00::0:1"]));
        assert_eq!(values.fill("is $web-4, $web-6 web.$svc."), Ok("is 10.0.0.1, fd00::1 web.a.svc.test.".to_owned()));
        values.learn(&web(&["10.0.0.2"]));
        assert_eq!(values.fill("$web-4 $web-6"), Err(PlaceholderError("web-6".to_owned())));
        let made = object(&values, "Service", "x", "{spec: {externalName: $svc}}").unwrap();
        assert_eq!(
            (&made["spec"]["externalName"], &made["metadata"]["namespace"]),
            (&json!("a.svc.test"), &json!("a"))
        );
    }
}
