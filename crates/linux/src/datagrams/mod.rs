//! Batched datagram I/O: `recvmmsg` and `sendmmsg` with the local address of each datagram.
//!
//! The kernel gets pointers into buffers that the batch owns and never moves. Every call sets all pointers again. No
//! wrapper crate offers both calls together with control messages (see docs/decisions/0001).
#![allow(unsafe_code, reason = "recvmmsg and sendmmsg have no safe wrapper that keeps the local address")]

use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, RawFd};

#[cfg(miri)]
mod fake;
#[cfg(miri)]
use fake as system;
/// System calls with pointers into the buffers.
#[cfg(not(miri))]
use libc as system;

/// Datagrams read by one system call. Twice as many would gain little more throughput and cost twice the memory.
pub const BATCH: usize = 32;
/// Length of the longest datagram in bytes. The rest of a longer one is lost. A DNS name of 255 bytes with EDNS options
/// fits several times.
const DATAGRAM_MAX: usize = 2048;
/// [`BATCH`] in the type of the system call.
const BATCH_LEN: libc::c_uint = 32;
const _: () = assert!(BATCH_LEN as usize == BATCH);

/// Length in bytes of a control message with an address of either family.
const CONTROL_LEN: usize = 64;

/// Buffer for control messages, aligned like their header.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Control([u8; CONTROL_LEN]);

/// Makes the kernel report the local address of each datagram (`IP_PKTINFO`, `IPV6_RECVPKTINFO`).
///
/// # Errors
/// Fails if the kernel does not know the option.
pub fn ask_for_local_address(socket: &impl AsRawFd, ipv6: bool) -> io::Result<()> {
    let (level, option) =
        if ipv6 { (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO) } else { (libc::IPPROTO_IP, libc::IP_PKTINFO) };
    switch_on(socket, level, option)
}

fn switch_on(socket: &impl AsRawFd, level: libc::c_int, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    let length = socket_length(size_of::<libc::c_int>());
    // SAFETY: the option value points at a live integer of the length given.
    let outcome = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const on).cast(), length) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the kernel report all ICMP errors for a connected socket, such as an unreachable host. Without it, only
/// "port unreachable" is reported. The errors also stay in the error queue of the socket until they are read from there
/// (`MSG_ERRQUEUE`).
///
/// # Errors
/// Fails if the kernel rejects the option.
pub fn report_icmp_errors(socket: &impl AsRawFd, is_ipv4: bool) -> io::Result<()> {
    let (level, option) =
        if is_ipv4 { (libc::IPPROTO_IP, libc::IP_RECVERR) } else { (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) };
    switch_on(socket, level, option)
}

/// Makes the kernel deliver each datagram to a random one of the `count` sockets of an address.
///
/// The default of the kernel, a hash of the client's address and port, sends all queries of one client (such as the
/// cache of a node) to the same worker (docs/decisions/0004-spreading.md).
///
/// # Errors
/// Fails if the kernel rejects the filter.
pub fn spread_at_random(socket: &impl AsRawFd, count: usize) -> io::Result<()> {
    const RANDOM: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32;
    let count = u32::try_from(count).unwrap_or(1);
    attach(
        socket,
        &mut [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, RANDOM),
            step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, count),
            step(libc::BPF_RET | BPF_A, 0),
        ],
    )
}

/// Byte of a datagram that chooses its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeringByte {
    /// Bits of the first byte that mark the long form of a datagram.
    pub long_mask: u8,
    /// Offset of the byte in the short form.
    pub short_offset: u32,
    /// Offset of the byte in the long form.
    pub long_offset: u32,
}

/// Makes the kernel deliver each datagram to the socket, of the `count` of an address, whose index is a byte of the
/// datagram modulo `count`. A datagram that is too short goes to the first one.
///
/// # Errors
/// Fails if the kernel rejects the filter.
pub fn steer_by_byte(socket: &impl AsRawFd, count: usize, byte: SteeringByte) -> io::Result<()> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    let count = u32::try_from(count).unwrap_or(1);
    let mut is_long = step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, u32::from(byte.long_mask));
    is_long.jt = 2;
    attach(
        socket,
        &mut [
            step(LOAD, 0),
            is_long,
            step(LOAD, byte.short_offset),
            step(libc::BPF_JMP | libc::BPF_JA, 1),
            step(LOAD, byte.long_offset),
            step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, count),
            step(libc::BPF_RET | BPF_A, 0),
        ],
    )
}

/// Instruction of a filter without a jump.
fn step(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).unwrap_or(0), jt: 0, jf: 0, k }
}

/// Attaches a filter to the group of sockets that share an address.
fn attach(socket: &impl AsRawFd, filter: &mut [libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(filter.len()).unwrap_or(0);
    let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    let length = socket_length(size_of::<libc::sock_fprog>());
    let option = libc::SO_ATTACH_REUSEPORT_CBPF;
    // SAFETY: the option value is a live program of the length given, whose filter outlives the call.
    let outcome =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const program).cast(), length) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// BPF return value: the accumulator (`BPF_A`, missing in libc).
const BPF_A: u32 = 0x10;

/// Converts a length that is far below the maximum of the kernel's type.
fn socket_length(length: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(length).unwrap_or(0)
}

/// Batch of received datagrams, and the answers to them.
pub struct Batch {
    /// [`BATCH`] times [`DATAGRAM_MAX`] bytes. The system provides zeroed pages, and an idle socket takes few of them.
    bytes: Vec<u8>,
    peers: Box<[libc::sockaddr_storage; BATCH]>,
    controls: Box<[Control; BATCH]>,
    lengths: [usize; BATCH],
    control_lengths: [usize; BATCH],
    received: usize,
    answers: Vec<u8>,
    /// Index of each answered datagram, and the end of its answer in `answers`. Answers are contiguous.
    answered: Vec<(usize, usize)>,
}

impl Default for Batch {
    fn default() -> Self {
        Batch::new()
    }
}

impl Batch {
    /// Creates an empty batch.
    #[must_use]
    pub fn new() -> Batch {
        // SAFETY: all-zero bytes are a valid `sockaddr_storage`.
        let peers: [libc::sockaddr_storage; BATCH] = unsafe { zeroed() };
        Batch {
            bytes: vec![0; BATCH * DATAGRAM_MAX],
            peers: Box::new(peers),
            controls: Box::new([Control([0; CONTROL_LEN]); BATCH]),
            lengths: [0; BATCH],
            control_lengths: [0; BATCH],
            received: 0,
            answers: Vec::with_capacity(BATCH * 512),
            answered: Vec::with_capacity(BATCH),
        }
    }

    /// Receives the datagrams that have arrived, at most [`BATCH`], without blocking. Returns their number.
    ///
    /// # Errors
    /// `WouldBlock` if no datagram has arrived, otherwise the error of the system call.
    pub fn receive(&mut self, socket: RawFd) -> io::Result<usize> {
        self.answers.clear();
        self.answered.clear();
        self.received = 0;
        let mut parts: [MaybeUninit<libc::iovec>; BATCH] = [MaybeUninit::uninit(); BATCH];
        let mut headers: [MaybeUninit<libc::mmsghdr>; BATCH] = [MaybeUninit::uninit(); BATCH];
        for (at, bytes) in self.bytes.chunks_exact_mut(DATAGRAM_MAX).enumerate() {
            let base = bytes.as_mut_ptr().cast();
            parts[at].write(libc::iovec { iov_base: base, iov_len: DATAGRAM_MAX });
            let control = (self.controls[at].0.as_mut_ptr(), CONTROL_LEN);
            let peer = (&raw mut self.peers[at], size_of::<libc::sockaddr_storage>());
            headers[at].write(header(parts[at].as_mut_ptr(), peer, control));
        }
        let headers_at = headers.as_mut_ptr().cast();
        // SAFETY: all headers are initialised and point at buffers of `self` and at `parts`, which outlive the call.
        let count =
            unsafe { system::recvmmsg(socket, headers_at, BATCH_LEN, libc::MSG_DONTWAIT as _, std::ptr::null_mut()) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (at, header) in headers.iter().enumerate().take(count) {
            // SAFETY: written above, and updated by the kernel.
            let header = unsafe { header.assume_init_ref() };
            self.lengths[at] = header.msg_len as usize;
            self.control_lengths[at] = control_length(&header.msg_hdr);
        }
        self.received = count;
        Ok(count)
    }

    /// Returns the bytes of a datagram.
    #[must_use]
    pub fn datagram(&self, at: usize) -> &[u8] {
        &self.bytes[at * DATAGRAM_MAX..][..self.lengths[at].min(DATAGRAM_MAX)]
    }

    /// Returns the source address of a datagram.
    #[must_use]
    pub fn peer(&self, at: usize) -> Option<SocketAddr> {
        socket_address(&self.peers[at])
    }

    /// Returns the destination address of a datagram, if the socket reports it ([`ask_for_local_address`]).
    #[must_use]
    pub fn local(&self, at: usize) -> Option<IpAddr> {
        local_address(&self.controls[at].0[..self.control_lengths[at].min(CONTROL_LEN)])
    }

    /// Adds the answer to a datagram.
    pub fn answer(&mut self, at: usize, bytes: &[u8]) {
        self.answers.extend_from_slice(bytes);
        self.answered.push((at, self.answers.len()));
    }

    /// Sends the answers, each from the address that received the query. Returns the number that the kernel refused.
    pub fn send(&mut self, socket: RawFd) -> usize {
        let mut parts: [MaybeUninit<libc::iovec>; BATCH] = [MaybeUninit::uninit(); BATCH];
        let mut headers: [MaybeUninit<libc::mmsghdr>; BATCH] = [MaybeUninit::uninit(); BATCH];
        let (mut start, answers) = (0, self.answers.as_mut_ptr());
        for (slot, (at, end)) in self.answered.iter().copied().enumerate() {
            // Not a pointer to a part of the slice: each would end the pointers to earlier parts.
            let base = answers.wrapping_add(start).cast();
            parts[slot].write(libc::iovec { iov_base: base, iov_len: end - start });
            start = end;
            let from = outgoing_control(&mut self.controls[at], self.control_lengths[at]);
            let peer = (&raw mut self.peers[at], address_length(&self.peers[at]));
            headers[slot].write(header(parts[slot].as_mut_ptr(), peer, from));
        }
        send_all(socket, &mut headers, self.answered.len())
    }
}

/// Datagrams to send together, to any addresses.
pub struct Outgoing {
    bytes: Vec<u8>,
    /// End of each datagram in `bytes`. They are contiguous.
    ends: Vec<usize>,
    peers: Box<[libc::sockaddr_storage; BATCH]>,
    controls: Box<[Control; BATCH]>,
    control_lengths: [usize; BATCH],
}

impl Default for Outgoing {
    fn default() -> Self {
        Outgoing::new()
    }
}

impl Outgoing {
    /// Creates an empty batch.
    #[must_use]
    pub fn new() -> Outgoing {
        // SAFETY: all-zero bytes are a valid `sockaddr_storage`.
        let peers: [libc::sockaddr_storage; BATCH] = unsafe { zeroed() };
        Outgoing {
            bytes: Vec::with_capacity(BATCH * 512),
            ends: Vec::with_capacity(BATCH),
            peers: Box::new(peers),
            controls: Box::new([Control([0; CONTROL_LEN]); BATCH]),
            control_lengths: [0; BATCH],
        }
    }

    /// Returns true if the batch holds [`BATCH`] datagrams.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.ends.len() >= BATCH
    }

    /// Returns true if the batch holds no datagram.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a datagram from the given local address. If that is unspecified, the kernel chooses one. A datagram that is
    /// added to a full batch is lost.
    pub fn push(&mut self, bytes: &[u8], peer: SocketAddr, local: IpAddr) {
        let at = self.ends.len();
        if at >= BATCH {
            return;
        }
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        write_address(&mut self.peers[at], peer);
        self.control_lengths[at] = if local.is_unspecified() {
            0
        } else {
            self.controls[at] = Control([0; CONTROL_LEN]);
            write_packet_info(&mut self.controls[at], local, peer.is_ipv6())
        };
    }

    /// Sends the datagrams without blocking, and empties the batch. Returns the number that the kernel refused.
    pub fn send(&mut self, socket: RawFd) -> usize {
        let mut parts: [MaybeUninit<libc::iovec>; BATCH] = [MaybeUninit::uninit(); BATCH];
        let mut headers: [MaybeUninit<libc::mmsghdr>; BATCH] = [MaybeUninit::uninit(); BATCH];
        let (mut start, bytes) = (0, self.bytes.as_mut_ptr());
        for (slot, end) in self.ends.iter().copied().enumerate() {
            // As above.
            let base = bytes.wrapping_add(start).cast();
            parts[slot].write(libc::iovec { iov_base: base, iov_len: end - start });
            start = end;
            let control = match self.control_lengths[slot] {
                0 => (std::ptr::null_mut(), 0),
                length => (self.controls[slot].0.as_mut_ptr(), length),
            };
            let peer = (&raw mut self.peers[slot], address_length(&self.peers[slot]));
            headers[slot].write(header(parts[slot].as_mut_ptr(), peer, control));
        }
        let refused = send_all(socket, &mut headers, self.ends.len());
        self.bytes.clear();
        self.ends.clear();
        refused
    }
}

/// Sends the first `count` headers, which must be initialised and point at live buffers. Returns the number of
/// datagrams that the kernel refused.
fn send_all(socket: RawFd, headers: &mut [MaybeUninit<libc::mmsghdr>; BATCH], count: usize) -> usize {
    let (mut sent, mut refused) = (0, 0);
    while sent < count.min(BATCH) {
        let left = libc::c_uint::try_from(count - sent).unwrap_or(BATCH_LEN);
        // SAFETY: the caller has initialised the first `count` headers; `sent` is below.
        let outcome = unsafe {
            let first = headers.as_mut_ptr().add(sent).cast();
            system::sendmmsg(socket, first, left, libc::MSG_DONTWAIT as _)
        };
        match usize::try_from(outcome) {
            Ok(outcome) if outcome > 0 => sent += outcome,
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => {
                // The kernel refuses this datagram: unreachable peer or full buffer. The others may still be sent.
                sent += 1;
                refused += 1;
            }
        }
    }
    refused
}

/// Writes an address in the form of the kernel.
fn write_address(storage: &mut libc::sockaddr_storage, address: SocketAddr) {
    let address = socket2::SockAddr::from(address);
    // SAFETY: socket2 has initialised as many bytes as `len` says, which is at most the size of the storage.
    unsafe {
        std::ptr::copy_nonoverlapping(
            address.as_ptr().cast::<u8>(),
            (&raw mut *storage).cast::<u8>(),
            address.len() as usize,
        );
    };
}

fn header(
    part: *mut libc::iovec,
    (peer, peer_len): (*mut libc::sockaddr_storage, usize),
    (control, control_len): (*mut u8, usize),
) -> libc::mmsghdr {
    // SAFETY: all-zero bytes are a valid `mmsghdr`: null pointers and zero lengths.
    let mut header: libc::mmsghdr = unsafe { zeroed() };
    header.msg_hdr.msg_iov = part;
    header.msg_hdr.msg_iovlen = 1;
    header.msg_hdr.msg_name = peer.cast();
    header.msg_hdr.msg_namelen = socket_length(peer_len);
    header.msg_hdr.msg_control = control.cast();
    set_control_length(&mut header.msg_hdr, control_len);
    header
}

/// Returns the length of a message's control data. The type of the field, and of the flags above, differs by C library:
/// `size_t` in glibc, `socklen_t` in musl.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "not of every C library")]
fn control_length(message: &libc::msghdr) -> usize {
    message.msg_controllen as usize
}

#[allow(clippy::cast_possible_truncation, reason = "at most `CONTROL_LEN`")]
fn set_control_length(message: &mut libc::msghdr, length: usize) {
    message.msg_controllen = length as _;
}

/// Turns the control message of a received datagram into the one for its answer: source address set, interface left to
/// routing.
fn outgoing_control(control: &mut Control, length: usize) -> (*mut u8, usize) {
    let length = length.min(CONTROL_LEN);
    if let Some(at) = find_packet_info(&control.0[..length]) {
        match at {
            PacketInfo::V4(at) => {
                // `in_pktinfo`: interface index, local address to send from, destination address in the header.
                control.0[at..at + 4].fill(0);
                control.0.copy_within(at + 8..at + 12, at + 4);
            }
            PacketInfo::V6(at) => control.0[at + 16..at + 20].fill(0),
        }
        return (control.0.as_mut_ptr(), length);
    }
    (std::ptr::null_mut(), 0)
}

/// Offset of the packet information in the control messages.
enum PacketInfo {
    V4(usize),
    V6(usize),
}

/// Finds the packet information. It is the first control message because the socket enables no other.
fn find_packet_info(control: &[u8]) -> Option<PacketInfo> {
    let head = size_of::<libc::cmsghdr>();
    let level_at = size_of::<usize>();
    let number =
        |at: usize| control.get(at..at + 4).and_then(|bytes| bytes.first_chunk()).copied().map(i32::from_ne_bytes);
    match (number(level_at)?, number(level_at + 4)?) {
        (libc::IPPROTO_IP, libc::IP_PKTINFO) if control.len() >= head + 12 => Some(PacketInfo::V4(head)),
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) if control.len() >= head + 20 => Some(PacketInfo::V6(head)),
        _ => None,
    }
}

fn local_address(control: &[u8]) -> Option<IpAddr> {
    match find_packet_info(control)? {
        PacketInfo::V4(at) => {
            let bytes: [u8; 4] = *control.get(at + 8..)?.first_chunk()?;
            Some(Ipv4Addr::from(bytes).into())
        }
        PacketInfo::V6(at) => {
            let bytes: [u8; 16] = *control.get(at..)?.first_chunk()?;
            Some(IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical())
        }
    }
}

fn address_length(storage: &libc::sockaddr_storage) -> usize {
    match i32::from(storage.ss_family) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        _ => size_of::<libc::sockaddr_in6>(),
    }
}

fn socket_address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which address the storage holds, and the storage is large and aligned enough.
            let address = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(address.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
            let (ip, port) = (Ipv6Addr::from(address.sin6_addr.s6_addr), u16::from_be(address.sin6_port));
            Some(SocketAddrV6::new(ip, port, address.sin6_flowinfo, address.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Sends one datagram from the given local address, without blocking. If the address is unspecified, the kernel chooses
/// one.
///
/// # Errors
/// Fails if the kernel refuses the datagram, with `WouldBlock` if its buffer is full.
pub fn send_from(socket: RawFd, bytes: &[u8], peer: SocketAddr, local: IpAddr) -> io::Result<()> {
    let peer = socket2::SockAddr::from(peer);
    let mut control = Control([0; CONTROL_LEN]);
    let control_len = if local.is_unspecified() { 0 } else { write_packet_info(&mut control, local, peer.is_ipv6()) };
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all-zero bytes are a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_name = peer.as_ptr().cast_mut().cast();
    message.msg_namelen = peer.len();
    if control_len > 0 {
        message.msg_control = control.0.as_mut_ptr().cast();
        set_control_length(&mut message, control_len);
    }
    // SAFETY: the message points at live buffers, which the kernel only reads.
    let sent = unsafe { system::sendmsg(socket, &raw const message, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Writes a control message that sets the source address. Returns its length.
fn write_packet_info(control: &mut Control, local: IpAddr, ipv6: bool) -> usize {
    let head = size_of::<libc::cmsghdr>();
    let (level, kind, data_len) = if ipv6 {
        let local = match local {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        control.0[head..head + 16].copy_from_slice(&local.octets());
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, 20)
    } else {
        let IpAddr::V4(local) = local else { return 0 };
        control.0[head + 4..head + 8].copy_from_slice(&local.octets());
        (libc::IPPROTO_IP, libc::IP_PKTINFO, 12)
    };
    control.0[..size_of::<usize>()].copy_from_slice(&(head + data_len).to_ne_bytes());
    control.0[size_of::<usize>()..][..4].copy_from_slice(&level.to_ne_bytes());
    control.0[size_of::<usize>() + 4..][..4].copy_from_slice(&kind.to_ne_bytes());
    (head + data_len).next_multiple_of(size_of::<usize>())
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests;
