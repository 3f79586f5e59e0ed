//! Requests for a single object: get, create, replace and delete, with the responses of the real server.
//!
//! Objects get what clients rely on: resource versions and UIDs, and the type and addresses of Services. They are not
//! validated, except for mistakes in the order of requests: a missing namespace, a name that already exists, a
//! changed cluster IP. Deleting a namespace removes all its objects immediately, unlike in the real server.

use core::fmt;

use hyper::Method;
use serde_json::{Value, json};

use crate::Shared;
use crate::query::Query;
use crate::reply::{self, Reply};
use crate::store::{Key, Store};

/// Rejected request: code, reason and message of the Status.
#[derive(Debug)]
struct RequestError(u16, &'static str, String);

impl fmt::Display for RequestError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.2)
    }
}

impl core::error::Error for RequestError {}

/// Answers a request for a single object.
pub(crate) fn answer(method: &Method, query: &Query, object: Value, shared: &Shared) -> Reply {
    let outcome = match *method {
        Method::GET => get(&shared.lock().store, &query.resource, &query.key()).map(|object| (200, object)),
        Method::POST => shared.change(|state| create(&mut state.store, query, object)).map(|object| (201, object)),
        Method::PUT => shared.change(|state| replace(&mut state.store, query, object)).map(|object| (200, object)),
        Method::DELETE => shared.change(|state| remove(&mut state.store, query)).map(|object| (200, object)),
        _ => Err(RequestError(405, "MethodNotAllowed", "the server does not allow this method".to_owned())),
    };
    match outcome {
        Ok((code, object)) => reply::whole(code, object),
        Err(RequestError(code, reason, message)) => reply::refused(code, reason, &message),
    }
}

fn get(store: &Store, resource: &str, key: &Key) -> Result<Value, RequestError> {
    let missing = || RequestError(404, "NotFound", format!("{resource} \"{}\" not found", key.1));
    store.get(resource, key).ok_or_else(missing)
}

fn create(store: &mut Store, query: &Query, mut object: Value) -> Result<Value, RequestError> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let key = (query.namespace.clone(), name.clone());
    if !query.namespace.is_empty() {
        get(store, "namespaces", &(String::new(), query.namespace.clone()))?;
    }
    if name.is_empty() {
        return Err(invalid(query, "", "metadata.name: Required value"));
    }
    if store.get(&query.resource, &key).is_some() {
        return Err(RequestError(409, "AlreadyExists", format!("{} \"{name}\" already exists", query.resource)));
    }
    object["metadata"]["uid"] = format!("00000000-0000-4000-8000-{:012}", store.version + 1).into();
    admit(store, query, key, object, None)
}

fn replace(store: &mut Store, query: &Query, mut object: Value) -> Result<Value, RequestError> {
    let before = get(store, &query.resource, &query.key())?;
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if !version.is_empty() && before["metadata"]["resourceVersion"] != version {
        let message = format!("the object \"{}\" has been modified; apply your changes to the latest", query.name);
        return Err(RequestError(409, "Conflict", message));
    }
    object["metadata"]["uid"] = before["metadata"]["uid"].clone();
    admit(store, query, query.key(), object, Some(&before))
}

fn remove(store: &mut Store, query: &Query) -> Result<Value, RequestError> {
    let before = get(store, &query.resource, &query.key())?;
    if query.resource == "namespaces" {
        store.delete_all_in(&query.name);
    }
    store.delete(&query.resource, &query.namespace, &query.name, true);
    Ok(before)
}

/// Completes an object like the real server and stores it.
fn admit(
    store: &mut Store,
    query: &Query,
    (namespace, name): Key,
    mut object: Value,
    before: Option<&Value>,
) -> Result<Value, RequestError> {
    object["metadata"]["name"] = name.as_str().into();
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.as_str().into();
    }
    if query.resource == "services" {
        complete_service(store, &mut object["spec"], before.map(|before| &before["spec"]))
            .map_err(|message| invalid(query, &name, message))?;
    }
    store.put(object, true);
    get(store, &query.resource, &(namespace, name))
}

/// Sets the defaults and the cluster IPs of a Service.
fn complete_service(store: &mut Store, spec: &mut Value, before: Option<&Value>) -> Result<(), &'static str> {
    if spec["type"].is_null() {
        spec["type"] = "ClusterIP".into();
    }
    for port in spec["ports"].as_array_mut().into_iter().flatten().filter(|port| port["protocol"].is_null()) {
        port["protocol"] = "TCP".into();
    }
    if spec["type"] == "ExternalName" {
        spec["clusterIP"] = Value::Null;
        spec["clusterIPs"] = Value::Null;
        return Ok(());
    }
    let kept = before.filter(|before| before["clusterIP"].is_string());
    if let Some(kept) = kept {
        if spec["clusterIP"].is_string() && spec["clusterIP"] != kept["clusterIP"] {
            return Err("spec.clusterIPs[0]: Invalid value: may not change once set");
        }
        (spec["clusterIP"], spec["clusterIPs"]) = (kept["clusterIP"].clone(), kept["clusterIPs"].clone());
    } else if spec["clusterIP"].is_string() {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    } else {
        let dual = spec["ipFamilyPolicy"].as_str().is_some_and(|policy| policy != "SingleStack");
        let addresses = store.cluster_ips(dual);
        (spec["clusterIP"], spec["clusterIPs"]) = (addresses[0].as_str().into(), json!(addresses));
    }
    Ok(())
}

fn invalid(query: &Query, name: &str, message: &str) -> RequestError {
    RequestError(422, "Invalid", format!("{} \"{name}\" is invalid: {message}", query.resource))
}
