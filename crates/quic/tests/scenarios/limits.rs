//! Limits: connections, handshakes, memory, amplification, tokens, restarts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use quic::{Protocol, Route};
use quinn_proto::{ClientConfig, ConnectionError, TokenStore, TransportErrorCode};

use crate::simulation::{QUERY, Simulation, framed, settings};

fn simulation() -> Simulation {
    Simulation::new(Protocol::Doq, 1)
}

#[test]
fn a_full_listener_tells_clients_so() {
    for (protocol, code) in [(Protocol::Doq, 0x0), (Protocol::Http3, 0x107)] {
        let mut simulation = Simulation::new(protocol, 1);
        simulation.servers[0].process.open_max.set(Some(2));
        let first = simulation.connect();
        simulation.connect();
        simulation.connect();
        simulation.run_for(Duration::from_secs(1));
        assert_eq!(simulation.clients[0].closed_with(), (code, "too many connections".to_owned()));
        assert_eq!((simulation.servers[0].process.open.get(), simulation.servers[0].limits_reached), (2, 1));
        let now = simulation.now;
        simulation.connection(first).close(now, 0u32.into(), Bytes::new());
        simulation.run_for(Duration::from_secs(1));
        simulation.clients[0].lost.clear();
        simulation.connect();
        assert_eq!(simulation.clients[0].connected, 4);
    }
}

#[test]
fn a_busy_listener_asks_clients_to_prove_their_address() {
    let mut simulation = simulation();
    simulation.servers[0].process.is_busy.set(true);
    let start = simulation.now;
    let connection = simulation.connect();
    // One more round trip of 10 ms.
    assert_eq!((simulation.now - start).as_millis(), 20);
    assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
}

#[test]
fn many_connection_attempts_turn_on_the_proof_of_addresses() {
    let mut simulation = simulation();
    let config = simulation.client_config();
    for _ in 0..150 {
        simulation.start_connecting(0, config.clone());
    }
    simulation.run_for(Duration::from_millis(12));
    let at_once = simulation.clients[0].connected;
    assert!((50..=100).contains(&at_once), "{at_once}");
    // Some clients must repeat their packet.
    simulation.run_for(Duration::from_secs(3));
    assert_eq!(simulation.clients[0].connected, 150);
}

#[test]
fn a_client_that_connects_too_often_must_prove_its_address_and_is_then_refused() {
    let mut simulation = simulation();
    simulation.servers[0].process.permits_unproven.set(Some(2));
    simulation.servers[0].process.permits_proven.set(Some(3));
    let durations: Vec<_> = (0..5)
        .map(|_| {
            let start = simulation.now;
            simulation.connect();
            (simulation.now - start).as_millis()
        })
        .collect();
    assert_eq!(durations, [10, 10, 20, 20, 20], "one more round trip from the third connection on");
    let config = simulation.client_config();
    simulation.start_connecting(0, config);
    simulation.run_for(Duration::from_secs(1));
    let [ConnectionError::ConnectionClosed(close)] = simulation.clients[0].lost.as_slice() else {
        panic!("{:?}", simulation.clients[0].lost);
    };
    assert_eq!(close.error_code, TransportErrorCode::CONNECTION_REFUSED);
    assert_eq!((simulation.clients[0].connected, simulation.servers[0].limits_reached), (5, 1));
}

#[test]
fn an_idle_connection_is_closed_after_the_idle_time() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
    simulation.run_for(Duration::from_millis(9900));
    assert_eq!(simulation.servers[0].process.open.get(), 1);
    simulation.run_for(Duration::from_millis(200));
    assert_eq!(simulation.servers[0].process.open.get(), 0);
    simulation.run_for(Duration::from_secs(5));
    assert_eq!(simulation.servers[0].endpoint.connections(), 0);
    assert_eq!(simulation.servers[0].endpoint.poll_timeout(), None, "nothing is left to do");
}

#[test]
fn a_handshake_that_takes_too_long_is_ended() {
    let mut simulation = simulation();
    let config = simulation.client_config();
    simulation.start_connecting(0, config);
    simulation.run_for(Duration::from_millis(6));
    assert_eq!(simulation.servers[0].process.open.get(), 1);
    simulation.network.lost = 1.0;
    simulation.run_for(Duration::from_millis(4900));
    assert_eq!(simulation.servers[0].process.open.get(), 1);
    simulation.run_for(Duration::from_millis(200));
    assert_eq!(simulation.servers[0].process.open.get(), 0);
}

#[test]
fn an_unproven_address_gets_at_most_three_times_its_bytes() {
    for protocol in [Protocol::Doq, Protocol::Http3] {
        let mut simulation = Simulation::new(protocol, 1);
        let config = simulation.client_config();
        simulation.start_connecting(0, config);
        simulation.run_for(Duration::from_millis(1));
        // The client receives nothing, so it never proves its address.
        simulation.clients[0].connections.clear();
        simulation.run_for(Duration::from_secs(30));
        let sent = |address| simulation.network.sent.get(&address).copied().unwrap_or(0);
        let (received, answered) = (sent(simulation.clients[0].address), sent(simulation.servers[0].address));
        assert!(received >= 1200 && answered > 0 && answered <= 3 * received, "{received} {answered}");
    }
}

#[test]
fn evicted_connections_are_closed() {
    let mut simulation = simulation();
    simulation.connect();
    simulation.run_for(Duration::from_millis(50));
    simulation.servers[0].process.evict.set(true);
    let now = simulation.now;
    simulation.servers[0].endpoint.close_evicted(now);
    simulation.run_for(Duration::from_millis(100));
    assert_eq!(simulation.clients[0].closed_with().0, 0x4);
    assert_eq!(simulation.servers[0].process.open.get(), 0);
}

#[test]
fn a_restarted_server_resets_the_connections_of_the_former_one() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
    simulation.run_for(Duration::from_secs(1));
    simulation.restart(settings(Protocol::Doq));
    simulation.write(connection, &framed(QUERY), true);
    simulation.run_for(Duration::from_millis(15));
    assert_eq!(simulation.clients[0].lost, [ConnectionError::Reset], "after one packet");
}

/// Tokens that a client remembers.
#[derive(Default)]
struct Tokens(Mutex<Vec<Bytes>>);

impl TokenStore for Tokens {
    fn insert(&self, _: &str, token: Bytes) {
        self.0.lock().unwrap().push(token);
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        // A client must not use a token twice. This one does.
        self.0.lock().unwrap().last().cloned()
    }
}

#[test]
fn a_token_spares_the_proof_of_the_address_once_and_also_after_a_restart() {
    let mut simulation = simulation();
    let tokens = Arc::new(Tokens::default());
    let config = |simulation: &Simulation| -> ClientConfig {
        let mut config = simulation.client_config();
        config.token_store(Arc::clone(&tokens) as Arc<dyn TokenStore>);
        config
    };
    let first = config(&simulation);
    simulation.connect_as(0, first);
    simulation.run_for(Duration::from_millis(100));
    assert_eq!(tokens.0.lock().unwrap().len(), 1);
    simulation.servers[0].process.is_busy.set(true);
    simulation.restart(settings(Protocol::Doq));
    let mut durations = Vec::new();
    for _ in 0..2 {
        // Keeps the token of the first connection.
        tokens.0.lock().unwrap().truncate(1);
        let (again, start) = (config(&simulation), simulation.now);
        simulation.connect_as(0, again);
        durations.push((simulation.now - start).as_millis());
    }
    assert_eq!(durations, [10, 20]);
}

#[test]
fn unknown_versions_get_a_list_of_the_known_ones() {
    let mut simulation = simulation();
    let mut packet = vec![0; 1200];
    packet[..7].copy_from_slice(&[0xc0, 0x0a, 0x0a, 0x0a, 0x0a, 8, 7]);
    let now = simulation.now;
    let route = quic::Route { peer: simulation.clients[0].address, local: None };
    let server = &mut simulation.servers[0];
    server.endpoint.handle_datagram(now, route, None, &packet);
    let mut reply = Vec::new();
    assert_eq!(server.endpoint.poll_transmit(now, &mut reply), Some(route));
    assert_eq!(reply[1..5], [0; 4], "version negotiation");
    assert!(reply.windows(4).any(|version| version == [0, 0, 0, 1]));
    // A short packet gets nothing, so that the answer is never longer.
    server.endpoint.handle_datagram(now, route, None, &packet[..100]);
    assert_eq!(server.endpoint.poll_transmit(now, &mut reply), None);
}

#[test]
fn garbage_gets_no_reply() {
    let mut simulation = simulation();
    let now = simulation.now;
    let route = quic::Route { peer: simulation.clients[0].address, local: None };
    let endpoint = &mut simulation.servers[0].endpoint;
    for garbage in [&b""[..], b"\0", b"\xff", &[0xc0; 5], &[0xc0; 1200], QUERY, &[0x40; 20]] {
        endpoint.handle_datagram(now, route, None, garbage);
        assert_eq!(endpoint.poll_transmit(now, &mut Vec::new()), None, "{garbage:?}");
    }
}

#[test]
fn an_ending_server_delivers_the_answers_in_flight() {
    for protocol in [Protocol::Doq, Protocol::Http3] {
        let mut simulation = Simulation::new(protocol, 1);
        simulation.servers[0].answerer = Box::new(|_| crate::simulation::Reply::Later);
        let idle = simulation.connect();
        let connection = simulation.connect();
        let request = if protocol == Protocol::Doq { framed(QUERY) } else { crate::http3::post(QUERY) };
        let stream = simulation.write(connection, &request, true);
        simulation.run_for(Duration::from_millis(50));
        let now = simulation.now;
        simulation.servers[0].endpoint.end(now);
        simulation.run_for(Duration::from_millis(50));
        let idle = simulation.clients[0].connections.get(&idle);
        assert!(idle.is_none_or(quinn_proto::Connection::is_closed));
        assert!(!simulation.servers[0].endpoint.is_idle());
        let now = simulation.now;
        simulation.servers[0].answer_waiting(now, QUERY);
        assert!(simulation.read_to_end(connection, stream).is_ok());
        simulation.run_for(Duration::from_millis(50));
        assert!(simulation.servers[0].endpoint.is_idle());
        assert_eq!(simulation.clients[0].lost.len(), 2);
        // A new client gets no reply.
        let config = simulation.client_config();
        simulation.start_connecting(0, config);
        simulation.run_for(Duration::from_secs(5));
        assert_eq!((simulation.clients[0].lost.len(), simulation.clients[0].connected), (2, 2));
    }
}

#[test]
fn an_ending_server_does_not_wait_for_clients_that_are_gone() {
    let mut simulation = simulation();
    simulation.servers[0].answerer = Box::new(|_| crate::simulation::Reply::Later);
    let connection = simulation.connect();
    simulation.write(connection, &framed(QUERY), true);
    simulation.run_for(Duration::from_millis(50));
    let now = simulation.now;
    simulation.servers[0].endpoint.end(now);
    simulation.network.lost = 1.0;
    simulation.servers[0].answer_waiting(now, QUERY);
    simulation.run_for(Duration::from_millis(500));
    assert!(!simulation.servers[0].endpoint.is_idle());
    let now = simulation.now;
    simulation.servers[0].endpoint.end_soon(now);
    assert!(simulation.servers[0].endpoint.is_idle());
}

#[test]
fn the_address_of_the_client_may_change() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    for port in 40_001..40_101 {
        simulation.clients[0].address.set_port(port);
        assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
        // The server proves the new address before it may change again.
        simulation.run_for(Duration::from_millis(50));
    }
    let last = simulation.clients[0].address;
    assert_eq!(simulation.servers[0].clients.last(), Some(&last));
    assert!(simulation.clients[0].lost.is_empty());
}

#[test]
fn the_address_behind_a_proxy_is_that_of_the_header() {
    let mut simulation = simulation();
    let behind = "203.0.113.9:5000".parse().unwrap();
    let config = simulation.client_config();
    let handle = simulation.start_connecting(0, config);
    let mut reply = Vec::new();
    let (now, address) = (simulation.now, simulation.clients[0].address);
    let connection = simulation.connection(handle);
    assert!(connection.poll_transmit(now, 1, &mut reply).is_some());
    let route = quic::Route { peer: address, local: None };
    simulation.servers[0].endpoint.handle_datagram(now, route, Some(behind), &reply);
    assert_eq!(*simulation.servers[0].process.clients.borrow(), [behind.ip()]);
}

#[test]
fn a_client_that_asks_all_the_time_has_few_timers() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    // Each query sets a timer for its repetition, and moves that for the idle time. The endpoint checks its bound.
    for _ in 0..150 {
        assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
        simulation.run_for(Duration::from_millis(60));
    }
}

#[test]
fn the_place_of_a_connection_that_has_ended_is_used_again_before_anything_is_sent() {
    let mut simulation = simulation();
    simulation.connect();
    simulation.servers[0].process.evict.set(true);
    let now = simulation.now;
    simulation.servers[0].endpoint.close_evicted(now);
    simulation.run_for(Duration::from_millis(1));
    simulation.servers[0].process.evict.set(false);
    let next = simulation.servers[0].endpoint.poll_timeout().expect("the time after which the connection is removed");
    let config = simulation.client_config();
    let handle = simulation.start_connecting(0, config);
    let mut packet = Vec::new();
    assert!(simulation.connection(handle).poll_transmit(now, 1, &mut packet).is_some(), "the first packet");
    let (route, endpoint) =
        (Route { peer: simulation.clients[0].address, local: None }, &mut simulation.servers[0].endpoint);
    let later = next + Duration::from_secs(10);
    endpoint.handle_timeout(later);
    assert_eq!(endpoint.connections(), 0);
    // The endpoint checks that the new connection is in its queue once.
    endpoint.handle_datagram(later, route, None, &packet);
    assert_eq!(endpoint.connections(), 1);
}
