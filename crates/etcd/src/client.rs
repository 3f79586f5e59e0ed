//! What is asked of etcd, over one connection.

use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message;
use skydns::{Credentials, Range};
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{IntoRequest, Request, Streaming};
use tonic_prost::ProstCodec;

use crate::Timing;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::proto::{
    self, AuthenticateRequest, AuthenticateResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, RangeRequest,
    RangeResponse, WatchCreateRequest, WatchRequest, WatchResponse,
};

/// Octets of the longest message that is read: etcd's own longest value several times. Lists are asked for in shorter
/// pages if one is longer.
const MESSAGE_MAX: usize = 16 << 20;

/// One member of etcd that has let us in.
#[derive(Clone)]
pub(crate) struct Client {
    grpc: Grpc<Connection>,
    credentials: Option<Credentials>,
    token: Option<MetadataValue<Ascii>>,
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
        let grpc = Grpc::with_origin(connection, endpoint.origin()).max_decoding_message_size(MESSAGE_MAX);
        let mut client = Client { grpc, credentials, token: None, patience: timing.answer };
        client.enter().await?;
        Ok(client)
    }

    /// Gets a token, if etcd gives any. One that was long unused is forgotten there.
    async fn enter(&mut self) -> Result<(), Failure> {
        let Some(Credentials { user, password }) = self.credentials.clone() else { return Ok(()) };
        self.token = None;
        let request = AuthenticateRequest { name: user, password };
        let answer: AuthenticateResponse = match self.ask(proto::AUTHENTICATE, request).await {
            Err(Failure::Open) => return Ok(()),
            answer => answer?,
        };
        let token = answer.token.parse().map_err(|_| Failure::Refused("its token is no text".to_owned()))?;
        self.token = Some(token);
        Ok(())
    }

    /// A page of a range, as the store was at a revision; 0 is now.
    pub(crate) async fn range(&mut self, range: &Range, limit: i64, revision: i64) -> Result<RangeResponse, Failure> {
        let (key, range_end) = (range.from.clone(), range.to.clone());
        self.ask_known(proto::RANGE, RangeRequest { key, range_end, limit, revision }).await
    }

    /// Seconds that are left of a lease; `None` if there is no such lease.
    pub(crate) async fn lease(&mut self, id: i64) -> Result<Option<u32>, Failure> {
        let answer: LeaseTimeToLiveResponse =
            self.ask_known(proto::LEASE_TIME_TO_LIVE, LeaseTimeToLiveRequest { id }).await?;
        Ok(u32::try_from(answer.ttl).ok())
    }

    /// As [`Client::ask`]; where our token is not known any more, with another one.
    async fn ask_known<Q, A>(&mut self, method: &'static str, question: Q) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        match self.ask(method, question.clone()).await {
            Err(Failure::Credentials(_)) if self.credentials.is_some() => {
                self.enter().await?;
                self.ask(method, question).await
            }
            answer => answer,
        }
    }

    /// Watches ranges, each from a revision on. A member that loses the others says so and ends it.
    pub(crate) async fn watch(
        &mut self,
        ranges: impl Iterator<Item = (&Range, i64)>,
    ) -> Result<Streaming<WatchResponse>, Failure> {
        let creates: Vec<_> = ranges
            .map(|(range, start_revision)| {
                let (key, range_end) = (range.from.clone(), range.to.clone());
                WatchRequest { create: Some(WatchCreateRequest { key, range_end, start_revision, fragment: true }) }
            })
            .collect();
        let mut request = self.signed(tokio_stream::iter(creates).chain(tokio_stream::pending()));
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let mut grpc = self.grpc.clone();
        let asked = async {
            ready(&mut grpc).await?;
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            Ok(grpc.streaming(request, PathAndQuery::from_static(proto::WATCH), codec).await?.into_inner())
        };
        tokio::time::timeout(self.patience, asked).await.unwrap_or(Err(Failure::Silent))
    }

    /// Asks a question with one answer.
    async fn ask<Q, A>(&mut self, method: &'static str, question: Q) -> Result<A, Failure>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let request = self.signed(question);
        let mut grpc = self.grpc.clone();
        let asked = async {
            ready(&mut grpc).await?;
            let codec = ProstCodec::<Q, A>::default();
            Ok(grpc.unary(request, PathAndQuery::from_static(method), codec).await?.into_inner())
        };
        tokio::time::timeout(self.patience, asked).await.unwrap_or(Err(Failure::Silent))
    }

    fn signed<T>(&self, message: T) -> Request<T> {
        let mut request = message.into_request();
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }
}

async fn ready(grpc: &mut Grpc<Connection>) -> Result<(), Failure> {
    grpc.ready().await.map_err(|error| Failure::Connection(crate::failure::causes(&error)))
}
