//! Single requests to an API server: an object, a page of a list or a review, as JSON that is read whole.

use std::time::SystemTime;

use cluster::Source;
use http::header::{ACCEPT, CONTENT_TYPE, DATE, USER_AGENT};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Bytes;
use kube::Client;
use kube::client::Body;

use crate::api::problem;
use crate::causes::causes;
use crate::config_map::ReadError;
use crate::failure::{ApiError, connection_problem};
use crate::{SetupError, credentials};

/// Media type of requests and responses.
const JSON: &str = "application/json";

/// Client for single requests. It does not retry, and has no time limit of its own.
pub struct Reader {
    client: Client,
    url: String,
}

/// Successful response.
pub struct Document {
    /// JSON text.
    pub body: Bytes,
    /// Time of the API server, in whole seconds; `None` if the response does not say.
    pub server_time: Option<SystemTime>,
}

impl Reader {
    /// Creates a client. It does not connect yet.
    ///
    /// Blocks while it reads files and runs the credential plugin of the kubeconfig. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// A missing, unreadable or invalid file or setting.
    pub fn new(source: &Source) -> Result<Reader, SetupError> {
        let url = credentials::server_url(&credentials::config(source)?);
        Ok(Reader { client: credentials::connect(source)?, url })
    }

    /// URL of the API server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Requests a path with its query. Refuses a response of more than `bytes_max` bytes.
    ///
    /// # Errors
    /// No connection, a status other than 2xx, or a response that is too long.
    pub async fn get(&self, path: &str, bytes_max: usize) -> Result<Document, ReadError> {
        self.get_as(JSON, path, bytes_max).await
    }

    /// Requests a document of another media type that is JSON, such as a set of keys.
    ///
    /// # Errors
    /// The errors of [`Reader::get`].
    pub async fn get_as(&self, accept: &'static str, path: &str, bytes_max: usize) -> Result<Document, ReadError> {
        self.send(Method::GET, accept, path, Vec::new(), bytes_max).await.map_err(ReadError)
    }

    /// Posts JSON text to a path, as reviews need it. Refuses a response of more than `bytes_max` bytes.
    ///
    /// # Errors
    /// The errors of [`Reader::get`].
    pub async fn post(&self, path: &str, json: Vec<u8>, bytes_max: usize) -> Result<Document, ReadError> {
        self.send(Method::POST, JSON, path, json, bytes_max).await.map_err(ReadError)
    }

    async fn send(
        &self,
        method: Method,
        accept: &'static str,
        path: &str,
        json: Vec<u8>,
        bytes_max: usize,
    ) -> Result<Document, ApiError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(ACCEPT, accept)
            .header(CONTENT_TYPE, JSON)
            .header(USER_AGENT, concat!("portolan/", env!("CARGO_PKG_VERSION")))
            .body(Body::from(json))
            .map_err(|error| ApiError::Unexpected(error.to_string()))?;
        let response = self.client.send(request).await;
        let (head, body) = response.map_err(|error| ApiError::Connection(connection_problem(&error)))?.into_parts();
        if !head.status.is_success() {
            return Err(problem(head.status.as_u16(), &head.headers, body).await);
        }
        let body = Limited::new(body, bytes_max).collect().await.map_err(|error| {
            match error.downcast_ref::<LengthLimitError>() {
                Some(_) => ApiError::Unexpected(format!("it has more than {bytes_max} bytes")),
                None => ApiError::Connection(causes(&*error)),
            }
        })?;
        Ok(Document { body: body.to_bytes(), server_time: server_time(&head.headers) })
    }
}

/// Parses the header `Date` (RFC 9110 §5.6.7).
fn server_time(headers: &HeaderMap) -> Option<SystemTime> {
    let text = headers.get(DATE)?.to_str().ok()?;
    let time = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(time.timestamp().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use fakeapi::FakeApi;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn reader(api: &FakeApi) -> Reader {
        Reader::new(&Source::Endpoint { url: api.url().to_owned(), tls: None }).unwrap()
    }

    #[test]
    fn reads_an_object_and_the_time_of_the_server() {
        let api = FakeApi::with_shop();
        runtime().block_on(async {
            let path = "/api/v1/namespaces/shop/services/web";
            let document = reader(&api).get(path, 1 << 20).await.unwrap();
            let object: serde_json::Value = serde_json::from_slice(&document.body).unwrap();
            assert_eq!(object["spec"]["clusterIP"], "10.96.0.11");
            let age = SystemTime::now().duration_since(document.server_time.unwrap()).unwrap();
            assert!(age < Duration::from_secs(10), "{age:?}");
        });
    }

    #[test]
    fn refuses_what_is_missing_or_too_long() {
        let api = FakeApi::with_shop();
        runtime().block_on(async {
            let reader = reader(&api);
            let missing = reader.get("/api/v1/namespaces/shop/services/gone", 1 << 20).await.err().unwrap();
            assert_eq!(missing.status(), Some(404));
            let long = reader.get("/api/v1/namespaces/shop/services/web", 16).await.err().unwrap();
            assert!(long.status().is_none() && long.to_string().contains("more than 16 bytes"), "{long}");
        });
    }

    #[test]
    fn reads_the_time_of_a_response() {
        let mut headers = HeaderMap::new();
        assert!(server_time(&headers).is_none());
        headers.insert(DATE, "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap());
        assert_eq!(server_time(&headers), Some(SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)));
        headers.insert(DATE, "yesterday".parse().unwrap());
        assert!(server_time(&headers).is_none());
    }
}
