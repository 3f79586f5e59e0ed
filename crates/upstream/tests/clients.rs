//! Clients against an upstream on a virtual network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod network;

use core::time::Duration;

use host::Instant;
use network::{Conditions, END, Generator, MultiplexPair, StreamPair, UdpPair};
use upstream::{Mismatch, QueryError, UdpClient, UdpEvent, UdpQuery};

/// Number of random networks per test.
const SEEDS: u64 = 1000;
const SECOND: Duration = Duration::from_secs(1);

/// Returns the time that is this long after the start.
fn at(span: Duration) -> Instant {
    Instant::START + span
}

#[test]
fn every_udp_query_completes_once_on_any_network() {
    for seed in 0..SEEDS {
        let mut random = Generator(seed);
        let mut pair = UdpPair::new(seed, Conditions::random(&mut random));
        let routes = 1 + random.below(3);
        for _ in 0..random.below(120) {
            let route = u8::try_from(random.below(routes)).unwrap();
            let retransmit_after = random.is(70).then(|| random.up_to(SECOND));
            pair.start(route, random.up_to(2 * SECOND), retransmit_after);
            if random.is(pair.conditions.cancelled) {
                let pending = pair.pending();
                pending.first().into_iter().for_each(|query| pair.cancel(*query));
            }
            let until = pair.now + random.up_to(SECOND / 20);
            while pair.step(until) {}
        }
        pair.run();
        assert!(pair.pending().is_empty() && pair.client.is_idle(), "seed {seed}");
    }
}

#[test]
fn every_stream_query_completes_once_on_any_network() {
    for seed in 0..SEEDS {
        let mut random = Generator(seed);
        let mut pair = StreamPair::new(seed, Conditions::random(&mut random));
        pair.limits.idle_max = random.up_to(5 * SECOND);
        pair.limits.age_max = random.up_to(5 * SECOND) * u32::from(random.is(50));
        pair.limits.kept_max = usize::try_from(random.below(4)).unwrap();
        let routes = 1 + random.below(3);
        for _ in 0..random.below(120) {
            let route = u8::try_from(random.below(routes)).unwrap();
            pair.start(route, random.up_to(2 * SECOND));
            if random.is(pair.conditions.cancelled) {
                let pending = pair.pending();
                pending.first().into_iter().for_each(|query| pair.cancel(*query));
            }
            let until = pair.now + random.up_to(SECOND / 20);
            while pair.step(until) {}
        }
        pair.run();
        assert!(pair.pending().is_empty() && pair.client.is_idle(), "seed {seed}");
        assert_eq!(pair.client.connections(), 0, "seed {seed}");
        let failures = pair.outcomes.values().filter(|outcome| matches!(outcome, Err(QueryError::Network { .. })));
        assert!(failures.count() <= pair.failed, "seed {seed}: a connection fails more than one query");
    }
}

#[test]
fn every_multiplexed_query_completes_once_on_any_network() {
    for seed in 0..SEEDS {
        let mut random = Generator(seed);
        let mut pair = MultiplexPair::new(seed, Conditions::random(&mut random));
        pair.limits.idle_max = random.up_to(5 * SECOND);
        pair.limits.age_max = random.up_to(5 * SECOND) * u32::from(random.is(50));
        pair.limits.kept_max = usize::try_from(random.below(4)).unwrap();
        let announced = [1, 5, 100, 1000][usize::try_from(random.below(4)).unwrap()];
        let allowed = if random.is(50) { announced } else { usize::try_from(random.below(10)).unwrap() };
        pair.streams = (announced, allowed);
        let routes = 1 + random.below(3);
        for _ in 0..random.below(120) {
            let route = u8::try_from(random.below(routes)).unwrap();
            pair.start(route, random.up_to(2 * SECOND));
            if random.is(pair.conditions.cancelled) {
                let pending = pair.pending();
                pending.first().into_iter().for_each(|query| pair.cancel(*query));
            }
            let until = pair.now + random.up_to(SECOND / 20);
            while pair.step(until) {}
        }
        pair.run();
        assert!(pair.pending().is_empty() && pair.client.is_idle(), "seed {seed}");
        assert_eq!(pair.client.connections(), 0, "seed {seed}");
    }
}

#[test]
fn a_perfect_network_loses_no_query() {
    let mut udp = UdpPair::new(1, Conditions::GOOD);
    let mut streams = StreamPair::new(1, Conditions::GOOD);
    // Enough to replace ports while their queries are in flight.
    for _ in 0..1000 {
        udp.start(0, SECOND, Some(SECOND / 2));
    }
    // As many as eight connections carry.
    for _ in 0..8 * 64 {
        streams.start(0, SECOND);
    }
    udp.run();
    streams.run();
    assert_eq!(udp.outcomes.values().filter(|(_, outcome)| outcome.is_ok()).count(), 1000);
    assert_eq!(streams.outcomes.values().filter(|outcome| outcome.is_ok()).count(), 8 * 64);
    assert_eq!(streams.opened, 8);
}

#[test]
fn a_lost_datagram_is_sent_once_more() {
    let mut pair = UdpPair::new(1, Conditions { loss: 100, ..Conditions::GOOD });
    let query = pair.start(0, SECOND, Some(SECOND / 4)).unwrap();
    pair.step(at(SECOND / 4));
    pair.conditions.loss = 0;
    let late = pair.start(0, SECOND, None).unwrap();
    pair.conditions.loss = 100;
    pair.run();
    assert_eq!(pair.outcomes[&query], (at(SECOND), Err(QueryError::Timeout)));
    assert!(pair.outcomes[&late].1.is_ok());
    pair.conditions.loss = 0;
    let started = pair.now;
    let next = pair.start(0, SECOND, Some(SECOND / 4)).unwrap();
    pair.run();
    assert!(pair.outcomes[&next].0 < started + SECOND / 4);
}

#[test]
fn an_icmp_error_fails_the_queries_of_its_port_at_once() {
    let mut pair = UdpPair::new(1, Conditions { reset: 100, ..Conditions::GOOD });
    let query = pair.start(0, SECOND, None).unwrap();
    pair.run();
    let (now, outcome) = &pair.outcomes[&query];
    assert!(*now < at(SECOND / 4) && matches!(outcome, Err(QueryError::Network { during: "read", .. })));
}

/// Runs until no query is in flight, and not until idle sockets are closed.
fn settle(pair: &mut UdpPair) {
    while !pair.pending().is_empty() && pair.step(END) {}
}

#[test]
fn ignored_datagrams_are_late_or_have_a_wrong_id_or_question() {
    let mut pair = UdpPair::new(1, Conditions { duplication: 100, ..Conditions::GOOD });
    for _ in 0..100 {
        pair.start(0, SECOND, None);
        pair.run();
    }
    assert!(!pair.ignored.is_empty() && pair.ignored.iter().all(|reason| *reason == Mismatch::Late));

    let forgery = Conditions { forgery: 100, latency_max: Duration::ZERO, ..Conditions::GOOD };
    let mut pair = UdpPair::new(1, forgery);
    for _ in 0..100 {
        pair.start(0, SECOND, None);
        pair.run();
    }
    let count = |ignored: &[Mismatch], reason| ignored.iter().filter(|one| **one == reason).count();
    let [late, id, question] = [Mismatch::Late, Mismatch::Id, Mismatch::Question].map(|one| count(&pair.ignored, one));
    assert!(late == 0 && id > 10 && question > 50 && id + question == 100, "{late} {id} {question}");
}

#[test]
fn a_late_reply_that_arrives_at_another_socket_is_no_guess() {
    let mut client = UdpClient::new(Generator(1).message_ids());
    let message = network::query(1);
    let start = |client: &mut UdpClient<u8>, now| {
        let query = UdpQuery { route: &0, message: &message, deadline: now + SECOND, retransmit_after: None };
        let started = client.start(now, &query).unwrap();
        (started.socket, network::reply(client.poll_transmit().unwrap().datagram))
    };
    let (closed, late) = start(&mut client, Instant::START);
    client.handle_timeout(at(SECOND));
    let mut now = at(SECOND);
    let mut guess = late.clone();
    guess[0] = 0xff;
    let mut ignored = Vec::new();
    while now < at(20 * SECOND) {
        let (socket, reply) = start(&mut client, now);
        assert_ne!(socket, closed);
        // The system has given the port of the first socket to this one.
        if reply[..2] != late[..2] {
            ignored.push((now, client.handle_input(socket, &late)));
        }
        assert_eq!(client.handle_input(socket, &guess), Some(Mismatch::Id));
        assert_eq!(client.handle_input(socket, &reply), None);
        now = now + SECOND;
        client.handle_timeout(now);
    }
    let is_late = |(_, reason): &(Instant, _)| *reason == Some(Mismatch::Late);
    let (soon, later): (Vec<_>, Vec<_>) = ignored.into_iter().partition(|(now, _)| *now < at(5 * SECOND));
    assert!(soon.iter().all(is_late), "{soon:?}");
    assert!(!later.last().is_some_and(is_late), "{later:?}");
}

#[test]
fn ignored_messages_on_streams_are_late_only_once_for_each_query_that_has_ended() {
    let mut pair = StreamPair::new(1, Conditions::GOOD);
    let queries = [(); 5].map(|()| pair.start(0, SECOND));
    while pair.outcomes.is_empty() && pair.step(at(SECOND)) {}
    let pending = pair.pending();
    pending.iter().for_each(|query| pair.cancel(*query));
    pair.run();
    assert!(pending.len() < queries.len() && pair.ignored.iter().all(|reason| *reason == Mismatch::Late));

    let mut pair = StreamPair::new(1, Conditions { forgery: 100, ..Conditions::GOOD });
    for _ in 0..100 {
        pair.start(0, SECOND);
        pair.run();
    }
    assert!(pair.ignored.len() == 100 && !pair.ignored.contains(&Mismatch::Late), "{:?}", pair.ignored);
}

#[test]
fn there_are_as_many_sockets_as_queries_in_flight_and_sixty_four_before_queries_share_them() {
    for (at_once, sockets) in [(1, 1), (5, 5), (64, 64), (200, 64)] {
        let mut pair = UdpPair::new(1, Conditions::GOOD);
        for _ in 0..at_once {
            pair.start(0, SECOND, None);
        }
        assert_eq!(pair.open.len(), sockets, "{at_once} at once");
    }
}

#[test]
fn queries_to_an_upstream_that_was_unreachable_a_moment_ago_wait_shortly_until_it_replies() {
    let route = 0;
    let mut client = upstream::UdpClient::<u8>::new(Box::new(|| 7));
    let message = [0; 12];
    let (error, at) = (QueryError::Closed, |millis| Instant::START + SECOND + Duration::from_millis(millis));
    let start = |client: &mut upstream::UdpClient<u8>, now| {
        let query =
            upstream::UdpQuery { route: &route, message: &message, deadline: now + 2 * SECOND, retransmit_after: None };
        client.start(now, &query).unwrap()
    };
    let outcomes = |client: &mut upstream::UdpClient<u8>| {
        let events = core::iter::from_fn(|| client.poll_event());
        events.filter(|event| matches!(event, upstream::UdpEvent::Completed(..))).count()
    };
    let first = start(&mut client, at(0));
    client.handle_error(at(0), first.socket, &error);
    assert_eq!(outcomes(&mut client), 1, "the query fails at once");
    start(&mut client, at(9900));
    client.handle_timeout(at(10_299));
    assert_eq!(outcomes(&mut client), 0);
    client.handle_timeout(at(10_300));
    assert_eq!(outcomes(&mut client), 1, "the next one fails without another report");
    start(&mut client, at(10_301));
    client.handle_timeout(at(12_300));
    assert_eq!(outcomes(&mut client), 0, "ten seconds later, queries have their whole time");
    client.handle_timeout(at(12_301));
    assert_eq!(outcomes(&mut client), 1);
}

#[test]
fn each_port_carries_eight_queries() {
    let mut pair = UdpPair::new(1, Conditions::GOOD);
    for _ in 0..8 * 100 {
        pair.start(0, SECOND, None);
        settle(&mut pair);
        assert!(pair.open.len() <= 1);
    }
    assert_eq!(pair.uses.len(), 100);
}

#[test]
fn sockets_of_a_burst_are_closed_while_others_are_in_use() {
    let mut pair = UdpPair::new(1, Conditions::GOOD);
    for _ in 0..64 {
        pair.start(0, SECOND, None);
    }
    settle(&mut pair);
    assert_eq!(pair.open.len(), 64);
    for _ in 0..40 {
        pair.start(0, SECOND, None);
        let until = pair.now + SECOND / 20;
        while pair.step(until) {}
    }
    assert!(pair.open.len() <= 1, "{} sockets", pair.open.len());
}

#[test]
fn probes_of_an_idle_server_keep_no_socket() {
    let mut pair = UdpPair::new(1, Conditions::GOOD);
    for probe in 1..=60 {
        pair.start(0, SECOND, None);
        let until = pair.now + 2 * SECOND;
        while pair.step(until) {}
        assert_eq!((pair.open.len(), pair.uses.len()), (0, probe));
        pair.now = pair.now + 28 * SECOND;
    }
}

#[test]
fn a_socket_is_not_used_after_a_second_without_a_query_even_if_the_timer_is_late() {
    let mut pair = UdpPair::new(1, Conditions::GOOD);
    pair.start(0, SECOND, None);
    settle(&mut pair);
    pair.now = Instant::START + SECOND;
    pair.start(0, SECOND, None);
    settle(&mut pair);
    assert_eq!((pair.uses.len(), pair.open.len()), (2, 1));
}

#[test]
fn source_ports_cover_the_range_of_the_system_in_ten_minutes() {
    /// Part of Linux's default range, with the same part of the queries: the share covered depends on the ratio.
    const RANGE: u64 = 28_232 / 30;
    const QUERIES: u32 = 2000 * 600 / 30;
    let (mut system, mut pair) = (Generator(1), UdpPair::new(1, Conditions::GOOD));
    let mut covered = std::collections::HashSet::new();
    for _ in 0..QUERIES {
        let before = pair.uses.len();
        pair.start(0, SECOND, None);
        covered.extend((before..pair.uses.len()).map(|_| system.below(RANGE)));
        settle(&mut pair);
        pair.outcomes.clear();
    }
    let missing = RANGE - u64::try_from(covered.len()).unwrap();
    assert!(missing * 100 <= RANGE, "{missing} of {RANGE} ports were not used");
}

#[test]
fn a_pooled_connection_that_was_closed_is_replaced_silently() {
    let mut pair = StreamPair::new(1, Conditions::GOOD);
    let first = pair.start(0, SECOND);
    pair.step(at(SECOND));
    while !pair.outcomes.contains_key(&first) && pair.step(at(SECOND)) {}
    pair.conditions.loss = 100;
    let second = pair.start(0, SECOND);
    pair.conditions.loss = 0;
    pair.reset_all();
    pair.run();
    let is_reused = |query| pair.outcomes[&query].as_ref().map(|reply| reply.is_reused);
    assert_eq!((is_reused(first), is_reused(second), pair.opened), (Ok(false), Ok(false), 2));
}

#[test]
fn a_new_connection_that_is_closed_fails_its_query() {
    let mut pair = StreamPair::new(1, Conditions { reset: 100, ..Conditions::GOOD });
    let query = pair.start(0, SECOND);
    pair.run();
    assert!(matches!(pair.outcomes[&query], Err(QueryError::Network { during: "read", .. })));
    assert_eq!(pair.opened, 1);
}

#[test]
fn queries_above_the_pipelining_limit_wait_for_others_to_end() {
    let mut pair = StreamPair::new(1, Conditions::GOOD);
    pair.handshakes_max = 8;
    for _ in 0..600 {
        pair.start(0, SECOND);
    }
    pair.run();
    // The query for which the ninth connection is opened gets no reply.
    assert_eq!(pair.outcomes.values().filter(|outcome| outcome.is_ok()).count(), 599);
    assert_eq!(pair.opened, 9);
}

#[test]
fn a_connection_without_a_reply_takes_no_new_queries() {
    let mut pair = StreamPair::new(1, Conditions { loss: 100, ..Conditions::GOOD });
    let silent = pair.start(0, SECOND);
    pair.run();
    pair.conditions.loss = 0;
    let next = pair.start(0, SECOND);
    pair.run();
    assert_eq!((&pair.outcomes[&silent], pair.opened), (&Err(QueryError::Timeout), 2));
    assert!(!pair.outcomes[&next].as_ref().unwrap().is_reused);
}

#[test]
fn idle_connections_are_closed_when_their_time_is_over() {
    let mut pair = StreamPair::new(1, Conditions::GOOD);
    for _ in 0..3 {
        pair.start(0, SECOND);
        while !pair.pending().is_empty() && pair.step(pair.now + SECOND) {}
        while pair.step(pair.now + 9 * SECOND) {}
        assert_eq!(pair.connections(), 1);
    }
    pair.run();
    assert_eq!((pair.opened, pair.connections()), (1, 0));
}

#[test]
fn one_connection_multiplexes_queries_until_it_is_full() {
    for (streams, queries, connections) in [(100, 100, 1), (1000, 100, 1), (100, 101, 2), (100, 350, 4), (1, 2, 2)] {
        let mut pair = MultiplexPair::new(1, Conditions::GOOD);
        pair.streams = (streams, streams);
        for _ in 0..queries {
            pair.start(0, SECOND);
        }
        pair.run();
        assert!(pair.outcomes.values().all(Result::is_ok), "{queries} queries");
        assert_eq!(pair.opened, connections, "{queries} queries on {streams} streams");
    }
}

#[test]
fn queries_wait_if_the_peer_allows_no_further_stream() {
    let mut pair = MultiplexPair::new(1, Conditions::GOOD);
    pair.streams = (100, 3);
    for _ in 0..200 {
        pair.start(0, 2 * SECOND);
    }
    pair.run();
    assert!(pair.outcomes.values().all(Result::is_ok));
    assert_eq!(pair.opened, 16);
}

#[test]
fn a_multiplexed_query_is_retried_once_if_its_connection_ends() {
    let mut pair = MultiplexPair::new(1, Conditions { loss: 100, ..Conditions::GOOD });
    let queries = [(); 3].map(|()| pair.start(0, SECOND));
    pair.step(at(SECOND));
    pair.conditions.loss = 0;
    pair.reset_all();
    pair.run();
    assert!(queries.iter().all(|query| pair.outcomes[query].is_ok()), "{:?}", pair.outcomes);
    assert_eq!(pair.opened, 2);
}

#[test]
fn a_connection_that_is_going_away_keeps_its_queries_and_takes_no_others() {
    let mut pair = MultiplexPair::new(1, Conditions::GOOD);
    let first = pair.start(0, SECOND);
    pair.step(at(SECOND));
    pair.go_away();
    pair.step(pair.now);
    let second = pair.start(0, SECOND);
    pair.run();
    let connection = |query| pair.outcomes[&query].as_ref().unwrap().connection;
    assert_ne!(connection(first), connection(second));
}

#[test]
fn all_queries_fail_at_once_if_no_connection_can_be_opened() {
    let mut pair = MultiplexPair::new(1, Conditions { unopened: 100, ..Conditions::GOOD });
    for _ in 0..50 {
        pair.start(0, SECOND);
    }
    pair.run();
    assert_eq!((pair.outcomes.len(), pair.opened), (50, 1));
    assert!(pair.outcomes.values().all(|outcome| matches!(outcome, Err(QueryError::Network { during: "dial", .. }))));
}

#[test]
fn a_slow_query_does_not_end_a_connection_that_carries_responses() {
    let mut pair = MultiplexPair::new(1, Conditions { loss: 100, ..Conditions::GOOD });
    let slow = pair.start(0, SECOND);
    pair.step(at(SECOND));
    pair.conditions.loss = 0;
    for _ in 0..20 {
        pair.start(0, SECOND);
        while pair.step(pair.now + SECOND / 10) {}
    }
    assert_eq!((&pair.outcomes[&slow], pair.opened), (&Err(QueryError::Timeout), 1));
    // Without any response, it is not used again.
    pair.conditions.loss = 100;
    pair.start(0, SECOND);
    pair.run();
    pair.conditions.loss = 0;
    pair.start(0, SECOND);
    pair.run();
    assert_eq!((pair.opened, pair.connections()), (2, 0));
}

#[test]
fn a_busy_connection_is_replaced_when_it_is_too_old() {
    let mut pair = MultiplexPair::new(1, Conditions::GOOD);
    (pair.limits.idle_max, pair.limits.age_max) = (SECOND, 2 * SECOND);
    for _ in 0..500 {
        pair.start(0, SECOND);
        let until = pair.now + SECOND / 100;
        while pair.step(until) {}
    }
    assert!(pair.outcomes.values().all(Result::is_ok));
    assert_eq!(pair.opened, 3);
}

#[test]
fn a_socket_that_cannot_be_opened_is_not_closed_after_its_query_was_cancelled() {
    let mut client = UdpClient::new(Box::new(|| 7));
    let message = network::query(1);
    let query = UdpQuery { route: &"192.0.2.1:53", message: &message, deadline: at(SECOND), retransmit_after: None };
    let first = client.start(Instant::START, &query).unwrap();
    client.cancel(first.query);
    assert_eq!(client.poll_event(), Some(UdpEvent::Open(first.socket, "192.0.2.1:53")));
    client.handle_open_error(first.socket, &QueryError::Exhausted);
    let second = client.start(Instant::START, &query).unwrap();
    assert_eq!(client.poll_event(), Some(UdpEvent::Open(second.socket, "192.0.2.1:53")));
}
