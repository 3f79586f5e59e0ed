//! DNS client that sends a question as it was recorded.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use testkit::{Parsed, Question};
use wire::{Section, Type};

/// Timeout for a response: longer than the server waits for an upstream.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Sends a question over UDP or TCP. Returns `None` without a response.
pub(crate) fn ask(server: SocketAddr, question: &Question, tcp: bool) -> Option<Parsed> {
    let packet = question.packet();
    if tcp { over_tcp(server, &packet, question.qtype) } else { over_udp(server, &packet) }
}

fn over_udp(server: SocketAddr, packet: &[u8]) -> Option<Parsed> {
    // A new socket per question, so that no late response can be taken for the next one.
    let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
    socket.connect(server).ok()?;
    socket.set_read_timeout(Some(TIMEOUT)).ok()?;
    socket.send(packet).ok()?;
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let length = socket.recv(&mut buffer).ok()?;
    Parsed::read(buffer.get(..length)?).ok()
}

fn over_tcp(server: SocketAddr, packet: &[u8], qtype: Type) -> Option<Parsed> {
    let mut stream = TcpStream::connect_timeout(&server, TIMEOUT).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    let length = u16::try_from(packet.len()).ok()?.to_be_bytes();
    stream.write_all(&[&length[..], packet].concat()).ok()?;
    let mut response = read_message(&mut stream)?;
    while qtype == Type::AXFR && !is_complete(&response) {
        response = response.followed_by(read_message(&mut stream)?);
    }
    Some(response)
}

fn read_message(stream: &mut TcpStream) -> Option<Parsed> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).ok()?;
    Parsed::read(&message).ok()
}

/// Returns true for a refused zone transfer, or one that ends with the SOA record of its start (RFC 5936 §2.2).
fn is_complete(transfer: &Parsed) -> bool {
    let answers = transfer.section(Section::Answer);
    answers.len() != 1 && answers.last().is_none_or(|last| last.rtype == Type::SOA)
}
