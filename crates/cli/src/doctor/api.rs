//! Requests to the Kubernetes API, as facts.

use std::cell::Cell;
use std::time::SystemTime;

use cluster::Source;
use doctor::objects::{List, Page, Resource};
use doctor::{Known, Unknown};
use kubeapi::{Document, ReadError, Reader};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

/// Number of objects that a request asks for.
const PAGE_OBJECTS: &str = "250";
/// Maximum size of a response in bytes. Most Pods have about 5 KiB; no object has more than 1.5 MiB.
const RESPONSE_MAX: usize = 16 << 20;
/// Maximum number of pages of a list: 10,000 objects. The rest is reported as not read.
const PAGES_MAX: usize = 40;
/// Advice for a request that the role for this command allows.
const ROLE: &str = "; deploy/doctor.yaml has the role";
/// Part of a second by which the header `Date` is late on average, because it has whole seconds.
const DATE_ROUNDING: f64 = 0.5;

/// API server.
pub(super) struct Api {
    reader: Reader,
    clock_ahead: Cell<Option<f64>>,
}

impl Api {
    /// Creates a client. Runs on a blocking thread, because the kubeconfig may name a program for credentials.
    pub(super) async fn connect(source: Source) -> Known<Api> {
        let connecting = tokio::task::spawn_blocking(move || Reader::new(&source));
        let reader = connecting.await.map_err(|error| Unknown::new(error.to_string()))?;
        let reader = reader.map_err(|error| Unknown::new(error.to_string()))?;
        Ok(Api { reader, clock_ahead: Cell::new(None) })
    }

    /// Returns the time of the API server minus that of this machine in seconds, as the first response showed it.
    pub(super) fn clock_ahead(&self) -> Known<f64> {
        self.clock_ahead.get().ok_or_else(|| Unknown::new("no response of the API server has a time"))
    }

    /// Lists a kind of objects in all namespaces. Returns a part if not all arrive before `end`.
    pub(super) async fn all<T: Resource>(&self, end: Instant) -> Known<List<T>> {
        self.list(T::PATH, end).await.map_err(|error| error.reason(&format!("list {}", T::PLURAL)))
    }

    /// Lists custom objects, like [`Api::all`]. A cluster without their definition has none.
    pub(super) async fn custom<T: DeserializeOwned>(&self, path: &str, plural: &str, end: Instant) -> Known<List<T>> {
        match self.list(path, end).await {
            Err(error) if error.is_missing() => Ok(List { items: Vec::new(), cut: false }),
            listed => listed.map_err(|error| error.reason(&format!("list {plural}"))),
        }
    }

    async fn list<T: DeserializeOwned>(&self, path: &str, end: Instant) -> Result<List<T>, RequestError> {
        let (mut items, mut next) = (Vec::new(), String::new());
        for _ in 0..PAGES_MAX {
            match timeout_at(end, self.page::<T>(&page_url(path, &next))).await {
                Ok(Ok(page)) => {
                    items.extend(page.items);
                    next = page.metadata.next;
                }
                // A part is better than nothing, and the report says that it is one.
                _ if !items.is_empty() => break,
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(RequestError::Late),
            }
            if next.is_empty() {
                return Ok(List { items, cut: false });
            }
        }
        Ok(List { items, cut: true })
    }

    async fn page<T: DeserializeOwned>(&self, url: &str) -> Result<Page<T>, RequestError> {
        parse(&self.take(self.reader.get(url, RESPONSE_MAX).await)?)
    }

    /// Reads an object or another document; `None` if it does not exist. `what` completes "may not …" in the reason.
    pub(super) async fn object<T: DeserializeOwned>(&self, path: &str, what: &str) -> Known<Option<T>> {
        let document = self.take(self.reader.get(path, RESPONSE_MAX).await);
        match document {
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error.reason(what)),
            Ok(document) => parse(&document).map(Some).map_err(|error| error.reason(what)),
        }
    }

    /// Posts a review and returns the answer.
    pub(super) async fn review(&self, path: &str, review: &Value) -> Known<Value> {
        let document = self.take(self.reader.post(path, review.to_string().into_bytes(), RESPONSE_MAX).await);
        document.and_then(|document| parse(&document)).map_err(|error| error.reason("create access reviews"))
    }

    /// Remembers the time of the API server.
    fn take(&self, response: Result<Document, ReadError>) -> Result<Document, RequestError> {
        let document = response.map_err(RequestError::Response)?;
        if self.clock_ahead.get().is_none()
            && let Some(time) = document.server_time
        {
            self.clock_ahead.set(Some(seconds_between(SystemTime::now(), time) + DATE_ROUNDING));
        }
        Ok(document)
    }
}

/// Seconds from one time to another; negative if that is earlier.
fn seconds_between(from: SystemTime, to: SystemTime) -> f64 {
    match to.duration_since(from) {
        Ok(ahead) => ahead.as_secs_f64(),
        Err(error) => -error.duration().as_secs_f64(),
    }
}

fn page_url(path: &str, next: &str) -> String {
    let parameters = [("limit", PAGE_OBJECTS), ("continue", next)];
    let parameters = if next.is_empty() { &parameters[..1] } else { &parameters[..] };
    let query = control::query::url("", parameters);
    // The path of a resource may have a selector.
    if path.contains('?') { format!("{path}{}", query.replacen('?', "&", 1)) } else { format!("{path}{query}") }
}

fn parse<T: DeserializeOwned>(document: &Document) -> Result<T, RequestError> {
    serde_json::from_slice(&document.body).map_err(RequestError::Form)
}

/// Reason why a request to the API server gave no value.
#[derive(Debug)]
enum RequestError {
    /// The request failed.
    Response(ReadError),
    /// The response is not what was requested.
    Form(serde_json::Error),
    /// No response in time.
    Late,
}

impl RequestError {
    /// Returns true if the API server does not have what was requested.
    fn is_missing(&self) -> bool {
        matches!(self, RequestError::Response(error) if error.status() == Some(404))
    }

    /// Returns the reason for the report. `what` is what was requested.
    fn reason(&self, what: &str) -> Unknown {
        Unknown::new(match self {
            RequestError::Response(error) if error.status() == Some(403) => {
                // The role leaves out `nodes/proxy`.
                let role = if what.ends_with("/proxy") { "" } else { ROLE };
                format!("the API server refuses to {what} (403){role}")
            }
            RequestError::Response(error) => error.to_string(),
            RequestError::Form(error) => format!("the response of the API server is not understood: {error}"),
            RequestError::Late => format!("the API server did not {what} in time"),
        })
    }
}

impl core::fmt::Display for RequestError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.reason("do this").fmt(out)
    }
}

impl core::error::Error for RequestError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            RequestError::Response(error) => Some(error),
            RequestError::Form(error) => Some(error),
            RequestError::Late => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_the_page_to_a_path_with_or_without_a_query() {
        assert_eq!(page_url("/api/v1/pods", ""), "/api/v1/pods?limit=250");
        let second = page_url("/api/v1/events?fieldSelector=a", "7|b");
        assert_eq!(second, "/api/v1/events?fieldSelector=a&limit=250&continue=7%7Cb");
    }
}
