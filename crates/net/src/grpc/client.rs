//! Upstreams that are asked by gRPC: one connection each, which carries all the calls of this worker.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use engine::{Exchange, ExchangeError, Exchanged};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::header::{CONTENT_TYPE as TYPE_OF_CONTENT, TE};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Mutex;
use tokio::time::timeout_at;

use super::server::Here;
use super::{CONTENT_TYPE, Ended, FRAME_MAX, PATH, framed, how_it_ended, unframed};
use crate::client::{Key, Route, connect_http2, network};
use crate::clock::MonotonicClock;

/// How often an upstream with calls on their way is asked whether it is still there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// Upstreams over gRPC, for one worker.
#[derive(Default)]
pub(crate) struct GrpcClient {
    connections: RefCell<HashMap<Key, Connection>>,
}

/// The connection to one upstream, if there is one; who opens it keeps the others waiting. It keeps the TLS that its key
/// names by its place in memory.
type Connection = Rc<(Route, Mutex<Option<Sender>>)>;
type Sender = SendRequest<Full<Bytes>>;

impl GrpcClient {
    /// Asks an upstream once.
    pub(crate) async fn exchange(&self, exchange: Exchange<'_>) -> Result<Exchanged, ExchangeError> {
        let until = MonotonicClock::instant(exchange.until);
        let asked = timeout_at(until, async {
            let (mut sender, reused) = self.sender(&exchange).await?;
            let response = sender.send_request(request(&exchange)?).await.map_err(|error| broken(&error))?;
            Ok(Exchanged { reply: reply(response).await?, reused, local: None })
        });
        asked.await.unwrap_or(Err(ExchangeError::Timeout { local: None }))
    }

    /// A way to the upstream, and whether it was open before.
    async fn sender(&self, exchange: &Exchange<'_>) -> Result<(Sender, bool), ExchangeError> {
        let route = Route::new((exchange.to, exchange.tls), exchange.connections);
        let connection = self.connection(route);
        let (route, open) = &*connection;
        let mut open = open.lock().await;
        if let Some(sender) = open.as_mut()
            && sender.ready().await.is_ok()
        {
            return Ok((sender.clone(), true));
        }
        let stream = connect_http2(route).await.map_err(|error| network("dial", &error))?;
        let mut builder = Builder::new(Here);
        builder.timer(TokioTimer::new()).keep_alive_interval(PING_EVERY).keep_alive_timeout(PING_TIMEOUT);
        let (sender, driver) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
        tokio::task::spawn_local(driver);
        *open = Some(sender.clone());
        Ok((sender, false))
    }

    /// The place of the connection to an upstream; those that nobody can use any more are forgotten.
    fn connection(&self, route: Route) -> Connection {
        let mut connections = self.connections.borrow_mut();
        let key = route.key();
        if !connections.contains_key(&key) {
            connections.retain(|_, connection| connection.1.try_lock().map_or(true, |open| is_open(open.as_ref())));
        }
        Rc::clone(connections.entry(key).or_insert_with(|| Rc::new((route, Mutex::new(None)))))
    }
}

fn is_open(sender: Option<&Sender>) -> bool {
    sender.is_some_and(|sender| !sender.is_closed())
}

fn request(exchange: &Exchange<'_>) -> Result<Request<Full<Bytes>>, ExchangeError> {
    let scheme = if exchange.tls.is_some() { "https" } else { "http" };
    let request = Request::post(format!("{scheme}://{}{PATH}", exchange.to))
        .header(TYPE_OF_CONTENT, CONTENT_TYPE)
        .header(TE, "trailers")
        .body(Full::new(framed(exchange.query)));
    request.map_err(|_| ExchangeError::Unreadable)
}

/// The message that an upstream has answered with.
async fn reply(response: Response<Incoming>) -> Result<Vec<u8>, ExchangeError> {
    if !response.status().is_success() {
        let error = format!("HTTP status {}", response.status());
        return Err(ExchangeError::Network { during: "read", error });
    }
    // An upstream that has nothing to send says so before the body.
    how_it_ended(response.headers()).map_err(refused)?;
    let body = Limited::new(response.into_body(), FRAME_MAX).collect().await;
    let body = body.map_err(|error| ExchangeError::Network { during: "read", error: error.to_string() })?;
    if let Some(trailers) = body.trailers() {
        how_it_ended(trailers).map_err(refused)?;
    }
    unframed(body.to_bytes()).map(|message| message.to_vec()).map_err(|_| ExchangeError::Unreadable)
}

fn refused(Ended { code, reason }: Ended) -> ExchangeError {
    ExchangeError::Status { code, reason }
}

/// What a connection says that cannot be used.
fn broken(error: &hyper::Error) -> ExchangeError {
    let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    ExchangeError::Network { during: "write", error: cause }
}
