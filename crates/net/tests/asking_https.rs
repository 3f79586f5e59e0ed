//! Client for upstreams over HTTPS over real sockets, against servers that refuse, redirect, close and hang.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod support;

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use engine::tls::{ClientCertificates, ClientTls, Identity, ServerTls, TlsClient, TlsMaker, TlsServer};
use engine::{Clock, Connections, Exchange, ExchangeError, ExchangeReply, HttpMethod, Io, Transport};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo as HyperIo;
use metrics::Registry;
use net::TokioIo;
use support::{answer_to, question};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use transport::MonotonicClock;
use transport::grpc::LocalExecutor;
use transport::tls::{Rustls, StreamProtocol, acceptor};
use wire::Type;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(1);

/// HTTP version of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

use Version::{One, Two};

/// Reaction of the server to a request.
enum Reaction {
    Respond(Response<Full<Bytes>>),
    /// Closes the connection.
    Close,
    /// Responds, and closes the connection after the requests in progress.
    GoAway(Response<Full<Bytes>>),
    Silence,
}

type React = dyn Fn(&[u8]) -> Reaction;

/// Everything that a test and its server know.
struct Setting {
    version: Version,
    streams_max: Option<u32>,
    react: Box<React>,
    /// Handshakes, and those that resumed a session.
    connections: Cell<usize>,
    resumed: Cell<usize>,
    requests: RefCell<Vec<(hyper::http::request::Parts, Bytes)>>,
    /// Requests that the client has cancelled.
    cancelled: Cell<usize>,
}

impl Setting {
    fn new(version: Version, react: impl Fn(&[u8]) -> Reaction + 'static) -> Rc<Setting> {
        let (connections, resumed, requests, cancelled) = Default::default();
        let react = Box::new(react);
        Rc::new(Setting { version, streams_max: None, react, connections, resumed, requests, cancelled })
    }
}

/// Head of a response with a DNS message.
fn head() -> hyper::http::response::Builder {
    Response::builder().header("content-type", "application/dns-message")
}

fn answer(query: &[u8]) -> Response<Full<Bytes>> {
    head().body(Full::from(answer_to(query))).unwrap()
}

/// Creates a server certificate for 127.0.0.1, and the client that trusts it.
fn certificates() -> (Arc<dyn TlsServer>, TlsClient) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let (certificates, key) = (made.cert.pem().into_bytes(), made.signing_key.serialize_pem().into_bytes());
    let identity = Identity { certificates: certificates.clone(), key };
    let clients = ClientCertificates::Unasked;
    let server = ServerTls { identity, clients, authorities: None, sessions: None, key_log: None };
    let client = ClientTls { authorities: Some(certificates), ..ClientTls::default() };
    (Rustls.server(&server).unwrap(), Rustls.client(&client).unwrap())
}

async fn serve(listener: TcpListener, tls: Arc<dyn TlsServer>, setting: Rc<Setting>) {
    while let Ok((stream, _)) = listener.accept().await {
        let protocol = if setting.version == Two { StreamProtocol::Https } else { StreamProtocol::Plain };
        let acceptor = acceptor(&*tls, protocol).unwrap();
        let setting = Rc::clone(&setting);
        tokio::task::spawn_local(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            setting.connections.set(setting.connections.get() + 1);
            if stream.is_resumed() {
                setting.resumed.set(setting.resumed.get() + 1);
            }
            let (closing, leaving) = (Rc::new(Notify::new()), Rc::new(Notify::new()));
            let (close, leave) = (Rc::clone(&closing), Rc::clone(&leaving));
            let (version, streams_max) = (setting.version, setting.streams_max);
            let service =
                service_fn(move |request| respond(Rc::clone(&setting), Rc::clone(&close), Rc::clone(&leave), request));
            let stream = HyperIo::new(stream);
            // The two types of connections have the same methods.
            macro_rules! drive {
                ($connection:expr) => {{
                    let mut connection = pin!($connection);
                    loop {
                        tokio::select! {
                            _ = connection.as_mut() => break,
                            () = closing.notified() => break,
                            () = leaving.notified() => connection.as_mut().graceful_shutdown(),
                        }
                    }
                }};
            }
            match version {
                One => drive!(http1::Builder::new().serve_connection(stream, service)),
                Two => {
                    let mut builder = http2::Builder::new(LocalExecutor);
                    drive!(builder.max_concurrent_streams(streams_max).serve_connection(stream, service));
                }
            }
        });
    }
}

/// Counts a request that is dropped before its response.
struct Cancelled(Rc<Setting>);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.cancelled.set(self.0.cancelled.get() + 1);
    }
}

async fn respond(
    setting: Rc<Setting>,
    close: Rc<Notify>,
    leave: Rc<Notify>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let reaction = (setting.react)(&body);
    setting.requests.borrow_mut().push((head, body));
    match reaction {
        Reaction::Respond(response) => return Ok(response),
        Reaction::GoAway(response) => {
            leave.notify_one();
            return Ok(response);
        }
        Reaction::Close => close.notify_one(),
        Reaction::Silence => {}
    }
    let _cancelled = Cancelled(setting);
    std::future::pending().await
}

/// Client under test, with the address of the upstream.
struct Client {
    io: TokioIo,
    to: SocketAddr,
    tls: TlsClient,
}

type Outcome = Result<ExchangeReply, ExchangeError>;

impl Client {
    async fn ask(&self, patience: Duration) -> Outcome {
        self.ask_with(patience, HttpMethod::Post, LONG).await
    }

    async fn ask_with(&self, patience: Duration, method: HttpMethod, idle_max: Duration) -> Outcome {
        let query = question(4711, "www.test.", Type::A).packet();
        let connections = Connections { idle_max, age_max: Duration::ZERO, kept_max: 0, source: None };
        let until = MonotonicClock.now() + patience;
        let exchange = Exchange::new(self.to, Transport::Https, &query, until, connections);
        self.io.exchange(Exchange { tls: Some(&self.tls), method, ..exchange }).await
    }

    async fn ask_many(&self, count: usize) -> Vec<Outcome> {
        let mut running: Vec<_> = (0..count).map(|_| Box::pin(self.ask(LONG))).collect();
        let mut outcomes = Vec::new();
        poll_fn(|context| {
            running.retain_mut(|exchange| match exchange.as_mut().poll(context) {
                Poll::Ready(outcome) => {
                    outcomes.push(outcome);
                    false
                }
                Poll::Pending => true,
            });
            if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        outcomes
    }
}

/// Runs a client beside a server.
fn beside<F: Future>(setting: &Rc<Setting>, test: impl FnOnce(Client) -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let (server, tls) = certificates();
        tokio::task::spawn_local(serve(listener, server, Rc::clone(setting)));
        test(Client { io: TokioIo::new(&Registry::new()), to, tls }).await
    })
}

fn failed(error: &str) -> ExchangeError {
    ExchangeError::Network { during: "read", error: error.to_owned() }
}

#[test]
fn sends_the_requests_that_the_standard_describes() {
    for version in [One, Two] {
        let setting = Setting::new(version, |body| {
            let query = if body.is_empty() { question(0, "www.test.", Type::A).packet() } else { body.to_vec() };
            Reaction::Respond(answer(&query))
        });
        let to = beside(&setting, |client| async move {
            client.ask(LONG).await.unwrap();
            assert!(client.ask_with(LONG, HttpMethod::Get, LONG).await.unwrap().reused, "{version:?}");
            client.to
        });
        let query = question(0, "www.test.", Type::A).packet();
        let requests = setting.requests.borrow();
        let [(post, body), (get, empty)] = requests.as_slice() else { panic!("{} requests", requests.len()) };
        assert_eq!((post.method.as_str(), post.uri.path(), &body[..]), ("POST", "/dns-query", &query[..]));
        assert_eq!(post.headers["content-type"], "application/dns-message");
        assert_eq!((get.method.as_str(), get.uri.path(), empty.len()), ("GET", "/dns-query", 0));
        assert_eq!(get.uri.path_and_query().unwrap().as_str(), doh::get_target(&query));
        for head in [post, get] {
            let authority = head.uri.authority().map(ToString::to_string);
            let host = head.headers.get("host").map(|host| host.to_str().unwrap().to_owned());
            assert_eq!(authority.or(host), Some(to.to_string()));
            assert_eq!(head.headers["accept"], "application/dns-message");
        }
    }
}

#[test]
fn a_response_without_a_dns_message_is_a_failure_at_once() {
    type Change = fn(hyper::http::response::Builder) -> hyper::http::response::Builder;
    let rows: [(Change, usize, &str); 6] = [
        (|head| head.status(302).header("location", "/dns-query"), 0, "HTTP status 302; redirects are not followed"),
        (|head| head.status(502), 0, "HTTP status 502"),
        (
            |_| Response::builder().header("content-type", "text/html"),
            0,
            "content type `text/html`, not application/dns-message",
        ),
        (|_| Response::builder(), 0, "no content type; expected application/dns-message"),
        (|head| head.header("content-encoding", "gzip"), 0, "the response is compressed, which was not requested"),
        (|head| head, 65_536, "the response has more than 65535 bytes"),
    ];
    for version in [One, Two] {
        for (change, length, error) in rows {
            let setting = Setting::new(version, move |query| {
                let body = if length == 0 { answer_to(query) } else { vec![0; length] };
                Reaction::Respond(change(head()).body(Full::from(body)).unwrap())
            });
            let outcome = beside(&setting, |client| async move { client.ask(LONG).await });
            assert_eq!(outcome.unwrap_err(), failed(error), "{version:?}");
            assert_eq!(setting.requests.borrow().len(), 1);
        }
        let setting =
            Setting::new(version, |_| Reaction::Respond(answer(&question(0, "other.test.", Type::A).packet())));
        let outcome = beside(&setting, |client| async move { client.ask(LONG).await });
        assert_eq!(outcome.unwrap_err(), ExchangeError::Unreadable);
    }
}

#[test]
fn one_connection_carries_many_requests_over_http2() {
    for (streams_max, connections_max) in [(None, 1), (Some(1000), 1), (Some(5), 16), (Some(1), 16)] {
        let mut setting = Setting::new(Two, |query| Reaction::Respond(answer(query)));
        Rc::get_mut(&mut setting).unwrap().streams_max = streams_max;
        let outcomes = beside(&setting, |client| async move {
            client.ask(LONG).await.unwrap();
            client.ask_many(100).await
        });
        assert!(outcomes.len() == 100 && outcomes.iter().all(Result::is_ok), "{streams_max:?}: {outcomes:?}");
        assert!(setting.connections.get() <= connections_max, "{streams_max:?}: {}", setting.connections.get());
    }
}

#[test]
fn a_few_connections_take_turns_over_http1() {
    let setting = Setting::new(One, |query| Reaction::Respond(answer(query)));
    let outcomes = beside(&setting, |client| async move { client.ask_many(100).await });
    assert!(outcomes.len() == 100 && outcomes.iter().all(Result::is_ok));
    assert!((2..=16).contains(&setting.connections.get()), "{}", setting.connections.get());
}

#[test]
fn a_query_is_sent_once_more_if_its_connection_ends() {
    for version in [One, Two] {
        let asked = Cell::new(0);
        let setting = Setting::new(version, move |query| {
            asked.set(asked.get() + 1);
            if asked.get() == 2 { Reaction::Close } else { Reaction::Respond(answer(query)) }
        });
        beside(&setting, |client| async move {
            client.ask(LONG).await.unwrap();
            assert!(!client.ask(LONG).await.unwrap().reused);
        });
        assert_eq!(setting.connections.get(), 2, "{version:?}");
        let setting = Setting::new(version, |_| Reaction::Close);
        let outcome = beside(&setting, |client| async move { client.ask(LONG).await });
        assert!(
            matches!(outcome, Err(ExchangeError::Network { during: "read", .. } | ExchangeError::Closed)),
            "{outcome:?}"
        );
        assert_eq!(setting.connections.get(), 2, "{version:?}");
    }
}

#[test]
fn a_connection_that_the_server_ends_is_replaced_without_a_failure() {
    for version in [One, Two] {
        let setting = Setting::new(version, |query| Reaction::GoAway(answer(query)));
        beside(&setting, |client| async move {
            for _ in 0..10 {
                client.ask(LONG).await.unwrap();
            }
        });
        assert!(setting.connections.get() >= 5, "{version:?}");
    }
}

#[test]
fn a_silent_server_fails_a_query_at_its_deadline() {
    for version in [One, Two] {
        let asked = Cell::new(0);
        let setting = Setting::new(version, move |query| {
            asked.set(asked.get() + 1);
            if asked.get() == 2 { Reaction::Silence } else { Reaction::Respond(answer(query)) }
        });
        let seen = Rc::clone(&setting);
        beside(&setting, |client| async move {
            // So that the handshake is not part of the short time.
            client.ask(LONG).await.unwrap();
            assert_eq!(client.ask(SHORT).await.unwrap_err(), ExchangeError::Timeout { local: None });
            client.ask(LONG).await.unwrap();
            while seen.cancelled.get() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
}

#[test]
fn a_cancelled_query_cancels_its_request() {
    for version in [One, Two] {
        let setting = Setting::new(version, |_| Reaction::Silence);
        let seen = Rc::clone(&setting);
        beside(&setting, |client| async move {
            let arrival = async {
                while seen.requests.borrow().is_empty() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                outcome = client.ask(LONG) => panic!("{outcome:?}"),
                () = arrival => {}
            }
            while seen.cancelled.get() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
}

#[test]
fn later_connections_resume_the_tls_session() {
    let setting = Setting::new(Two, |query| Reaction::Respond(answer(query)));
    beside(&setting, |client| async move {
        for _ in 0..3 {
            client.ask_with(LONG, HttpMethod::Post, Duration::ZERO).await.unwrap();
            // The tickets follow the handshake.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!((setting.connections.get(), setting.resumed.get()), (3, 2));
}

/// Runs a client against a server that accepts connections, and writes these bytes once it has a request.
fn against_bytes(response: Option<&'static [u8]>) -> (Outcome, usize) {
    let setting = Setting::new(One, |_| Reaction::Silence);
    let connections = Rc::clone(&setting);
    let outcome = beside(&setting, |mut client| async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        client.to = listener.local_addr().unwrap();
        let (server, tls) = certificates();
        client.tls = tls;
        tokio::task::spawn_local(async move {
            let mut kept = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.connections.set(connections.connections.get() + 1);
                let Some(response) = response else {
                    kept.push(stream);
                    continue;
                };
                let acceptor = acceptor(&*server, StreamProtocol::Plain).unwrap();
                let mut stream = acceptor.accept(stream).await.unwrap();
                stream.write_all(response).await.unwrap();
                let _ = stream.shutdown().await;
            }
        });
        client.ask(SHORT).await
    });
    (outcome, setting.connections.get())
}

#[test]
fn a_server_that_does_not_answer_the_handshake_fails_a_query_at_its_deadline() {
    let error = ExchangeError::Network { during: "dial", error: "i/o timeout".to_owned() };
    let (outcome, connections) = against_bytes(None);
    assert_eq!((outcome.unwrap_err(), connections), (error, 1));
}

#[test]
fn a_body_that_is_shorter_than_announced_is_a_failure() {
    let short = b"HTTP/1.1 200 OK\r\ncontent-type: application/dns-message\r\ncontent-length: 100\r\n\r\n\0\0\x81\0";
    let (outcome, connections) = against_bytes(Some(short));
    assert!(matches!(outcome, Err(ExchangeError::Network { during: "read", .. })), "{outcome:?}");
    assert_eq!(connections, 2);
    let (outcome, _) = against_bytes(Some(b"\0\x0cnot HTTP at all"));
    assert!(matches!(outcome, Err(ExchangeError::Network { during: "read", .. })), "{outcome:?}");
}

#[test]
fn a_refused_connection_fails_at_once() {
    let setting = Setting::new(Two, |_| Reaction::Silence);
    let outcome = beside(&setting, |mut client| async move {
        client.to = testkit::ports::free_address();
        client.ask(LONG).await
    });
    assert_eq!(outcome.unwrap_err(), ExchangeError::Network { during: "dial", error: "connection refused".to_owned() });
}

#[test]
fn never_asks_without_tls() {
    let setting = Setting::new(Two, |_| Reaction::Silence);
    let outcome = beside(&setting, |client| async move {
        let query = question(0, "www.test.", Type::A).packet();
        let connections = Connections { idle_max: LONG, age_max: Duration::ZERO, kept_max: 0, source: None };
        let until = MonotonicClock.now() + LONG;
        client.io.exchange(Exchange::new(client.to, Transport::Https, &query, until, connections)).await
    });
    assert_eq!(
        outcome.unwrap_err(),
        ExchangeError::Network { during: "dial", error: "no TLS configuration".to_owned() }
    );
}
