//! What is asked of etcd, over one connection.

use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Uri};
use prost::Message;
use skydns::{Credentials, Range};

use crate::Timing;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::grpc::{self, Messages, Sent};
use crate::proto::{
    self, AuthenticateRequest, AuthenticateResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, RangeRequest,
    RangeResponse, WatchCreateRequest, WatchRequest,
};

/// One member of etcd that has let us in.
#[derive(Clone)]
pub(crate) struct Client {
    connection: Connection,
    origin: Uri,
    credentials: Option<Credentials>,
    token: Option<HeaderValue>,
    patience: Duration,
}

impl Client {
    /// Introduces us, if there is somebody to introduce.
    pub(crate) async fn new(
        connection: Connection,
        endpoint: &Endpoint,
        credentials: Option<Credentials>,
        timing: &Timing,
    ) -> Result<Client, Failure> {
        let origin = endpoint.origin();
        let mut client = Client { connection, origin, credentials, token: None, patience: timing.answer };
        client.enter().await?;
        Ok(client)
    }

    /// Gets a token, if etcd gives any. One that was long unused is forgotten there.
    async fn enter(&mut self) -> Result<(), Failure> {
        let Some(Credentials { user, password }) = self.credentials.clone() else { return Ok(()) };
        self.token = None;
        let request = AuthenticateRequest { name: user, password };
        let answer: AuthenticateResponse = match self.ask(proto::AUTHENTICATE, &request).await {
            Err(Failure::Open) => return Ok(()),
            answer => answer?,
        };
        let token =
            HeaderValue::try_from(answer.token).map_err(|_| Failure::Refused("its token is no text".to_owned()))?;
        self.token = Some(token);
        Ok(())
    }

    /// A page of a range, as the store was at a revision; 0 is now.
    pub(crate) async fn range(&mut self, range: &Range, limit: i64, revision: i64) -> Result<RangeResponse, Failure> {
        let (key, range_end) = (range.from.clone(), range.to.clone());
        self.ask_known(proto::RANGE, &RangeRequest { key, range_end, limit, revision }).await
    }

    /// Seconds that are left of a lease; `None` if there is no such lease.
    pub(crate) async fn lease(&mut self, id: i64) -> Result<Option<u32>, Failure> {
        let answer: LeaseTimeToLiveResponse =
            self.ask_known(proto::LEASE_TIME_TO_LIVE, &LeaseTimeToLiveRequest { id }).await?;
        Ok(u32::try_from(answer.ttl).ok())
    }

    /// As [`Client::ask`]; where our token is not known any more, with another one.
    async fn ask_known<Q, A>(&mut self, method: &'static str, question: &Q) -> Result<A, Failure>
    where
        Q: Message,
        A: Message + Default,
    {
        match self.ask(method, question).await {
            Err(Failure::Credentials(_)) if self.credentials.is_some() => {
                self.enter().await?;
                self.ask(method, question).await
            }
            answer => answer,
        }
    }

    /// Watches ranges, each from a revision on. A member that loses the others says so and ends it.
    pub(crate) async fn watch(&mut self, ranges: impl Iterator<Item = (&Range, i64)>) -> Result<Messages, Failure> {
        let creates = ranges.map(|(range, start_revision)| {
            let (key, range_end) = (range.from.clone(), range.to.clone());
            WatchRequest { create: Some(WatchCreateRequest { key, range_end, start_revision, fragment: true }) }
        });
        let fields = [(HeaderName::from_static("hasleader"), HeaderValue::from_static("true"))];
        let sent = Sent::some(creates);
        let patience = self.patience;
        let called = tokio::time::timeout(patience, self.call(proto::WATCH, &fields, sent));
        called.await.unwrap_or(Err(Failure::Silent))
    }

    /// Asks a question with one answer.
    async fn ask<Q, A>(&mut self, method: &'static str, question: &Q) -> Result<A, Failure>
    where
        Q: Message,
        A: Message + Default,
    {
        let patience = self.patience;
        let asked = async {
            let mut answers = self.call(method, &[], Sent::one(question)).await?;
            let answer = answers.next().await?;
            // How it ended stands behind it.
            let _: Option<A> = answers.next().await?;
            answer.ok_or_else(|| Failure::Refused("it answers nothing".to_owned()))
        };
        tokio::time::timeout(patience, asked).await.unwrap_or(Err(Failure::Silent))
    }

    async fn call(
        &mut self,
        method: &'static str,
        fields: &[(HeaderName, HeaderValue)],
        sent: Sent,
    ) -> Result<Messages, Failure> {
        let mut to = self.origin.clone().into_parts();
        to.path_and_query = Some(PathAndQuery::from_static(method));
        let to = Uri::from_parts(to).unwrap_or_default();
        let token = self.token.iter().map(|token| (HeaderName::from_static("token"), token.clone()));
        let fields: Vec<_> = token.chain(fields.iter().cloned()).collect();
        grpc::call(&mut self.connection.sender, to, &fields, sent).await
    }
}
