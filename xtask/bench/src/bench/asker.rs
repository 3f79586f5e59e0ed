//! DNS client that queries a server for the state of the cluster.

use std::net::UdpSocket;
use std::time::Duration;

use xtask::Failed;

/// DNS client with one query in flight.
pub(crate) struct Asker {
    socket: UdpSocket,
}

impl Asker {
    pub(crate) fn new(port: u16) -> Result<Asker, Failed> {
        let open = || {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.connect(("127.0.0.1", port))?;
            socket.set_read_timeout(Some(Duration::from_secs(2)))?;
            Ok(Asker { socket })
        };
        open().map_err(|error: std::io::Error| error.to_string())
    }

    fn ask(&self, name: &str) -> Option<Vec<u8>> {
        self.socket.send(&query(name, 0)?).ok()?;
        let mut buffer = vec![0; 4096];
        let length = self.socket.recv(&mut buffer).ok()?;
        buffer.truncate(length);
        Some(buffer)
    }

    /// Returns the address in the response, if it has exactly one record.
    pub(crate) fn address(&self, name: &str) -> Option<[u8; 4]> {
        only_address(&self.ask(name)?)
    }
}

/// Builds an A query, or returns `None` if the name is invalid.
pub(crate) fn query(name: &str, id: u16) -> Option<Vec<u8>> {
    let mut query = wire::MessageBuf::new();
    let name = wire::Name::from_text(name).ok()?;
    let header = wire::Header { id, ..wire::Header::default() };
    query.start(header, Some((name.as_ref(), wire::Type::A, wire::Class::IN)));
    Some(query.finish(None, std::iter::empty()).to_vec())
}

/// Returns the address in a response with exactly one record.
pub(crate) fn only_address(answer: &[u8]) -> Option<[u8; 4]> {
    let message = wire::Message::parse(answer).ok()?;
    let mut records = message.records();
    let address = records.next()?.rdata().first_chunk().copied();
    address.filter(|_| records.next().is_none())
}
