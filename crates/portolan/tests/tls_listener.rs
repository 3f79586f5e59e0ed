//! Rules of the TLS listener that clients rely on, and clients that mean harm in the handshake.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::http::{server_name, tls_client};
use crate::support::{Folder, PATIENCE, Server, certify, page, query, wait_until};
use wire::{Header, Type};

/// DNS over TLS with an authority that clients trust.
struct Running {
    server: Server,
    address: SocketAddr,
    ca: PathBuf,
    _folder: Folder,
}

type Tls = rustls::StreamOwned<rustls::ClientConnection, TcpStream>;

impl Running {
    fn start(name: &str, lines: &str) -> Running {
        Running::start_with(name, "", lines)
    }

    /// Starts a server with these properties of *tls*.
    fn start_with(name: &str, properties: &str, lines: &str) -> Running {
        let folder = Folder::new(name);
        certify(&folder, &["dns.example.org"]);
        let path = |name: &str| folder.path().join(name).display().to_string();
        let tls = format!("tls {} {} {{\n{properties}\n}}", path("cert.pem"), path("key.pem"));
        let text = format!(
            "tls://.:0 {{\nbind 127.0.0.1\n{tls}\n{lines}\nhosts /dev/null {{\n192.0.2.1 www.example.org\n}}\n}}\n"
        );
        let mut server = Server::start(&folder.write("Corefile", &text));
        let address = server.address_of("tls://127.0.0.1:0");
        Running { server, address, ca: path("ca.pem").into(), _folder: folder }
    }

    fn open(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    fn connect(&self, alpn: &[&str]) -> Tls {
        let tls = rustls::ClientConnection::new(Arc::new(tls_client(&self.ca, alpn)), server_name()).unwrap();
        rustls::StreamOwned::new(tls, self.open())
    }
}

/// Returns a query with its length prefix.
fn framed(id: u16) -> Vec<u8> {
    let message = query(id, "www.example.org.", Type::A);
    [&u16::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
}

/// Reads an answer and returns its ID.
fn read_answer(stream: &mut impl Read) -> u16 {
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer).unwrap();
    Header::read(&answer).unwrap().id
}

/// Reads until the server closes the connection.
fn read_to_end(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

#[test]
fn accepts_any_alpn_identifier_and_none() {
    let running = Running::start("tls-alpn", "");
    for alpn in [&[][..], &["dot"], &["foo", "bar"]] {
        let mut stream = running.connect(alpn);
        stream.write_all(&framed(1)).unwrap();
        assert_eq!(read_answer(&mut stream), 1, "{alpn:?}");
    }
}

#[test]
fn a_client_without_sni_gets_the_certificate() {
    let running = Running::start("tls-no-sni", "");
    let mut config = tls_client(&running.ca, &[]);
    config.enable_sni = false;
    let tls = rustls::ClientConnection::new(Arc::new(config), server_name()).unwrap();
    let mut stream = rustls::StreamOwned::new(tls, running.open());
    stream.write_all(&framed(1)).unwrap();
    assert_eq!(read_answer(&mut stream), 1);
}

#[test]
fn a_client_that_connects_too_often_is_turned_away_before_the_handshake() {
    let mut running = Running::start_with("tls-rate", "connection_rate 5", "prometheus 127.0.0.1:0");
    let metrics = running.server.address_of("127.0.0.1:0");
    let is_served = |stream: TcpStream| {
        let config = Arc::new(tls_client(&running.ca, &[]));
        let mut stream =
            rustls::StreamOwned::new(rustls::ClientConnection::new(config, server_name()).unwrap(), stream);
        stream.write_all(&framed(1)).is_ok() && stream.read_exact(&mut [0; 2]).is_ok()
    };
    let start = Instant::now();
    let served = (0..50).filter(|_| is_served(running.open())).count();
    // Five at once, and five for each second that the test takes.
    let most = 5 + usize::try_from(start.elapsed().as_millis() / 200).unwrap();
    assert!((5..=most).contains(&served), "{served} of {most}");
    // Another client of the same server, from another address.
    let other = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    other.bind(&SocketAddr::from(([127, 0, 0, 2], 0)).into()).unwrap();
    other.connect(&running.address.into()).unwrap();
    assert!(is_served(other.into()));
    let text = page(metrics, "/metrics").unwrap().1;
    let refused = format!("portolan_limit_hits_total{{limit=\"connection_rate\"}} {}", 50 - served);
    assert!(text.contains(&refused), "{refused}");
    wait_until("the client is served again", || is_served(running.open()));
}

#[test]
fn answers_queries_in_pieces_and_several_in_one_record() {
    let running = Running::start("tls-pieces", "");
    let mut stream = running.connect(&[]);
    for byte in framed(1) {
        // Each byte is a record.
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(read_answer(&mut stream), 1);
    stream.write_all(&[framed(2), framed(3)].concat()).unwrap();
    assert_eq!([read_answer(&mut stream), read_answer(&mut stream)], [2, 3]);
    // A record that arrives in pieces.
    let Tls { conn, sock } = &mut stream;
    conn.writer().write_all(&framed(4)).unwrap();
    let mut record = Vec::new();
    conn.write_tls(&mut record).unwrap();
    for byte in record {
        sock.write_all(&[byte]).unwrap();
    }
    assert_eq!(read_answer(&mut stream), 4);
}

#[test]
fn answers_more_queries_than_a_record_can_contain() {
    let running = Running::start("tls-many", "");
    let mut stream = running.connect(&[]);
    let queries: Vec<u8> = (0..1000).flat_map(framed).collect();
    let Tls { conn, sock } = &mut stream;
    let mut sender = sock.try_clone().unwrap();
    conn.complete_io(sock).unwrap();
    conn.set_buffer_limit(None);
    conn.writer().write_all(&queries).unwrap();
    let mut records = Vec::new();
    while conn.wants_write() {
        conn.write_tls(&mut records).unwrap();
    }
    // The answers do not fit into the buffers of the kernel, so they must be read meanwhile.
    let sending = std::thread::spawn(move || sender.write_all(&records));
    let mut answered: Vec<u16> = (0..1000).map(|_| read_answer(&mut stream)).collect();
    sending.join().unwrap().unwrap();
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..1000));
}

#[test]
fn clear_text_gets_no_answer() {
    let running = Running::start("tls-clear", "");
    let mut stream = running.open();
    stream.write_all(&framed(1)).unwrap();
    let start = Instant::now();
    let read = read_to_end(&mut stream);
    // At most an alert: type 21.
    assert!(read.is_empty() || (read[0] == 21 && read.len() == 7), "{read:?}");
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn refuses_tls_1_0_and_1_1() {
    let running = Running::start("tls-old", "");
    for minor in [1, 2] {
        // A ClientHello with two cipher suites and no extension: no version but this one.
        let hello = [&[3, minor][..], &[7; 32], &[0, 0, 4, 0xc0, 0x09, 0xc0, 0x2b, 1, 0]].concat();
        let length = u8::try_from(hello.len()).unwrap();
        let mut stream = running.open();
        stream.write_all(&[&[22, 3, minor, 0, length + 4, 1, 0, 0, length][..], &hello].concat()).unwrap();
        // The alert protocol_version (70), or one for the missing extensions, but no ServerHello.
        let read = read_to_end(&mut stream);
        assert!(read.first() == Some(&21) && read.get(5) == Some(&2), "3.{minor}: {read:?}");
    }
}

#[test]
fn an_idle_connection_ends_with_a_close_notify() {
    let running = Running::start("tls-idle", "timeouts {\nidle 1s\n}");
    let mut stream = running.connect(&[]);
    let start = Instant::now();
    stream.write_all(&framed(1)).unwrap();
    assert_eq!(read_answer(&mut stream), 1);
    // Without a close_notify, rustls reports an unexpected end.
    assert_eq!(stream.read(&mut [0]).map_err(|error| error.kind()), Ok(0));
    assert!(start.elapsed() > Duration::from_millis(800));
}

#[test]
fn a_query_that_does_not_complete_ends_the_connection() {
    let running = Running::start("tls-slow", "timeouts {\nread 1s\nidle 10m\n}");
    let mut stream = running.connect(&[]);
    stream.write_all(&framed(1)).unwrap();
    assert_eq!(read_answer(&mut stream), 1);
    let start = Instant::now();
    stream.write_all(&[0]).unwrap();
    assert_eq!(stream.read(&mut [0]).map_err(|error| error.kind()), Ok(0));
    assert!(start.elapsed() > Duration::from_millis(800));
}

#[test]
fn maxtcpqueries_ends_the_connection_after_the_last_answer() {
    let running = Running::start("tls-counted", "timeouts {\nmaxtcpqueries 3\n}");
    let mut stream = running.connect(&[]);
    stream.write_all(&(1..=5).flat_map(framed).collect::<Vec<u8>>()).unwrap();
    assert_eq!([(); 3].map(|()| read_answer(&mut stream)), [1, 2, 3]);
    // The kernel may reset the connection, because it has bytes that nobody reads.
    let end = stream.read(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(end, Ok(0) | Err(ErrorKind::ConnectionReset)), "{end:?}");
}

#[test]
fn handshakes_that_do_not_continue_are_ended() {
    let running = Running::start("tls-half-open", "");
    let mut config = tls_client(&running.ca, &[]);
    config.alpn_protocols = vec![vec![b'x'; 200]; 20];
    let mut hello = Vec::new();
    rustls::ClientConnection::new(Arc::new(config), server_name()).unwrap().write_tls(&mut hello).unwrap();
    let start = Instant::now();
    let mut half_open: Vec<TcpStream> = (0..300)
        .map(|number| {
            let mut stream = running.open();
            // Nothing, a byte, or all but the last byte of the first message.
            stream.write_all(&hello[..[0, 1, hello.len() - 1][number % 3]]).unwrap();
            stream
        })
        .collect();
    let mut stream = running.connect(&[]);
    stream.write_all(&framed(1)).unwrap();
    assert_eq!(read_answer(&mut stream), 1, "other clients are served");
    for stream in &mut half_open {
        read_to_end(stream);
    }
    assert!((Duration::from_secs(4)..PATIENCE).contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[test]
fn garbage_in_the_handshake_costs_little() {
    let running = Running::start("tls-garbage", "");
    let before = running.server.processor_time();
    // Handshake records that announce a message of 16 MiB.
    let record = [&[22, 3, 3, 0x40, 0][..], &[1, 0xff, 0xff, 0xff], &[0; 16_380]].concat();
    let times = (0..20).map(|_| {
        let mut stream = running.open();
        let start = Instant::now();
        let _ = (0..20).try_for_each(|_| stream.write_all(&record));
        read_to_end(&mut stream);
        start.elapsed()
    });
    // Well before the time limit for handshakes. A busy machine may delay some.
    let fastest = times.min().unwrap();
    assert!(fastest < Duration::from_secs(3), "the connections end after {fastest:?}");
    let mut stream = running.connect(&[]);
    stream.write_all(&framed(1)).unwrap();
    assert_eq!(read_answer(&mut stream), 1);
    wait_until("it is idle", || running.server.processor_time() < before + Duration::from_secs(2));
}
