//! Upstream name server for tests.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wire::{Class, Flags, Header, MessageBuf, Owner, Request, Section, Type};

/// Name server that answers every query with its own address, and counts the queries.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    asked: Arc<AtomicUsize>,
    pub(crate) own: Ipv4Addr,
}

impl Upstream {
    pub(crate) fn start(last: u8) -> Upstream {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("a socket");
        let (asked, own) = (Arc::new(AtomicUsize::new(0)), Ipv4Addr::new(192, 0, 2, last));
        let counter = Arc::clone(&asked);
        std::thread::spawn(move || {
            let (mut buffer, mut known) = ([0; 4096], HashSet::new());
            while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
                let (packet, mut request) = (&buffer[..length], Request::default());
                let header = Header::read(packet).expect("a socket");
                if request.read(header, packet).is_err() {
                    continue;
                }
                // Health checks of the server do not count as queries of clients, nor does a query that the server
                // sends again because this thread had to wait for a busy machine.
                if request.qtype == Type::A && known.insert((peer, packet.to_vec())) {
                    counter.fetch_add(1, Ordering::SeqCst);
                }
                let header = Header {
                    id: header.id,
                    flags: Flags::default().with_response(true).with_recursion_available(true),
                    ..Header::default()
                };
                let mut message = MessageBuf::new();
                message.start(header, Some((request.name.as_ref(), request.qtype, Class::IN)));
                if request.qtype == Type::A {
                    message.push_a(Section::Answer, Owner::Question, 300, own);
                }
                let _ = socket.send_to(message.finish(None, std::iter::empty()), peer);
            }
        });
        Upstream { address, asked, own }
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}
