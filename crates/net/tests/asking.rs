//! Upstream clients over real sockets, against upstreams that lose, forge, close and hang.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod support;

use std::collections::HashSet;
use std::future::Future;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use engine::{Clock, Connections, Exchange, ExchangeError, ExchangeReply, Io, Transport};
use metrics::Registry;
use net::TokioIo;
use support::{Stream, Upstream, answer_to, question};
use transport::MonotonicClock;
use wire::Type;

const CONNECTIONS: Connections =
    Connections { idle_max: Duration::from_secs(10), age_max: Duration::ZERO, kept_max: 0, source: None };

/// Client under test, with the address of the upstream.
#[derive(Clone)]
struct Client {
    io: Rc<TokioIo>,
    to: SocketAddr,
}

impl Client {
    async fn query(&self, over: Transport, patience: Duration, retransmit_after: Option<Duration>) -> Outcome {
        let query = question(0, "www.test.", Type::A).packet();
        self.send(&query, over, patience, retransmit_after).await
    }

    async fn send(
        &self,
        query: &[u8],
        over: Transport,
        patience: Duration,
        retransmit_after: Option<Duration>,
    ) -> Outcome {
        let until = MonotonicClock.now() + patience;
        let exchange = Exchange { retransmit_after, ..Exchange::new(self.to, over, query, until, CONNECTIONS) };
        self.io.exchange(exchange).await
    }
}

type Outcome = Result<ExchangeReply, ExchangeError>;

/// Runs the client on its own thread, while the test plays the upstream.
fn beside<F, T>(to: SocketAddr, run: impl FnOnce(Client) -> F + Send + 'static) -> JoinHandle<T>
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let io = Rc::new(TokioIo::new(&Registry::new()));
        tokio::task::LocalSet::new().block_on(&runtime, run(Client { io, to }))
    })
}

fn accept(listener: &TcpListener) -> Stream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
    Stream(stream)
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(500);
const AGAIN: Option<Duration> = Some(Duration::from_millis(50));

#[test]
fn a_lost_datagram_is_sent_once_more_from_the_same_port_with_the_same_id() {
    let upstream = Upstream::new();
    let running = beside(upstream.address(), |client| async move { client.query(Transport::Udp, LONG, AGAIN).await });
    let (first, second) = (upstream.query(), upstream.query());
    assert_eq!(first, second);
    upstream.answer(&second);
    assert_eq!(running.join().unwrap().unwrap().reply.bytes(), answer_to(&second.0));
}

#[test]
fn no_third_datagram_is_sent() {
    let upstream = Upstream::new();
    let running =
        beside(upstream.address(), |client| async move { client.query(Transport::Udp, SHORT * 2, AGAIN).await });
    assert!(matches!(running.join().unwrap(), Err(ExchangeError::Timeout { local: Some(_) })));
    upstream.0.set_nonblocking(true).unwrap();
    let mut buffer = [0; 512];
    assert_eq!(std::iter::from_fn(|| upstream.0.recv(&mut buffer).ok()).count(), 2);
}

#[test]
fn ignores_datagrams_that_do_not_answer_the_question() {
    let upstream = Upstream::new();
    let running = beside(upstream.address(), |client| async move { client.query(Transport::Udp, LONG, None).await });
    let (query, from) = upstream.query();
    let end = wire::question_end(&query).unwrap();
    let mut lies = vec![answer_to(&query); 5];
    // Wrong ID, wrong name, wrong type, wrong class, question cut short.
    for (lie, byte) in lies.iter_mut().zip([1, 13, end - 3, end - 1]) {
        lie[byte] ^= 1;
    }
    lies[4].truncate(end - 1);
    // The query without QR, nothing, and bytes that are no message.
    lies.extend([query.clone(), Vec::new(), vec![0xff; 11], vec![0xff; 600]]);
    for lie in &lies {
        upstream.0.send_to(lie, from).unwrap();
    }
    // The right answer from another source does not count either.
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&answer_to(&query), from).unwrap();
    let mut answer = answer_to(&query);
    answer[3] |= 3;
    upstream.0.send_to(&answer, from).unwrap();
    assert_eq!(running.join().unwrap().unwrap().reply.bytes(), answer);
}

#[test]
fn counts_replies_over_udp_and_tcp_that_match_no_query() {
    let counted = |over, to| {
        beside(to, move |client| async move {
            let (query, replies) = (question(0, "www.test.", Type::A).packet(), Arc::default());
            let until = MonotonicClock.now() + LONG;
            let exchange = Exchange::new(client.to, over, &query, until, CONNECTIONS);
            client.io.exchange(Exchange { unwanted: Some(&replies), ..exchange }).await.unwrap();
            replies.take()
        })
    };
    let upstream = Upstream::new();
    let running = counted(Transport::Udp, upstream.address());
    let (query, from) = upstream.query();
    let mut forged = [answer_to(&query), answer_to(&query), answer_to(&query)];
    (forged[0][0], forged[1][1], forged[2][13]) = (!query[0], !query[1], query[13] ^ 1);
    forged.iter().for_each(|forged| _ = upstream.0.send_to(forged, from).unwrap());
    upstream.answer(&(query, from));
    assert_eq!(running.join().unwrap(), Some([0, 2, 1]));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = counted(Transport::Tcp, listener.local_addr().unwrap());
    let mut stream = accept(&listener);
    let query = stream.receive_bytes().unwrap();
    let mut forged = answer_to(&query);
    forged[0] = !query[0];
    stream.send(&forged);
    stream.send(&answer_to(&query));
    assert_eq!(running.join().unwrap(), Some([0, 1, 0]));
}

#[test]
fn a_refused_connection_fails_at_once() {
    let gone = testkit::ports::free_address();
    for over in [Transport::Udp, Transport::Tcp] {
        let outcome = beside(gone, move |client| async move { client.query(over, LONG, None).await }).join().unwrap();
        let during = if over == Transport::Udp { "read" } else { "dial" };
        assert_eq!(outcome.unwrap_err(), ExchangeError::Network { during, error: "connection refused".to_owned() });
    }
}

#[test]
fn an_error_of_an_earlier_datagram_does_not_fail_a_later_one() {
    let address = testkit::ports::free_address();
    let (refused, refusals) = std::sync::mpsc::channel();
    let (go, gone_on) = std::sync::mpsc::channel();
    let running = beside(address, move |client| async move {
        // Use every socket once, so that each later query leaves from one that may hold an old error.
        for _ in 0..64 {
            let _ = client.query(Transport::Udp, Duration::ZERO, None).await;
        }
        refused.send(()).unwrap();
        gone_on.recv().unwrap();
        client.query(Transport::Udp, LONG, None).await
    });
    refusals.recv().unwrap();
    let upstream = Upstream(UdpSocket::bind(address).unwrap());
    upstream.0.set_read_timeout(Some(support::PATIENCE)).unwrap();
    go.send(()).unwrap();
    upstream.answer(&upstream.query());
    assert!(running.join().unwrap().is_ok());
}

/// Asks one query after another, and returns the port and the ID of each, as an upstream sees them.
fn ports_and_ids(queries: usize) -> Vec<(u16, u16)> {
    let upstream = Upstream::new();
    let running = beside(upstream.address(), move |client| async move {
        for _ in 0..queries {
            client.query(Transport::Udp, LONG, None).await.unwrap();
        }
    });
    let answered = |_| {
        let query = upstream.query();
        upstream.answer(&query);
        (query.1.port(), u16::from_be_bytes([query.0[0], query.0[1]]))
    };
    let seen = (0..queries).map(answered).collect();
    running.join().unwrap();
    seen
}

/// Returns the different ports of queries.
fn ports_of(seen: &[(u16, u16)]) -> HashSet<u16> {
    seen.iter().map(|(port, _)| *port).collect()
}

#[test]
fn source_ports_and_ids_vary() {
    let seen = ports_and_ids(200);
    let (ports, ids) = (ports_of(&seen), seen.iter().map(|(_, id)| *id).collect::<HashSet<u16>>());
    // More than 25 if the computer was so slow that a second passed between two queries.
    assert!(ports.len() >= 25 && ids.len() > 180, "{} ports, {} ids", ports.len(), ids.len());
}

/// Number of parts of the range of ports, and of their last digits, that tests compare.
const BUCKETS: usize = 16;
/// Value that the chi-squared statistic of [`BUCKETS`] equal probabilities exceeds once in 10^10 runs.
const CHI_SQUARED_MAX: f64 = 80.0;

/// Counts ports by their part of the range of the system, and by their last digit in base [`BUCKETS`].
fn spread(ports: &HashSet<u16>) -> [[u32; BUCKETS]; 2] {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let bounds: Vec<usize> = range.split_whitespace().map(|bound| bound.parse().unwrap()).collect();
    let (low, width) = (bounds[0], bounds[1] + 1 - bounds[0]);
    let mut buckets = [[0; BUCKETS]; 2];
    for port in ports {
        buckets[0][(usize::from(*port) - low) * BUCKETS / width] += 1;
        buckets[1][usize::from(*port) % BUCKETS] += 1;
    }
    buckets
}

#[test]
fn source_ports_are_spread_over_the_range_of_the_system() {
    for buckets in spread(&ports_of(&ports_and_ids(8 * 800))) {
        let expected = f64::from(buckets.iter().sum::<u32>()) / 16.0;
        let deviation = |count: &u32| (f64::from(*count) - expected).powi(2) / expected;
        let chi_squared: f64 = buckets.iter().map(deviation).sum();
        assert!(chi_squared < CHI_SQUARED_MAX, "{chi_squared}: {buckets:?}");
    }
}

#[test]
fn source_ports_do_not_tell_which_thread_asks() {
    let other = std::thread::spawn(|| ports_of(&ports_and_ids(8 * 800)));
    let seen = [ports_of(&ports_and_ids(8 * 800)), other.join().unwrap()];
    let total = seen.each_ref().map(|ports| f64::from(u32::try_from(ports.len()).unwrap()));
    let [one, two] = seen.each_ref().map(spread);
    for (ones, twos) in one.iter().zip(&two) {
        // Chi-squared test of the hypothesis that both come from one distribution.
        let deviation = |(a, b): (&u32, &u32)| {
            let (a, b) = (f64::from(*a), f64::from(*b));
            (a * (total[1] / total[0]).sqrt() - b * (total[0] / total[1]).sqrt()).powi(2) / (a + b).max(1.0)
        };
        let chi_squared: f64 = ones.iter().zip(twos).map(deviation).sum();
        assert!(chi_squared < CHI_SQUARED_MAX, "{chi_squared}: {ones:?} {twos:?}");
    }
}

#[test]
fn ids_have_balanced_bits_and_differ_between_clients() {
    const QUERIES: u32 = 8000;
    let ids = |queries: u32| ports_and_ids(queries as usize).into_iter().map(|(_, id)| id).collect::<Vec<u16>>();
    let (first, second) = (ids(QUERIES), ids(100));
    // Each bit is set in half of the IDs, and changes in half of the steps to the next, within seven sigma.
    let sigma = f64::from(QUERIES).sqrt() / 2.0;
    let half = f64::from(QUERIES) / 2.0;
    let is_half = |count: usize| (f64::from(u32::try_from(count).unwrap()) - half).abs() < 7.0 * sigma;
    for bit in 0..u16::BITS {
        let set = first.iter().filter(|id| *id >> bit & 1 == 1).count();
        let changed = first.windows(2).filter(|pair| (pair[0] ^ pair[1]) >> bit & 1 == 1).count();
        assert!(is_half(set) && is_half(changed), "bit {bit}: {set} set, {changed} changed");
    }
    let equal = first.iter().zip(&second).filter(|(one, two)| one == two).count();
    assert!(equal < 5, "{equal} of 100 IDs are those of the client before");
}

/// Returns the number of UDP sockets of this process that are connected to an address of 127.0.0.1.
fn sockets_connected_to(upstream: SocketAddr) -> usize {
    let remote = format!("0100007F:{:04X}", upstream.port());
    // Sockets of other processes are in the table too, and may be connected to what had this port before.
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let own: HashSet<_> = links.filter_map(|link| std::fs::read_link(link.path()).ok()).collect();
    let table = std::fs::read_to_string("/proc/self/net/udp").unwrap();
    let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_own = |words: &[&str]| own.contains(Path::new(&format!("socket:[{}]", words[9])));
    words.filter(|words| words.get(2) == Some(&&*remote) && is_own(words)).count()
}

#[test]
fn sockets_are_closed_soon_after_a_burst() {
    const QUERIES: usize = 50;
    let upstream = Upstream::new();
    let address = upstream.address();
    let running = beside(address, move |client| async move {
        let all = (0..QUERIES).map(|_| client.query(Transport::Udp, LONG, None)).collect();
        assert!(join_all(all).await.iter().all(Result::is_ok));
        let start = std::time::Instant::now();
        while sockets_connected_to(address) > 0 {
            assert!(start.elapsed() < support::PATIENCE, "{} sockets", sockets_connected_to(address));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let queries: Vec<_> = (0..QUERIES).map(|_| upstream.query()).collect();
    assert_eq!(sockets_connected_to(address), QUERIES);
    queries.iter().for_each(|query| upstream.answer(query));
    running.join().unwrap();
}

#[test]
fn few_streams_carry_many_queries_in_any_order() {
    const QUERIES: usize = 40;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = beside(listener.local_addr().unwrap(), |client| async move {
        let all = (0..QUERIES).map(|_| client.query(Transport::Tcp, LONG, None)).collect();
        let reused = join_all(all).await.into_iter().map(|outcome| outcome.unwrap().reused);
        (reused.filter(|reused| !reused).count(), client.query(Transport::Tcp, LONG, None).await.unwrap().reused)
    });
    // Eight connections in total. The queries beyond eight are spread over them evenly.
    let mut streams: Vec<_> = (0..8).map(|_| accept(&listener)).collect();
    for stream in &mut streams {
        let queries: Vec<_> = (0..QUERIES / 8).map(|_| stream.receive_bytes().unwrap()).collect();
        queries.iter().rev().for_each(|query| stream.send(&answer_to(query)));
    }
    let query = streams[0].receive_bytes().unwrap();
    streams[0].send(&answer_to(&query));
    assert_eq!(running.join().unwrap(), (8, true));
}

#[test]
fn a_kept_stream_that_was_closed_is_replaced_silently() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = beside(listener.local_addr().unwrap(), |client| async move {
        let first = client.query(Transport::Tcp, LONG, None).await.unwrap();
        [first.reused, client.query(Transport::Tcp, LONG, None).await.unwrap().reused]
    });
    let mut stream = accept(&listener);
    let query = stream.receive_bytes().unwrap();
    stream.send(&answer_to(&query));
    // The upstream reads the second query and closes without an answer.
    stream.receive_bytes().unwrap();
    drop(stream);
    let mut stream = accept(&listener);
    let query = stream.receive_bytes().unwrap();
    stream.send(&answer_to(&query));
    assert_eq!(running.join().unwrap(), [false, false]);
}

#[test]
fn a_stream_without_an_answer_takes_no_new_queries() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = beside(listener.local_addr().unwrap(), |client| async move {
        let lost = client.query(Transport::Tcp, SHORT, None).await;
        (lost, client.query(Transport::Tcp, LONG, None).await)
    });
    let mut silent = accept(&listener);
    silent.receive_bytes().unwrap();
    let mut fresh = accept(&listener);
    let query = fresh.receive_bytes().unwrap();
    fresh.send(&answer_to(&query));
    let (lost, answered) = running.join().unwrap();
    assert_eq!(lost.unwrap_err(), ExchangeError::Timeout { local: None });
    assert!(!answered.unwrap().reused);
}

#[test]
fn a_message_left_half_written_ends_its_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = beside(listener.local_addr().unwrap(), |client| async move {
        let mut long = question(0, "www.test.", Type::A);
        long.options.push((wire::OptionCode(12), vec![0; 65_000]));
        let long = long.packet();
        // Enough to fill the buffers of a peer that does not read, so that the last ones are written only in part.
        let many = (0..200).map(|_| client.send(&long, Transport::Tcp, SHORT, None));
        let mut failed = 0;
        for outcome in join_all(many.collect()).await {
            failed += usize::from(outcome.is_err());
        }
        (failed, client.query(Transport::Tcp, LONG, None).await)
    });
    // The upstream neither reads nor answers these. The later query must use a new connection.
    let answered = std::thread::spawn(move || {
        let mut streams = Vec::new();
        loop {
            let mut stream = accept(&listener);
            stream.0.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let mut length = [0; 2];
            let read = stream.0.read(&mut length).unwrap_or(0);
            if read == 2 && u16::from_be_bytes(length) < 1000 {
                let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
                stream.0.read_exact(&mut query).unwrap();
                stream.send(&answer_to(&query));
                return;
            }
            streams.push(stream);
        }
    });
    let (failed, outcome) = running.join().unwrap();
    answered.join().unwrap();
    assert_eq!(failed, 200);
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// Polls all futures concurrently.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, slot) in running.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(context)
            {
                *slot = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
