//! Opens the sockets of an address: one UDP and one TCP socket per worker, all on the same port.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use host::invariant::holds;

use linux::datagrams::SteeringByte;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::limits::{KERNEL_BUFFER, KERNEL_BUFFERS_MAX};

/// Length of the accept queue.
const BACKLOG: i32 = 1024;

/// Address to listen on, with the label of its listener in the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Label of the engine's listener.
    pub label: String,
    /// IP address, or `None` for all addresses of the host in both families.
    pub ip: Option<IpAddr>,
    /// Port, or 0 for any free one.
    pub port: u16,
    /// Kinds of sockets to open.
    pub kind: AddressKind,
}

/// Kinds of sockets of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    /// UDP and TCP.
    Dns,
    /// TCP.
    Streams,
    /// UDP for QUIC.
    Quic,
}

/// Sockets of an address, one pair per worker.
#[derive(Debug)]
pub struct Opened {
    /// Label of the engine's listener.
    pub label: String,
    /// Bound address.
    pub bound: SocketAddr,
    /// UDP socket, unless the address serves streams only, and TCP socket of each worker.
    pub sockets: Vec<(Option<UdpSocket>, TcpListener)>,
    /// UDP socket of each worker for QUIC. The kernel chooses the socket by the connection ID in the datagram.
    pub quic: Vec<UdpSocket>,
}

/// Failure to open an address.
#[derive(Debug)]
pub struct ListenError {
    /// `udp` or `tcp`.
    pub protocol: &'static str,
    /// Address.
    pub address: SocketAddr,
    /// Error of the system call.
    pub error: io::Error,
}

impl core::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListenError { protocol, address, error } = self;
        write!(f, "listen {protocol} {address}: {}", host::errors::describe(error))?;
        let port = address.port();
        match error.kind() {
            io::ErrorKind::AddrInUse => {
                let flags = if *protocol == "udp" { "-lunp" } else { "-ltnp" };
                write!(f, "; find the process that uses port {port} with `ss {flags} 'sport = :{port}'`")?;
                if port == 53 { f.write_str(STUB_LISTENER) } else { Ok(()) }
            }
            io::ErrorKind::PermissionDenied => f.write_str(
                "; ports below 1024 need a privilege: choose a higher port with `-dns.port`, or allow it with \
                 `setcap cap_net_bind_service=+ep` on the binary",
            ),
            _ => Ok(()),
        }
    }
}

/// Hint about the process that usually occupies port 53 on desktops and many nodes.
const STUB_LISTENER: &str = ". If it is systemd-resolved, set `DNSStubListener=no` in /etc/systemd/resolved.conf, or \
                             listen on another address with `bind`";

/// Returns true if another socket is bound to this address, even one with `SO_REUSEPORT`: the test socket does not set
/// that option, so the kernel refuses it. Must run before this process opens the address.
#[must_use]
pub fn is_taken(address: &Address) -> bool {
    let wildcard = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let wanted = SocketAddr::new(address.ip.unwrap_or(wildcard), address.port);
    if address.port == 0 {
        return false;
    }
    let bound = if address.kind == AddressKind::Streams {
        TcpListener::bind(wanted).map(drop)
    } else {
        UdpSocket::bind(wanted).map(drop)
    };
    bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

/// Opens the sockets of an address for `workers` workers.
///
/// # Errors
/// Fails if the system refuses a socket: the address is not local, the port is in use, or binding needs a privilege.
pub fn open(address: &Address, workers: usize) -> Result<Opened, ListenError> {
    holds(workers > 0, "a server has a worker");
    let wildcard = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let wanted = SocketAddr::new(address.ip.unwrap_or(wildcard), address.port);
    match open_at(address, wanted, workers) {
        // A host without IPv6 has no dual-stack wildcard address.
        Err(error) if address.ip.is_none() && error.error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            open_at(address, SocketAddr::from(([0, 0, 0, 0], address.port)), workers)
        }
        outcome => outcome,
    }
}

/// Attempts to find a port that is free, for both protocols if the address is for both.
const PORT_TRIES: usize = 64;

/// Opens the sockets at the wanted port. If that is 0, finds a free port: another program may take one between the
/// search and the opening, so several are tried.
fn open_at(address: &Address, wanted: SocketAddr, workers: usize) -> Result<Opened, ListenError> {
    if wanted.port() != 0 {
        return open_at_port(address, wanted, workers);
    }
    let fail = |error| ListenError { protocol: "udp", address: wanted, error };
    let mut outcome = Err(fail(io::ErrorKind::AddrInUse.into()));
    for _ in 0..PORT_TRIES {
        outcome = free_port(address.kind, wanted)
            .map_err(fail)
            .and_then(|port| open_at_port(address, SocketAddr::new(wanted.ip(), port), workers));
        if !outcome.as_ref().is_err_and(|error| error.error.kind() == io::ErrorKind::AddrInUse) {
            break;
        }
    }
    outcome
}

fn open_at_port(address: &Address, wanted: SocketAddr, workers: usize) -> Result<Opened, ListenError> {
    holds(wanted.port() != 0, "the sockets of all workers have one port");
    if address.kind == AddressKind::Quic {
        return open_quic(address, wanted, workers).map_err(|error| ListenError {
            protocol: "udp",
            address: wanted,
            error,
        });
    }
    let mut sockets = Vec::with_capacity(workers);
    for _ in 0..workers {
        sockets.push(open_pair(address, wanted, workers)?);
    }
    holds(sockets.len() == workers, "each worker has its sockets");
    let is_meant = |(udp, _): &(Option<UdpSocket>, _)| udp.is_some() == (address.kind == AddressKind::Dns);
    holds(sockets.iter().all(is_meant), "an address for DNS has sockets for datagrams");
    spread(&sockets);
    Ok(Opened { label: address.label.clone(), bound: wanted, sockets, quic: Vec::new() })
}

/// Finds a port that is free for UDP, and for TCP too unless the address is for QUIC. The test sockets do not set
/// `SO_REUSEPORT`. With it, the system could also return a port of another server that runs as the same user.
fn free_port(kind: AddressKind, wanted: SocketAddr) -> io::Result<u16> {
    let datagrams = UdpSocket::bind(wanted)?;
    let port = datagrams.local_addr()?.port();
    if kind != AddressKind::Quic {
        TcpListener::bind((wanted.ip(), port))?;
    }
    Ok(port)
}

/// Adds sockets to those that another process has opened, so that each of `workers` workers has its own. Without them,
/// fewer workers serve the address.
pub fn complete(opened: &mut Opened, address: &Address, workers: usize) {
    holds(opened.quic.is_empty(), "sockets for QUIC are not handed over");
    let known = opened.sockets.len();
    for _ in known..workers {
        let Ok(pair) = open_pair(address, opened.bound, workers) else { break };
        opened.sockets.push(pair);
    }
    holds(opened.sockets.len() >= known, "the sockets of another process stay");
    if opened.sockets.len() > known {
        spread(&opened.sockets);
    }
}

/// Opens the sockets of one worker.
fn open_pair(
    address: &Address,
    wanted: SocketAddr,
    workers: usize,
) -> Result<(Option<UdpSocket>, TcpListener), ListenError> {
    let fail = |protocol, address| move |error| ListenError { protocol, address, error };
    let mut udp = None;
    if address.kind == AddressKind::Dns {
        udp = Some(udp_socket(wanted, address.ip.is_none(), workers).map_err(fail("udp", wanted))?);
    }
    let tcp = tcp_socket(wanted, address.ip.is_none()).map_err(fail("tcp", wanted))?;
    Ok((udp, tcp))
}

/// Makes the kernel distribute the datagrams of an address.
fn spread(sockets: &[(Option<UdpSocket>, TcpListener)]) {
    if let [(Some(first), _), _, ..] = sockets {
        // Optional: without the filter, the kernel distributes clients by the hash of their addresses.
        let _ = linux::datagrams::spread_at_random(first, sockets.len());
    }
}

fn open_quic(address: &Address, wanted: SocketAddr, workers: usize) -> io::Result<Opened> {
    let opened: io::Result<Vec<_>> = (0..workers).map(|_| udp_socket(wanted, address.ip.is_none(), workers)).collect();
    let quic = opened?;
    holds(quic.len() == workers, "each worker has its socket");
    if let [first, _, ..] = quic.as_slice() {
        let byte = SteeringByte {
            long_mask: quic::LONG_HEADER,
            short_offset: quic::SHORT_OFFSET,
            long_offset: quic::LONG_OFFSET,
        };
        // Optional: without the filter, workers pass datagrams on to the owner of their connection.
        let _ = linux::datagrams::steer_by_byte(first, quic.len(), byte);
    }
    Ok(Opened { label: address.label.clone(), bound: wanted, sockets: Vec::new(), quic })
}

fn udp_socket(address: SocketAddr, wildcard: bool, workers: usize) -> io::Result<UdpSocket> {
    let socket = bound(address, wildcard, Type::DGRAM, Protocol::UDP)?;
    // Larger buffers only help. The defaults are enough to run.
    // The kernel doubles the number.
    let bytes = (KERNEL_BUFFERS_MAX / 2 / workers.max(1)).clamp(*KERNEL_BUFFER.start(), *KERNEL_BUFFER.end());
    let _ = socket.set_recv_buffer_size(bytes);
    let _ = socket.set_send_buffer_size(bytes);
    if wildcard {
        // Makes the kernel report the local address of each datagram, so that the answer leaves from there.
        linux::datagrams::ask_for_local_address(&socket, address.is_ipv6())?;
    }
    Ok(socket.into())
}

fn tcp_socket(address: SocketAddr, wildcard: bool) -> io::Result<TcpListener> {
    let socket = bound(address, wildcard, Type::STREAM, Protocol::TCP)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn bound(address: SocketAddr, wildcard: bool, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    socket.set_reuse_port(true)?;
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(!wildcard)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}
