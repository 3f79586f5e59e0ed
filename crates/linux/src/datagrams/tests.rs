#![allow(clippy::disallowed_methods, reason = "a test opens its own sockets")]

use std::net::UdpSocket;
use std::time::Duration;

use super::*;

/// Time limit for each datagram.
const PATIENCE: Duration = Duration::from_secs(60);

fn bound(address: &str) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Opens a socket that reports local addresses. Returns `None` for IPv6 if the host has none.
fn server(ipv6: bool) -> Option<UdpSocket> {
    let socket = if ipv6 { bound("[::]:0").ok()? } else { bound("0.0.0.0:0").unwrap() };
    ask_for_local_address(&socket, ipv6).unwrap();
    Some(socket)
}

/// Waits for a datagram, then receives a batch.
fn receive(batch: &mut Batch, socket: &UdpSocket) -> usize {
    socket.peek(&mut [0]).unwrap();
    batch.receive(socket.as_raw_fd()).unwrap()
}

fn read(client: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 4096];
    let (length, from) = client.recv_from(&mut buffer).unwrap();
    (buffer[..length].to_vec(), from)
}

#[test]
fn answers_leave_from_the_address_that_received_the_query() {
    // 127.0.0.2 is not the address that the kernel would choose.
    for (ipv6, client, to) in [(false, "127.0.0.1:0", "127.0.0.2"), (true, "[::1]:0", "::1")] {
        let Some(server) = server(ipv6) else { continue };
        let (client, to): (_, IpAddr) = (bound(client).unwrap(), to.parse().unwrap());
        let to = SocketAddr::new(to, server.local_addr().unwrap().port());
        let mut batch = Batch::new();
        client.send_to(b"query", to).unwrap();
        assert_eq!(receive(&mut batch, &server), 1);
        assert_eq!(batch.datagram(0), b"query");
        assert_eq!(batch.peer(0), Some(client.local_addr().unwrap()));
        assert_eq!(batch.local(0), Some(to.ip()));
        batch.answer(0, b"answer");
        assert_eq!(batch.send(server.as_raw_fd()), 0);
        assert_eq!(read(&client), (b"answer".to_vec(), to));
    }
}

#[test]
fn later_answers_leave_from_the_given_address() {
    for (ipv6, client, from) in [(false, "127.0.0.1:0", "127.0.0.2"), (true, "[::1]:0", "::1")] {
        let Some(server) = server(ipv6) else { continue };
        let (client, from): (_, IpAddr) = (bound(client).unwrap(), from.parse().unwrap());
        send_from(server.as_raw_fd(), b"later", client.local_addr().unwrap(), from).unwrap();
        let port = server.local_addr().unwrap().port();
        assert_eq!(read(&client), (b"later".to_vec(), SocketAddr::new(from, port)));
        let any = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        send_from(server.as_raw_fd(), b"any", client.local_addr().unwrap(), any).unwrap();
        assert_eq!(read(&client).0, b"any");
    }
}

#[test]
fn a_dual_stack_socket_reports_ipv4_addresses_as_such() {
    let Some(server) = server(true) else { return };
    let client = bound("127.0.0.1:0").unwrap();
    let to: SocketAddr = ([127, 0, 0, 2], server.local_addr().unwrap().port()).into();
    let mut batch = Batch::new();
    client.send_to(b"query", to).unwrap();
    assert_eq!(receive(&mut batch, &server), 1);
    assert_eq!(batch.local(0), Some(to.ip()));
    batch.answer(0, b"answer");
    assert_eq!(batch.send(server.as_raw_fd()), 0);
    assert_eq!(read(&client), (b"answer".to_vec(), to));
}

#[test]
fn a_refused_answer_is_counted_and_the_others_are_sent() {
    let (server, client) = (server(false).unwrap(), bound("127.0.0.1:0").unwrap());
    let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), server.local_addr().unwrap().port());
    for query in [b"1", b"2", b"3"] {
        client.send_to(query, to).unwrap();
    }
    let mut batch = Batch::new();
    assert_eq!(receive(&mut batch, &server), 3);
    batch.answer(0, b"first");
    // No datagram is that long.
    batch.answer(1, &[0; 1 << 16]);
    batch.answer(2, b"third");
    assert_eq!(batch.send(server.as_raw_fd()), 1);
    assert_eq!([read(&client).0, read(&client).0], [b"first".to_vec(), b"third".to_vec()]);
}

#[test]
fn a_batch_is_bounded_in_number_and_length() {
    let (server, client) = (server(false).unwrap(), bound("127.0.0.1:0").unwrap());
    let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), server.local_addr().unwrap().port());
    for _ in 0..=BATCH {
        client.send_to(&[7; DATAGRAM_MAX + 1], to).unwrap();
    }
    let mut batch = Batch::new();
    assert_eq!(receive(&mut batch, &server), BATCH);
    assert!((0..BATCH).all(|at| batch.datagram(at) == [7; DATAGRAM_MAX]));
    assert_eq!(receive(&mut batch, &server), 1);
    let nothing = batch.receive(server.as_raw_fd());
    assert!(nothing.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
}

#[test]
fn spreads_datagrams_of_one_client_over_all_sockets() {
    let open = |port: u16| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        socket.set_reuse_port(true).unwrap();
        socket.bind(&SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port).into()).unwrap();
        UdpSocket::from(socket)
    };
    let first = open(0);
    let to = first.local_addr().unwrap();
    let second = open(to.port());
    spread_at_random(&first, 2).unwrap();
    let client = bound("127.0.0.1:0").unwrap();
    // One socket gets all of them with a probability of 2^-63.
    for _ in 0..64 {
        client.send_to(b"query", to).unwrap();
    }
    for socket in [first, second] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(receive(&mut Batch::new(), &socket) > 0);
    }
}

#[test]
fn sends_datagrams_to_many_peers_from_the_given_address() {
    let server = server(false).unwrap();
    let port = server.local_addr().unwrap().port();
    let clients: Vec<_> = (0..BATCH).map(|_| bound("127.0.0.1:0").unwrap()).collect();
    let from: IpAddr = "127.0.0.2".parse().unwrap();
    let mut outgoing = Outgoing::new();
    assert!(outgoing.is_empty());
    for (number, client) in clients.iter().enumerate() {
        assert!(!outgoing.is_full());
        outgoing.push(&[u8::try_from(number).unwrap()], client.local_addr().unwrap(), from);
    }
    assert!(outgoing.is_full());
    assert_eq!(outgoing.send(server.as_raw_fd()), 0);
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(read(client), (vec![u8::try_from(number).unwrap()], SocketAddr::new(from, port)));
    }
    outgoing.push(b"any", clients[0].local_addr().unwrap(), Ipv4Addr::UNSPECIFIED.into());
    outgoing.push(&[0; 1 << 16], clients[0].local_addr().unwrap(), Ipv4Addr::UNSPECIFIED.into());
    assert_eq!(outgoing.send(server.as_raw_fd()), 1, "no datagram is that long");
    assert_eq!(read(&clients[0]).0, b"any");
}

#[test]
fn a_byte_of_the_datagram_chooses_the_socket() {
    let open = |port: u16| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        socket.set_reuse_port(true).unwrap();
        socket.bind(&SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port).into()).unwrap();
        let socket = UdpSocket::from(socket);
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let first = open(0);
    let to = first.local_addr().unwrap();
    let sockets = [first, open(to.port()), open(to.port())];
    let byte = SteeringByte { long_mask: 0x80, short_offset: 1, long_offset: 6 };
    steer_by_byte(&sockets[0], sockets.len(), byte).unwrap();
    let client = bound("127.0.0.1:0").unwrap();
    for number in 0..60u8 {
        for datagram in [&[0x40, number][..], &[0xc0, 0, 0, 0, 1, 8, number][..]] {
            client.send_to(datagram, to).unwrap();
            assert_eq!(read(&sockets[usize::from(number) % 3]).0, datagram);
        }
    }
    client.send_to(&[0xc0], to).unwrap();
    assert_eq!(read(&sockets[0]).0, [0xc0]);
}

#[test]
fn reports_icmp_errors_of_both_families() {
    for (address, is_ipv4) in [("127.0.0.1:0", true), ("[::1]:0", false)] {
        let Ok(socket) = std::net::UdpSocket::bind(address) else { continue };
        super::report_icmp_errors(&socket, is_ipv4).unwrap();
    }
}
