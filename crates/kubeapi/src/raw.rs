//! Lists and watches as bytes, for programs that pass objects on: requests with the credentials and the connections of
//! this crate, and bodies that the caller decodes.

use core::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Request, Source};
use hyper::body::Bytes;
use listwatch::Failure;
use metrics::Registry;

use crate::api::{Api, Response};
use crate::body::ResponseBody;
use crate::decode::{Encoding, OutOfSyncError, PROTOBUF};
use crate::failure::ApiError;
use crate::meter::Meter;
use crate::rate_limit::Permit;
use crate::{SetupError, Timing, credentials};

/// Client for responses in Kubernetes protobuf.
pub struct RawClient(Api);

/// Response whose body is read in chunks.
pub struct RawResponse {
    body: ResponseBody,
    /// Counts the request as in flight.
    _permit: Permit,
}

/// Failure of a request or a response.
#[derive(Debug)]
pub struct RawError(ApiError);

impl RawClient {
    /// Creates a client. It does not connect yet. Requests are counted in `registry`.
    ///
    /// # Errors
    /// A missing, unreadable or invalid file or setting.
    pub fn new(source: &Source, registry: &Arc<Registry>) -> Result<RawClient, SetupError> {
        let config = credentials::config(source)?;
        let (timing, meter) = (Rc::new(Timing::default()), Rc::new(Meter::new(registry)));
        Ok(RawClient(Api::new(&Request::new(source.clone()), &config, timing, meter)))
    }

    /// URL of the API server.
    #[must_use]
    pub fn url(&self) -> &str {
        self.0.url()
    }

    /// Requests a path with its query.
    ///
    /// # Errors
    /// No connection, a status other than 2xx, or a response that is not in protobuf.
    pub async fn get(&self, url: &str) -> Result<RawResponse, RawError> {
        let Response { body, encoding, permit } = self.0.get(url, PROTOBUF).await.map_err(RawError)?;
        if encoding != Encoding::Protobuf {
            return Err(RawError(ApiError::Unexpected("it is not in protobuf".to_owned())));
        }
        Ok(RawResponse { body, _permit: permit })
    }

    /// Notes a failure: if new credentials may help, the next request reads them again.
    pub fn note(&self, error: &RawError) {
        if error.0.wants_new_client() {
            self.0.distrust();
        }
    }
}

impl RawResponse {
    /// Returns the next chunk of the body, or `None` at its end. Fails if nothing arrives for `silence`.
    ///
    /// # Errors
    /// The connection broke, or nothing arrived.
    pub async fn next(&mut self, silence: Duration) -> Result<Option<Bytes>, RawError> {
        self.body.next(silence).await.map_err(RawError)
    }
}

impl RawError {
    /// Error for a body that ended in the middle.
    #[must_use]
    pub const fn cut() -> RawError {
        RawError(ApiError::Cut)
    }

    /// Error for a watch that ended early, when there is no other error.
    #[must_use]
    pub const fn short() -> RawError {
        RawError(ApiError::Short)
    }

    /// Error for what makes a new list necessary.
    #[must_use]
    pub const fn gone() -> RawError {
        RawError(ApiError::Gone)
    }

    /// Error for a storage that does not have the known version any more, which makes a new list necessary.
    #[must_use]
    pub const fn restored() -> RawError {
        RawError(ApiError::Restored)
    }

    /// Error for a watch that has left out events, which makes a new list necessary. `known` objects were known, and
    /// the API server had `counted`.
    #[must_use]
    pub const fn missed(known: u64, counted: u64) -> RawError {
        RawError(ApiError::Missed { known, counted })
    }

    /// Error for a response with unexpected content.
    #[must_use]
    pub const fn unexpected(problem: String) -> RawError {
        RawError(ApiError::Unexpected(problem))
    }

    /// Error for a status that ended a watch.
    #[must_use]
    pub fn refused(code: u16, message: &str) -> RawError {
        RawError(if code == 410 {
            ApiError::Gone
        } else {
            ApiError::Status { code, message: message.to_owned(), retry_after: None }
        })
    }

    /// Classifies the failure for a [`listwatch::Machine`].
    #[must_use]
    pub const fn classify(&self) -> Failure {
        self.0.classify()
    }
}

impl From<OutOfSyncError> for RawError {
    fn from(error: OutOfSyncError) -> RawError {
        RawError(error.into())
    }
}

impl fmt::Display for RawError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl core::error::Error for RawError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.0.source()
    }
}
