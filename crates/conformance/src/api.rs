//! Objects in a scratch namespace of a cluster. Deleting the namespace deletes them all.

use std::collections::BTreeSet;
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::objects;
use crate::{RequestError, RunError};

/// Time to wait for the API server's response.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Number of attempts to delete the namespace. A namespace left behind has to be deleted by hand.
const CLEAN_TRIES: u32 = 5;
const CLEAN_PAUSE: Duration = Duration::from_secs(1);

/// Scratch namespace of a cluster.
pub(crate) struct Api {
    client: Client,
    namespace: String,
    created: BTreeSet<(String, String)>,
    /// False while a creation is in flight. If the run is aborted then, the object may still be created.
    is_certain: bool,
}

impl Api {
    pub(crate) const fn new(client: Client, namespace: String) -> Api {
        Api { client, namespace, created: BTreeSet::new(), is_certain: true }
    }

    /// Creates an object, or replaces the one created before.
    pub(crate) async fn put(&mut self, mut object: Value) -> Result<Value, RunError> {
        let (kind, name) = objects::key(&object);
        // The API server assigns the cluster IP.
        if object["spec"]["clusterIP"].as_str().is_some_and(|address| address != "None")
            && let Some(spec) = object["spec"].as_object_mut()
        {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        if self.created.contains(&(kind.clone(), name.clone())) {
            return self.replace(&kind, &name, object).await;
        }
        self.is_certain = false;
        let created = self.send(Method::POST, &self.path(&self.namespace, &kind, ""), Some(&object)).await;
        self.is_certain = true;
        let created = created.map_err(|error| error.during(&format!("create {kind} {name}")))?;
        self.created.insert((kind, name));
        Ok(created)
    }

    async fn replace(&self, kind: &str, name: &str, mut object: Value) -> Result<Value, RunError> {
        let before = self.get(&self.namespace, kind, name).await?;
        object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        let replaced = self.send(Method::PUT, &self.path(&self.namespace, kind, name), Some(&object)).await;
        replaced.map_err(|error| error.during(&format!("change {kind} {name}")))
    }

    /// Reads an object.
    pub(crate) async fn get(&self, namespace: &str, kind: &str, name: &str) -> Result<Value, RunError> {
        let got = self.send(Method::GET, &self.path(namespace, kind, name), None).await;
        got.map_err(|error| error.during(&format!("read {kind} {name}")))
    }

    /// Deletes an object. Succeeds if it does not exist.
    pub(crate) async fn remove(&mut self, kind: &str, name: &str) -> Result<(), RunError> {
        self.created.remove(&(kind.to_owned(), name.to_owned()));
        match self.send(Method::DELETE, &self.path(&self.namespace, kind, name), None).await {
            Ok(_) | Err(RequestError::Refused { code: 404, .. }) => Ok(()),
            Err(error) => Err(error.during(&format!("delete {kind} {name}"))),
        }
    }

    /// Deletes the namespace.
    pub(crate) async fn clean(mut self) -> Result<(), RunError> {
        let namespace = self.namespace.clone();
        if self.created.is_empty() && self.is_certain {
            return Ok(());
        }
        if !self.is_certain {
            sleep(CLEAN_PAUSE).await;
        }
        let mut tries = 1;
        loop {
            match self.remove("Namespace", &namespace).await {
                Err(_) if tries < CLEAN_TRIES => sleep(CLEAN_PAUSE).await,
                outcome => return outcome.map_err(|error| RunError::Left { namespace, reason: error.to_string() }),
            }
            tries += 1;
        }
    }

    /// Returns the path of an object or, with an empty name, of the collection of its kind.
    fn path(&self, namespace: &str, kind: &str, name: &str) -> String {
        let api = objects::api(kind);
        debug_assert!(api.is_some(), "the objects are built in, and so are their kinds");
        let (_, path, plural) = api.unwrap_or_default();
        let slash = if name.is_empty() { "" } else { "/" };
        match kind {
            "Namespace" => format!("{path}/{plural}{slash}{name}"),
            _ => format!("{path}/namespaces/{namespace}/{plural}{slash}{name}"),
        }
    }

    async fn send(&self, method: Method, path: &str, object: Option<&Value>) -> Result<Value, RequestError> {
        let body = object.map_or(Vec::new(), |object| object.to_string().into_bytes());
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = request.body(body).map_err(|error| RequestError::Unreachable(error.to_string()))?;
        match timeout(TIMEOUT, self.client.request(request)).await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(kube::Error::Api(status))) => {
                Err(RequestError::Refused { code: status.code, message: status.message })
            }
            Ok(Err(error)) => Err(RequestError::Unreachable(kubeapi::causes(&error))),
            Err(_) => Err(RequestError::Unreachable(format!("no response within {} s", TIMEOUT.as_secs()))),
        }
    }
}
