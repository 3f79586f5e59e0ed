//! Clients that mean harm: memory stays within its bounds, and other clients are served.

use std::time::Duration;

use bytes::Bytes;
use quic::Protocol;
use quic::doq::code::EXCESSIVE_LOAD;
use quinn_proto::{ConnectionHandle, Dir};

use crate::simulation::{QUERY, Reply, Simulation, code, framed};

/// Opens all streams that the server allows at once, and writes one byte to each.
fn open_streams(simulation: &mut Simulation, connection: ConnectionHandle) -> usize {
    let Some(connection) = simulation.clients[0].connections.get_mut(&connection) else { return 0 };
    let mut opened = 0;
    while let Some(id) = connection.streams().open(Dir::Bi) {
        connection.send_stream(id).write(&[0]).unwrap();
        opened += 1;
    }
    opened
}

/// Opens all streams that the server allows. It allows more to a client that uses many.
fn occupy(simulation: &mut Simulation, connection: ConnectionHandle) -> usize {
    let mut opened = 0;
    for _ in 0..3 {
        opened += open_streams(simulation, connection);
        simulation.run_for(Duration::from_millis(20));
    }
    opened
}

#[test]
fn a_client_may_open_256_streams_and_gets_them_back() {
    for protocol in [Protocol::Doq, Protocol::Http3] {
        let mut simulation = Simulation::new(protocol, 1);
        let connection = simulation.connect();
        assert_eq!(occupy(&mut simulation, connection), 256);
        simulation.run_for(Duration::from_secs(1));
        assert_eq!(occupy(&mut simulation, connection), 0);
        // The time limit for queries ends them. The server announces new streams in steps of an eighth.
        simulation.run_for(Duration::from_secs(4));
        assert!(occupy(&mut simulation, connection) >= 224);
    }
}

#[test]
fn two_hundred_connections_with_256_slow_streams_stay_within_the_budget() {
    const BUDGET: usize = 4 << 20;
    let mut simulation = Simulation::new(Protocol::Doq, 1);
    simulation.servers[0].process.held_max.set(Some(BUDGET));
    let config = simulation.client_config();
    let connections: Vec<_> = (0..200).map(|_| simulation.start_connecting(0, config.clone())).collect();
    simulation.run_for(Duration::from_secs(4));
    assert_eq!(simulation.clients[0].connected, 200);
    for _ in 0..3 {
        for connection in &connections {
            open_streams(&mut simulation, *connection);
        }
        simulation.run_for(Duration::from_millis(100));
    }
    let process = &simulation.servers[0].process;
    // Each change of a connection is checked after it was counted.
    assert!(process.held_most.get() < BUDGET + (100 << 10), "{}", process.held_most.get());
    let lost = simulation.clients[0].lost.len();
    assert!(lost > 0, "the clients that ask for more are closed");
    assert!(simulation.servers[0].limits_reached >= lost);
    // Another client is served.
    simulation.clients[0].lost.clear();
    simulation.run_for(Duration::from_secs(5));
    let connection = simulation.connect();
    assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
}

#[test]
fn a_client_that_cancels_without_end_is_closed() {
    let mut simulation = Simulation::new(Protocol::Doq, 1);
    simulation.servers[0].answerer = Box::new(|_| Reply::Later);
    let connection = simulation.connect();
    let mut cancelled = 0;
    for _ in 0..100 {
        if !simulation.clients[0].lost.is_empty() {
            break;
        }
        while let Some(id) = simulation.connection(connection).streams().open(Dir::Bi) {
            let connection = simulation.connection(connection);
            connection.send_stream(id).write(&framed(QUERY)[..5]).unwrap();
            connection.send_stream(id).reset(code(3)).unwrap();
            connection.recv_stream(id).stop(code(3)).unwrap();
            cancelled += 1;
        }
        simulation.run_for(Duration::from_millis(20));
    }
    assert_eq!(simulation.clients[0].closed_with().0, u64::from(EXCESSIVE_LOAD));
    assert!(cancelled < 2000, "{cancelled}");
}

#[test]
fn a_client_that_reads_nothing_holds_no_more_than_the_budget() {
    const BUDGET: usize = 1 << 20;
    let mut simulation = Simulation::new(Protocol::Doq, 1);
    simulation.servers[0].process.held_max.set(Some(BUDGET));
    simulation.servers[0].answerer = Box::new(|_| Reply::Now(vec![0; 65_535]));
    let connection = simulation.connect();
    for _ in 0..100 {
        if let Some(connection) = simulation.clients[0].connections.get_mut(&connection)
            && let Some(id) = connection.streams().open(Dir::Bi)
        {
            connection.send_stream(id).write(&framed(QUERY)).unwrap();
            connection.send_stream(id).finish().unwrap();
        }
    }
    simulation.network.lost = 0.0;
    simulation.run_for(Duration::from_millis(200));
    let process = &simulation.servers[0].process;
    assert!(process.held_most.get() <= BUDGET + (70 << 10), "{}", process.held_most.get());
}

#[test]
fn gaps_in_streams_cost_the_client_its_connection() {
    let mut simulation = Simulation::new(Protocol::Doq, 1);
    let connection = simulation.connect();
    // Every second datagram is lost on purpose: only one byte in two arrives at first.
    let id = simulation.connection(connection).streams().open(Dir::Bi).unwrap();
    for at in 0..400 {
        simulation.network.lost = if at % 2 == 0 { 1.0 } else { 0.0 };
        simulation.connection(connection).send_stream(id).write(&[1]).unwrap();
        simulation.run_for(Duration::from_micros(100));
    }
    simulation.run_for(Duration::from_secs(1));
    let most = simulation.servers[0].process.held_most.get();
    assert!(most < 10 << 10, "{most}");
}

#[test]
fn a_storm_of_migrations_is_bounded() {
    let mut simulation = Simulation::new(Protocol::Doq, 1);
    let connection = simulation.connect();
    for number in 0..2000u16 {
        simulation.clients[0].address.set_port(1024 + number);
        let written = simulation.connection(connection).streams().open(Dir::Bi);
        let Some(id) = written else { break };
        let _ = simulation.connection(connection).send_stream(id).write(&framed(QUERY));
        let _ = simulation.connection(connection).send_stream(id).finish();
        simulation.run_for(Duration::from_micros(200));
    }
    simulation.run_for(Duration::from_secs(2));
    assert!(simulation.servers[0].process.held_most.get() < 256 << 10);
    assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
}

#[test]
fn memory_that_ended_streams_leave_is_counted() {
    let mut simulation = Simulation::new(Protocol::Doq, 1);
    let connection = simulation.connect();
    assert_eq!(occupy(&mut simulation, connection), 256);
    // The time limit for queries ends the streams. quinn-proto keeps their state for other streams.
    simulation.run_for(Duration::from_secs(4));
    let held = simulation.servers[0].process.held.get();
    assert!((40 << 10..64 << 10).contains(&held), "{held}");
    let now = simulation.now;
    simulation.connection(connection).close(now, code(0), Bytes::new());
    simulation.run_for(Duration::from_secs(1));
    assert_eq!(simulation.servers[0].process.held.get(), 0);
}
