//! gRPC client for upstreams: one HTTP/2 connection per upstream carries all calls of a worker.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use engine::{Exchange, ExchangeError, ExchangeReply};
use hyper::Request;
use hyper::client::conn::http2::Builder;
use hyper_util::rt::TokioTimer;
use tokio::sync::Mutex;
use tokio::time::{timeout, timeout_at};
use transport::MonotonicClock;
use transport::grpc::{CallError, Code, call};
use transport::http_client::{self, Http2Sender as Sender, RequestBody, Tasks};
use wire::Reply;

use super::{DnsPacket, PACKET_MAX, PATH, packet};
use crate::client::replies::{CountedBody, Replies};
use crate::client::{Route, RouteKey, WeakOwner, connect_http2, network};

/// HTTP/2 keepalive: interval between pings on a connection with open calls, and time to wait for the reply.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which a connection checks that its owner still exists.
const OWNER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of a response that the upstream may send before they are read: one message of the maximum length.
const STREAM_WINDOW: u32 = 64 << 10;
/// The same for all streams of a connection. They are read at once, so this is a matter of round trips.
const CONNECTION_WINDOW: u32 = 256 << 10;

/// gRPC client of one worker.
pub(crate) struct GrpcClient {
    replies: Rc<Replies>,
    connections: RefCell<HashMap<RouteKey, Rc<Connection>>>,
}

/// Connection to one upstream, if it is open.
struct Connection {
    /// Keeps the address in [`RouteKey`] allocated without keeping the owner alive.
    _owner: Option<WeakOwner>,
    /// Locked while connecting, so that other queries wait for the result.
    open: Mutex<Option<Sender>>,
}

impl GrpcClient {
    pub(crate) fn new(replies: &Rc<Replies>) -> GrpcClient {
        GrpcClient { replies: Rc::clone(replies), connections: RefCell::default() }
    }

    /// Sends one query and returns the response.
    pub(crate) async fn exchange(&self, exchange: Exchange<'_>) -> Result<ExchangeReply, ExchangeError> {
        let until = MonotonicClock::tokio_instant(exchange.until);
        let reply = timeout_at(until, async {
            let (mut sender, reused) = self.sender(&exchange).await?;
            let call = call(&mut sender, request(&exchange)?, PACKET_MAX).await.map_err(failed("write"))?;
            let call = call.map_body(|body| CountedBody::new(body, &self.replies));
            let packet: DnsPacket = call.single().await.map_err(failed("read"))?;
            let reply = Reply::parse(packet.msg.into()).map_err(|_| ExchangeError::Unreadable)?;
            Ok(ExchangeReply { reply, reused, local: None })
        });
        reply.await.unwrap_or(Err(ExchangeError::Timeout { local: None }))
    }

    /// Returns a sender for the upstream, and true if its connection was already open.
    async fn sender(&self, exchange: &Exchange<'_>) -> Result<(Sender, bool), ExchangeError> {
        let route = Route::new(exchange);
        let connection = self.connection(&route);
        let mut open = connection.open.lock().await;
        if let Some(sender) = open.as_mut()
            && sender.ready().await.is_ok()
        {
            return Ok((sender.clone(), true));
        }
        let stream = connect_http2(&route).await.map_err(|error| network("dial", &error))?;
        let configure = |builder: &mut Builder<Tasks>| {
            builder.timer(TokioTimer::new()).keep_alive_interval(PING_EVERY).keep_alive_timeout(PING_TIMEOUT);
            builder.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
        };
        let greeted = http_client::http2(&configure, stream).await;
        let (sender, driver) = greeted.map_err(|error| failed("write")(CallError::connection(&error)))?;
        tokio::task::spawn_local(drive(driver, route.weak_owner()));
        *open = Some(sender.clone());
        Ok((sender, false))
    }

    /// Returns the entry of an upstream. Removes the entries of closed connections before it adds one.
    fn connection(&self, route: &Route) -> Rc<Connection> {
        let mut connections = self.connections.borrow_mut();
        let key = route.key();
        if !connections.contains_key(&key) {
            connections.retain(|_, connection| connection.open.try_lock().map_or(true, |open| is_open(open.as_ref())));
        }
        let new = || Rc::new(Connection { _owner: route.weak_owner(), open: Mutex::default() });
        Rc::clone(connections.entry(key).or_insert_with(new))
    }
}

/// Drives a connection until it is closed or its owner is gone, for example after a reload. No query can use it then,
/// and the upstream might keep it open indefinitely.
async fn drive(driver: impl Future, owner: Option<WeakOwner>) {
    let mut driver = pin!(driver);
    loop {
        let ended = timeout(OWNER_CHECK_INTERVAL, driver.as_mut()).await.is_ok();
        if ended || owner.as_ref().is_some_and(|owner| owner.strong_count() == 0) {
            return;
        }
    }
}

fn is_open(sender: Option<&Sender>) -> bool {
    sender.is_some_and(|sender| !sender.is_closed())
}

fn request(exchange: &Exchange<'_>) -> Result<Request<RequestBody>, ExchangeError> {
    let scheme = if exchange.tls.is_some() { "https" } else { "http" };
    // As in gRPC for Go, the authority of a Unix socket is `localhost`.
    let authority = exchange.unix_path.map_or_else(|| exchange.to.to_string(), |_| "localhost".to_owned());
    let request =
        Request::post(format!("{scheme}://{authority}{PATH}")).body(RequestBody::whole(packet(exchange.query)));
    request.map_err(|_| ExchangeError::Unreadable)
}

/// Converts the error of a call to that of an exchange.
fn failed(during: &'static str) -> impl Fn(CallError) -> ExchangeError {
    move |error| match error {
        CallError::Connection(error) => ExchangeError::Network { during, error },
        CallError::Http(_) => ExchangeError::Network { during: "read", error: error.to_string() },
        CallError::Status(Code(code), reason) => ExchangeError::Status { code, reason },
        CallError::TooLong | CallError::Compressed | CallError::Malformed => ExchangeError::Unreadable,
    }
}
