//! Order for the clients: what they do, and to which server.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::quic::Framing;
use xtask::Failed;

/// Kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Queries over warm connections, for a while.
    Load,
    /// Idle connections, until standard input ends.
    Hold,
    /// Full TLS handshakes with one query each, for a while.
    Handshakes,
    /// TLS handshakes one after the other, with tickets.
    Resumptions,
}

const JOBS: [(Job, &str); 4] =
    [(Job::Load, "load"), (Job::Hold, "hold"), (Job::Handshakes, "handshakes"), (Job::Resumptions, "resumptions")];

/// Transport of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Tls,
    Http1,
    Http2,
    Quic,
    Http3,
}

const TRANSPORTS: [(Transport, &str); 6] = [
    (Transport::Tcp, "tcp"),
    (Transport::Tls, "tls"),
    (Transport::Http1, "http1"),
    (Transport::Http2, "http2"),
    (Transport::Quic, "quic"),
    (Transport::Http3, "http3"),
];

impl Transport {
    pub(crate) fn name(self) -> &'static str {
        name_in(&TRANSPORTS, self)
    }

    /// Returns the identifier that clients offer, if any.
    pub(crate) fn alpn(self) -> Option<&'static [u8]> {
        match self {
            Transport::Tcp | Transport::Tls => None,
            Transport::Http1 => Some(b"http/1.1"),
            Transport::Http2 => Some(b"h2"),
            Transport::Quic => Some(b"doq"),
            Transport::Http3 => Some(b"h3"),
        }
    }

    /// Returns the framing of messages on QUIC streams, if the transport has these.
    pub(crate) fn framing(self) -> Option<Framing> {
        match self {
            Transport::Quic => Some(Framing::Doq),
            Transport::Http3 => Some(Framing::Http3),
            _ => None,
        }
    }
}

/// Order for the clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) job: Job,
    pub(crate) transport: Transport,
    /// Ports of the server on 127.0.0.1. Only [`Job::Hold`] uses more than the first.
    pub(crate) ports: Vec<u16>,
    /// Certificate of the authority.
    pub(crate) ca: PathBuf,
    /// Number of connections: to each port for [`Job::Hold`], at the same time for [`Job::Load`] and
    /// [`Job::Handshakes`], and altogether for [`Job::Resumptions`].
    pub(crate) connections: usize,
    /// Queries in flight on each connection.
    pub(crate) in_flight: usize,
    /// The only group that is offered for the key exchange; see [`super::tls`].
    pub(crate) group: Option<String>,
    /// Process of the server.
    pub(crate) process: u32,
    /// Duration of the measurement.
    pub(crate) time: Duration,
}

impl Order {
    /// Writes the order as JSON.
    pub(crate) fn write(&self) -> String {
        json!({
            "job": name_in(&JOBS, self.job),
            "transport": self.transport.name(),
            "ports": self.ports,
            "ca": self.ca,
            "connections": self.connections,
            "in_flight": self.in_flight,
            "group": self.group,
            "process": self.process,
            "milliseconds": self.time.as_millis(),
        })
        .to_string()
    }

    /// Reads an order from JSON.
    ///
    /// # Errors
    /// The first field that is missing or invalid.
    pub(crate) fn read(text: &str) -> Result<Order, Failed> {
        let order: Value = serde_json::from_str(text).map_err(|error| format!("order for clients: {error}"))?;
        let invalid = |field: &str| format!("order for clients: invalid `{field}`");
        let text = |field: &str| order[field].as_str().ok_or_else(|| invalid(field));
        let number = |field: &str| order[field].as_u64().ok_or_else(|| invalid(field));
        let count = |field: &str| usize::try_from(number(field)?).map_err(|_| invalid(field));
        let ports = order["ports"].as_array().into_iter().flatten();
        let ports: Option<Vec<u16>> = ports.map(|port| u16::try_from(port.as_u64()?).ok()).collect();
        Ok(Order {
            job: named_in(&JOBS, text("job")?).ok_or_else(|| invalid("job"))?,
            transport: named_in(&TRANSPORTS, text("transport")?).ok_or_else(|| invalid("transport"))?,
            ports: ports.filter(|ports| !ports.is_empty()).ok_or_else(|| invalid("ports"))?,
            ca: text("ca")?.into(),
            connections: count("connections")?,
            in_flight: count("in_flight")?,
            group: order["group"].as_str().map(str::to_owned),
            process: u32::try_from(number("process")?).map_err(|_| invalid("process"))?,
            time: Duration::from_millis(number("milliseconds")?),
        })
    }
}

fn name_in<T: Copy + PartialEq>(names: &[(T, &'static str)], wanted: T) -> &'static str {
    names.iter().find(|(item, _)| *item == wanted).map_or("", |(_, name)| name)
}

fn named_in<T: Copy>(names: &[(T, &str)], wanted: &str) -> Option<T> {
    names.iter().find(|(_, name)| *name == wanted).map(|(item, _)| *item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_refuses_incomplete_orders() {
        let order = Order {
            job: Job::Handshakes,
            transport: Transport::Http3,
            ports: vec![443, 8443],
            ca: "/tmp/ca.pem".into(),
            connections: 8,
            in_flight: 64,
            group: Some("p256".to_owned()),
            process: 7,
            time: Duration::from_millis(1500),
        };
        assert_eq!(Order::read(&order.write()), Ok(order.clone()));
        assert_eq!(Order::read("{}"), Err("order for clients: invalid `job`".to_owned()));
        let without_port = Order { ports: Vec::new(), ..order };
        assert_eq!(Order::read(&without_port.write()), Err("order for clients: invalid `ports`".to_owned()));
    }
}
