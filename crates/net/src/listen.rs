//! Opening the sockets of an address: one UDP and one TCP socket for each worker, all on the same port.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Octets of kernel buffer that are asked for: some thousand queries; the system may grant less.
const KERNEL_BUFFER: usize = 4 << 20;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// An address to listen on, with the label by which the engine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The label of the engine's listener.
    pub label: String,
    /// The address; `None` for all of this machine, both families.
    pub ip: Option<IpAddr>,
    /// The port; 0 for any free one.
    pub port: u16,
    /// No datagrams.
    pub streams_only: bool,
}

/// The sockets of an address, one pair a worker.
#[derive(Debug)]
pub struct Opened {
    /// The label of the engine's listener.
    pub label: String,
    /// The address that was bound.
    pub bound: SocketAddr,
    /// A datagram socket, unless there are streams only, and a stream socket for each worker.
    pub sockets: Vec<(Option<UdpSocket>, TcpListener)>,
}

/// Why an address cannot be listened on.
#[derive(Debug)]
pub struct ListenError {
    /// `udp` or `tcp`.
    pub protocol: &'static str,
    /// The address.
    pub address: SocketAddr,
    /// What the system said.
    pub error: io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListenError { protocol, address, error } = self;
        write!(f, "listen {protocol} {address}: {error}")?;
        let port = address.port();
        match error.kind() {
            io::ErrorKind::AddrInUse => {
                let flags = if *protocol == "udp" { "-lunp" } else { "-ltnp" };
                write!(f, "; find the process that has port {port} with `ss {flags} 'sport = :{port}'`")?;
                if port == 53 { f.write_str(STUB_LISTENER) } else { Ok(()) }
            }
            io::ErrorKind::PermissionDenied => f.write_str(
                "; ports below 1024 need a privilege: use a higher one with `-dns.port`, or allow it with \
                 `setcap cap_net_bind_service=+ep` on the binary",
            ),
            _ => Ok(()),
        }
    }
}

/// The process that has port 53 on most desktops and many nodes.
const STUB_LISTENER: &str = ". If it is systemd-resolved, set `DNSStubListener=no` in /etc/systemd/resolved.conf, or listen on \
    another address with `bind`";

/// Tells whether another socket has this address already, perhaps one that shares it (`SO_REUSEPORT`): a socket that shares
/// nothing cannot be bound then. Of use before the address is opened.
#[must_use]
pub fn is_taken(address: &Address) -> bool {
    let wildcard = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let wanted = SocketAddr::new(address.ip.unwrap_or(wildcard), address.port);
    if address.port == 0 {
        return false;
    }
    let bound =
        if address.streams_only { TcpListener::bind(wanted).map(drop) } else { UdpSocket::bind(wanted).map(drop) };
    bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

/// Opens the sockets of an address for `workers` workers.
///
/// # Errors
/// If the system refuses one: the address is not of this machine, the port is taken or needs a privilege.
pub fn open(address: &Address, workers: usize) -> Result<Opened, ListenError> {
    let wildcard = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let wanted = SocketAddr::new(address.ip.unwrap_or(wildcard), address.port);
    match open_at(address, wanted, workers) {
        // A machine without IPv6 has no wildcard of both families.
        Err(error) if address.ip.is_none() && error.error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            open_at(address, SocketAddr::from(([0, 0, 0, 0], address.port)), workers)
        }
        outcome => outcome,
    }
}

fn open_at(address: &Address, mut wanted: SocketAddr, workers: usize) -> Result<Opened, ListenError> {
    let mut sockets = Vec::with_capacity(workers);
    if wanted.port() == 0 {
        let free = free_port(wanted);
        wanted.set_port(free.map_err(|error| ListenError { protocol: "udp", address: wanted, error })?);
    }
    for _ in 0..workers {
        let fail = |protocol, address| move |error| ListenError { protocol, address, error };
        let mut udp = None;
        if !address.streams_only {
            udp = Some(udp_socket(wanted, address.ip.is_none()).map_err(fail("udp", wanted))?);
        }
        let tcp = tcp_socket(wanted, address.ip.is_none()).map_err(fail("tcp", wanted))?;
        sockets.push((udp, tcp));
    }
    if let [(Some(first), _), _, ..] = sockets.as_slice() {
        // Where the kernel refuses, it spreads clients by their addresses, as it does without being asked.
        let _ = crate::datagrams::spread_at_random(first, workers);
    }
    Ok(Opened { label: address.label.clone(), bound: wanted, sockets })
}

/// How often a port is looked for that both protocols have free.
const PORT_TRIES: usize = 64;

/// A port that nobody has, for UDP and TCP. It is looked for with sockets that share nothing: to those that may share a
/// port the system gives also one that another server of the same user has.
fn free_port(wanted: SocketAddr) -> io::Result<u16> {
    let mut outcome = Err(io::ErrorKind::AddrInUse.into());
    for _ in 0..PORT_TRIES {
        let port = UdpSocket::bind(wanted)?.local_addr()?.port();
        let both = (wanted.ip(), port);
        outcome = UdpSocket::bind(both).and_then(|_| TcpListener::bind(both)).map(|_| port);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn udp_socket(address: SocketAddr, wildcard: bool) -> io::Result<UdpSocket> {
    let socket = bound(address, wildcard, Type::DGRAM, Protocol::UDP)?;
    // What the system grants is enough to run; a refusal is no reason not to.
    let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
    let _ = socket.set_send_buffer_size(KERNEL_BUFFER);
    if wildcard {
        // Each datagram then says to which address it was sent, and the answer leaves from there.
        crate::datagrams::ask_for_local_address(&socket, address.is_ipv6())?;
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
