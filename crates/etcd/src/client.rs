//! Requests to etcd over one connection.

use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Uri};
use http::{Method, Request};
use hyper::body::Incoming;
use prost::Message;
use skydns::{Credentials, Range};
use transport::grpc::encode_frame;
use transport::http_client::RequestBody;

use crate::Timing;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::EtcdError;
use crate::proto::{
    self, AuthenticateRequest, AuthenticateResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, RangeRequest,
    RangeResponse, WatchCreateRequest, WatchRequest,
};

/// Maximum size of a response message in bytes, several times the largest value that etcd accepts. Longer pages of a
/// list are requested again with a lower limit.
const MESSAGE_MAX: usize = 16 << 20;

/// Stream of response messages of one call.
pub(crate) type Messages = transport::grpc::Messages<Incoming>;

/// Authenticated client for one member of etcd.
#[derive(Clone)]
pub(crate) struct Client {
    connection: Connection,
    origin: Uri,
    credentials: Option<Credentials>,
    token: Option<HeaderValue>,
    timeout: Duration,
}

impl Client {
    /// Creates a client, and authenticates if there are credentials.
    pub(crate) async fn new(
        connection: Connection,
        endpoint: &Endpoint,
        credentials: Option<Credentials>,
        timing: &Timing,
    ) -> Result<Client, EtcdError> {
        let origin = endpoint.origin.clone();
        let mut client = Client { connection, origin, credentials, token: None, timeout: timing.response };
        client.authenticate().await?;
        Ok(client)
    }

    /// Requests an auth token, unless authentication is disabled. etcd forgets a token that has not been used for some
    /// time.
    async fn authenticate(&mut self) -> Result<(), EtcdError> {
        let Some(Credentials { user, password }) = self.credentials.clone() else { return Ok(()) };
        self.token = None;
        let request = AuthenticateRequest { name: user, password };
        let response: AuthenticateResponse = match self.send(proto::AUTHENTICATE, &request).await {
            Err(EtcdError::Open) => return Ok(()),
            response => response?,
        };
        let token = HeaderValue::try_from(response.token)
            .map_err(|_| EtcdError::Refused("its token is not valid in an HTTP header".to_owned()))?;
        self.token = Some(token);
        Ok(())
    }

    /// Requests a page of a range at a revision, or at the current one if 0.
    pub(crate) async fn range(&mut self, range: &Range, limit: i64, revision: i64) -> Result<RangeResponse, EtcdError> {
        let (key, range_end) = (range.from.clone(), range.to.clone());
        self.send_authenticated(proto::RANGE, &RangeRequest { key, range_end, limit, revision }).await
    }

    /// Returns the remaining seconds of a lease, or `None` if it does not exist.
    pub(crate) async fn lease(&mut self, id: i64) -> Result<Option<u32>, EtcdError> {
        let response: LeaseTimeToLiveResponse =
            self.send_authenticated(proto::LEASE_TIME_TO_LIVE, &LeaseTimeToLiveRequest { id }).await?;
        Ok(u32::try_from(response.ttl).ok())
    }

    /// Sends a request like [`Client::send`]. If etcd rejects the token, authenticates again and repeats the request
    /// once.
    async fn send_authenticated<Q, R>(&mut self, method: &'static str, request: &Q) -> Result<R, EtcdError>
    where
        Q: Message,
        R: Message + Default,
    {
        match self.send(method, request).await {
            Err(EtcdError::Credentials(_)) if self.credentials.is_some() => {
                self.authenticate().await?;
                self.send(method, request).await
            }
            response => response,
        }
    }

    /// Watches ranges, each from a revision. etcd cancels the watch if its member loses the cluster's leader.
    pub(crate) async fn watch(&mut self, ranges: impl Iterator<Item = (&Range, i64)>) -> Result<Messages, EtcdError> {
        let creates = ranges.map(|(range, start_revision)| {
            let (key, range_end) = (range.from.clone(), range.to.clone());
            WatchRequest { create: Some(WatchCreateRequest { key, range_end, start_revision, fragment: true }) }
        });
        let mut request = self.request(
            proto::WATCH,
            RequestBody::open(creates.flat_map(|create| encode_frame(&create)).collect::<Vec<u8>>()),
        )?;
        request.headers_mut().insert("hasleader", HeaderValue::from_static("true"));
        let call = transport::grpc::call(&mut self.connection.sender, request, MESSAGE_MAX);
        Ok(tokio::time::timeout(self.timeout, call).await.map_err(|_| EtcdError::Silent)??)
    }

    /// Sends a request and returns its only response.
    async fn send<Q, R>(&mut self, method: &'static str, request: &Q) -> Result<R, EtcdError>
    where
        Q: Message,
        R: Message + Default,
    {
        let request = self.request(method, RequestBody::whole(encode_frame(request)))?;
        let response =
            async { transport::grpc::call(&mut self.connection.sender, request, MESSAGE_MAX).await?.single().await };
        Ok(tokio::time::timeout(self.timeout, response).await.map_err(|_| EtcdError::Silent)??)
    }

    fn request(&self, method: &'static str, body: RequestBody) -> Result<Request<RequestBody>, EtcdError> {
        let mut to = self.origin.clone().into_parts();
        to.path_and_query = Some(PathAndQuery::from_static(method));
        let uri = Uri::from_parts(to).map_err(|error| EtcdError::Refused(format!("no URL for {method}: {error}")))?;
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        request.headers_mut().extend(self.token.iter().map(|token| (HeaderName::from_static("token"), token.clone())));
        Ok(request)
    }
}
