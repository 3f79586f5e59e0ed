//! Rows of the table: what is measured, and what is required.

use std::time::Duration;

use super::super::certificates::{AUTHORITY, Certificates};
use super::super::queries;
use super::ROUNDS;
use super::client::{Job, Order, Transport};
use super::idle;
use super::site::Site;
use super::turn::{self, Turn};
pub(crate) use super::work::Work;
use xtask::Failed;

/// Row of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) work: Work,
    pub(crate) required: Required,
    /// Reason why CoreDNS has no figure.
    pub(crate) missing_in_coredns: Option<&'static str>,
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// CPU time per answer in microseconds.
    Micros,
    /// Count per second of CPU time.
    PerCoreSecond,
    Percent,
    Kibibytes,
}

/// Requirement on the figure of Portolan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Required {
    /// Nothing that this table can show; the text says why.
    Nothing(&'static str),
    AtMost(f64),
    AtLeast(f64),
    /// At most one part of the figure of CoreDNS, of this many.
    PartOfCoreDns(f64),
    /// At least this many times the figure of CoreDNS.
    TimesCoreDns(f64),
    /// At most this many times the figure of Portolan in another row.
    TimesRow(&'static str, f64),
}

use Required::{AtLeast, AtMost, Nothing, PartOfCoreDns, TimesCoreDns, TimesRow};

const fn row(name: &'static str, what: &'static str, work: Work, required: Required) -> Row {
    Row { name, what, work, required, missing_in_coredns: None }
}

/// Reason of a row without a requirement of its own.
const SEE_QUERIES: Required = Nothing("as before: `cargo xtask bench`");

/// All rows, in the order of the table.
pub(crate) const ALL: &[Row] = &[
    row("udp", "UDP, 16 sockets × 32", Work::Udp, SEE_QUERIES),
    row("tcp", "TCP, 8 connections × 64", Work::Load(Transport::Tcp, 8, 64), SEE_QUERIES),
    // 1.5 µs where TCP takes 1.1.
    row("dot", "TLS, 8 × 64", Work::Load(Transport::Tls, 8, 64), TimesRow("tcp", 1.36)),
    row("doh2", "HTTP/2, 8 × 64, POST", Work::Load(Transport::Http2, 8, 64), PartOfCoreDns(8.0)),
    // Kernel's share of `doh1`: as many reads and writes.
    row("tcp-1", "TCP, 64 × 1, the floor of doh1", Work::Load(Transport::Tcp, 64, 1), Nothing("–")),
    row("doh1", "HTTP/1.1, 64 × 1, POST", Work::Load(Transport::Http1, 64, 1), PartOfCoreDns(6.0)),
    row("doq", "QUIC, 8 × 64", Work::Load(Transport::Quic, 8, 64), PartOfCoreDns(4.0)),
    row("doh3", "HTTP/3, 8 × 64, POST", Work::Load(Transport::Http3, 8, 64), PartOfCoreDns(4.0)),
    row("idle-dot", "memory of an idle connection over TLS", Work::Idle(Transport::Tls), AtMost(12.0)),
    row("idle-doh1", "the same over HTTP/1.1", Work::Idle(Transport::Http1), AtMost(20.0)),
    row("idle-doh2", "the same over HTTP/2", Work::Idle(Transport::Http2), AtMost(20.0)),
    row("idle-doq", "the same over QUIC", Work::Idle(Transport::Quic), AtMost(24.0)),
    row("idle-doh3", "the same over HTTP/3", Work::Idle(Transport::Http3), AtMost(24.0)),
    row("handshakes", "full TLS handshakes, P-256", Work::Handshakes("secp256r1"), TimesCoreDns(1.5)),
    row("handshakes-pq", "the same, X25519MLKEM768", Work::Handshakes("X25519MLKEM768"), Nothing("–")),
    row("resumed", "sessions resumed on reconnect", Work::Resumptions, AtLeast(95.0)),
    row(
        "forward-dot",
        "forwarded over TLS, not cached, 128 in flight",
        Work::Forward(Transport::Tls),
        PartOfCoreDns(2.0),
    ),
    row(
        "forward-doh",
        "forwarded over HTTP/2, not cached, 128 in flight",
        Work::Forward(Transport::Http2),
        PartOfCoreDns(2.0),
    ),
    Row {
        name: "forward-doq",
        what: "forwarded over QUIC, not cached, 128 in flight",
        work: Work::Forward(Transport::Quic),
        required: PartOfCoreDns(2.0),
        missing_in_coredns: Some("no `quic://` in *forward*"),
    },
];

/// Queries in flight on each socket over UDP: for local answers, and for forwarded ones. The buffer of CoreDNS's socket
/// has no room for many more than those of the latter while it waits for its upstream.
const WINDOWS: [usize; 2] = [32, 8];
/// Clients that shake hands at the same time.
const HANDSHAKING: usize = 16;
/// Sessions that are resumed one after the other.
const RECONNECTS: usize = 200;

impl Work {
    pub(crate) fn unit(&self) -> Unit {
        match self {
            Work::Udp | Work::Load(..) | Work::Forward(_) => Unit::Micros,
            Work::Handshakes(_) => Unit::PerCoreSecond,
            Work::Resumptions => Unit::Percent,
            Work::Idle(_) => Unit::Kibibytes,
        }
    }

    /// Returns the number of rounds. What depends on no other load has one.
    pub(crate) fn rounds(&self) -> usize {
        if matches!(self, Work::Resumptions | Work::Idle(_)) { 1 } else { ROUNDS }
    }

    /// Opens the connections to upstreams, before anything is measured.
    pub(crate) fn warm_up(&self, site: &Site, time: Duration) {
        if matches!(self, Work::Forward(_)) {
            // With all queries at once, some may be lost before the connections are open.
            let _ = turn::over_udp(&site.server, &queries::unique_names(), time, WINDOWS[1]);
        }
    }

    /// Measures the work once.
    pub(crate) fn measure(&self, site: &Site, certificates: &Certificates, time: Duration) -> Result<Turn, Failed> {
        let order = |job, transport, connections, in_flight, group: Option<&str>| Order {
            job,
            transport,
            ports: site.ports_of(transport),
            ca: certificates.path(AUTHORITY),
            connections,
            in_flight,
            group: group.map(str::to_owned),
            process: site.server.id(),
            time,
        };
        match *self {
            Work::Udp => turn::over_udp(&site.server, &["www.example.org. A".to_owned()], time, WINDOWS[0]),
            Work::Forward(_) => turn::over_udp(&site.server, &queries::unique_names(), time, WINDOWS[1]),
            Work::Load(transport, connections, in_flight) => {
                turn::of_load(&order(Job::Load, transport, connections, in_flight, None))
            }
            Work::Handshakes(group) => {
                turn::of_handshakes(&order(Job::Handshakes, Transport::Tls, HANDSHAKING, 1, Some(group)))
            }
            Work::Resumptions => turn::of_resumptions(&order(Job::Resumptions, Transport::Tls, RECONNECTS, 1, None)),
            Work::Idle(transport) => idle::measure(site, &order(Job::Hold, transport, 0, 1, None)),
        }
    }
}
