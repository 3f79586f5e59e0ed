//! System calls for Miri, which has no kernel: they use each pointer that the kernel would use.
//!
//! `cargo +nightly miri test -p portolan-linux --lib datagrams` runs the tests below. They check that all pointers are
//! valid when the call is made, for the length that the headers say, and that nothing reads what no call has written.

use std::cell::RefCell;
use std::collections::VecDeque;

use libc::{c_int, c_uint, c_void, mmsghdr, msghdr};

/// Longest UDP datagram over IPv4.
const LENGTH_MAX: usize = 65_507;

/// Datagram with the address of the other side and the control messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Datagram {
    bytes: Vec<u8>,
    peer: Vec<u8>,
    control: Vec<u8>,
}

thread_local! {
    static ARRIVED: RefCell<VecDeque<Datagram>> = RefCell::default();
    static SENT: RefCell<Vec<Datagram>> = RefCell::default();
}

/// # Safety
/// The pointer leads to this many bytes.
unsafe fn copy(from: *const c_void, length: usize) -> Vec<u8> {
    if length == 0 {
        return Vec::new();
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) }.to_vec()
}

/// Writes as many bytes as fit, and returns their number.
///
/// # Safety
/// The pointer leads to this many bytes.
unsafe fn fill(to: *mut c_void, length: usize, bytes: &[u8]) -> usize {
    let length = length.min(bytes.len());
    // SAFETY: the caller says so.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), length) };
    length
}

/// # Safety
/// The header and all that it points at are valid.
pub(super) unsafe fn sendmsg(_: c_int, message: *const msghdr, _: c_int) -> isize {
    // SAFETY: the caller says so.
    let datagram = unsafe {
        let message = &*message;
        let part = &*message.msg_iov;
        assert_eq!(message.msg_iovlen, 1);
        Datagram {
            bytes: copy(part.iov_base, part.iov_len),
            peer: copy(message.msg_name, message.msg_namelen as usize),
            control: copy(message.msg_control, message.msg_controllen as usize),
        }
    };
    if datagram.bytes.len() > LENGTH_MAX {
        // SAFETY: the C library gives each thread a place for it.
        unsafe { *libc::__errno_location() = libc::EMSGSIZE };
        return -1;
    }
    let length = datagram.bytes.len();
    SENT.with_borrow_mut(|sent| sent.push(datagram));
    length.cast_signed()
}

/// # Safety
/// The headers and all that they point at are valid.
pub(super) unsafe fn sendmmsg(socket: c_int, headers: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    let mut sent = 0;
    for at in 0..count as usize {
        // SAFETY: the caller says so.
        let length = unsafe { sendmsg(socket, &raw const (*headers.add(at)).msg_hdr, flags) };
        let Ok(length) = c_uint::try_from(length) else { break };
        // SAFETY: the caller says so.
        unsafe { (*headers.add(at)).msg_len = length };
        sent += 1;
    }
    if sent == 0 { -1 } else { sent }
}

/// # Safety
/// The headers and all that they point at are valid.
pub(super) unsafe fn recvmmsg(
    _: c_int,
    headers: *mut mmsghdr,
    count: c_uint,
    _: c_int,
    _: *mut libc::timespec,
) -> c_int {
    let mut received = 0;
    while received < count
        && let Some(datagram) = ARRIVED.with_borrow_mut(VecDeque::pop_front)
    {
        // SAFETY: the caller says so.
        unsafe {
            let header = &mut *headers.add(received as usize);
            let message = &mut header.msg_hdr;
            let part = &*message.msg_iov;
            header.msg_len = fill(part.iov_base, part.iov_len, &datagram.bytes) as _;
            message.msg_namelen = fill(message.msg_name, message.msg_namelen as usize, &datagram.peer) as _;
            message.msg_controllen = fill(message.msg_control, message.msg_controllen as usize, &datagram.control) as _;
        }
        received += 1;
    }
    if received == 0 {
        // SAFETY: the C library gives each thread a place for it.
        unsafe { *libc::__errno_location() = libc::EAGAIN };
        return -1;
    }
    received.cast_signed()
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use super::super::{BATCH, Batch, CONTROL_LEN, Control, DATAGRAM_MAX, Outgoing, send_from, write_packet_info};
    use super::*;

    /// Address in the form of the kernel.
    fn kernel_address(text: &str) -> Vec<u8> {
        let address = socket2::SockAddr::from(text.parse::<SocketAddr>().unwrap());
        // SAFETY: socket2 has initialised as many bytes as `len` says.
        unsafe { copy(address.as_ptr().cast(), address.len() as usize) }
    }

    /// Control message as it leaves, with the source address.
    fn leaving(local: &str) -> Vec<u8> {
        let (mut control, local): (_, IpAddr) = (Control([0; CONTROL_LEN]), local.parse().unwrap());
        let length = write_packet_info(&mut control, local, local.is_ipv6());
        control.0[..length].to_vec()
    }

    /// Control message as it arrives: with an interface and, for IPv4, the address in the header after the local one.
    fn arriving(local: &str) -> Vec<u8> {
        let (mut control, head) = (leaving(local), size_of::<libc::cmsghdr>());
        if local.contains(':') {
            control[head + 16] = 1;
        } else {
            control[head] = 1;
            control.copy_within(head + 4..head + 8, head + 8);
            control[head + 4..head + 8].fill(7);
        }
        control
    }

    /// Control message of an answer: without the interface, and from the local address.
    fn answering(local: &str) -> Vec<u8> {
        let (mut control, head) = (leaving(local), size_of::<libc::cmsghdr>());
        if !local.contains(':') {
            // The kernel ignores the address in the header.
            control.copy_within(head + 4..head + 8, head + 8);
        }
        control
    }

    #[test]
    fn answers_of_a_batch_are_whole_and_leave_from_the_address_of_the_query() {
        let from = [("192.0.2.1:1000", "192.0.2.53"), ("[2001:db8::1]:2000", "2001:db8::53")];
        let mut batch = Batch::new();
        for round in 0..2_u8 {
            for number in 0..BATCH + 1 {
                let (peer, local) = from[number % 2];
                let bytes = vec![u8::try_from(number).unwrap(); if number == 5 { DATAGRAM_MAX + 1 } else { number }];
                let datagram = Datagram { bytes, peer: kernel_address(peer), control: arriving(local) };
                ARRIVED.with_borrow_mut(|arrived| arrived.push_back(datagram));
            }
            assert_eq!(batch.receive(0).unwrap(), BATCH);
            for at in 0..BATCH {
                let (peer, local) = from[at % 2];
                assert_eq!(batch.datagram(at).len(), if at == 5 { DATAGRAM_MAX } else { at });
                assert_eq!(batch.peer(at), peer.parse().ok());
                assert_eq!(batch.local(at), local.parse().ok());
                // No datagram is as long as the tenth answer, and every third query has none.
                if at % 3 != 2 {
                    batch.answer(at, &vec![round; if at == 10 { 1 << 16 } else { at + 1 }]);
                }
            }
            assert_eq!(batch.send(0), 1);
            let expected = (0..BATCH).filter(|at| at % 3 != 2 && *at != 10).map(|at| Datagram {
                bytes: vec![round; at + 1],
                peer: kernel_address(from[at % 2].0),
                control: answering(from[at % 2].1),
            });
            assert_eq!(SENT.take(), expected.collect::<Vec<_>>());
            assert_eq!(batch.receive(0).unwrap(), 1);
            assert_eq!(batch.receive(0).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn datagrams_to_many_peers_are_whole() {
        let mut outgoing = Outgoing::new();
        let peer = |at: usize| if at % 2 == 0 { "192.0.2.1:53" } else { "[2001:db8::1]:53" };
        let local = |at: usize| ["192.0.2.53", "2001:db8::53", "0.0.0.0", "::"][at % 4];
        for at in 0..=BATCH {
            let bytes = vec![1; if at == 3 { 1 << 16 } else { at }];
            outgoing.push(&bytes, peer(at).parse().unwrap(), local(at).parse().unwrap());
        }
        assert_eq!(outgoing.send(0), 1);
        let expected = (0..BATCH).filter(|at| *at != 3).map(|at| Datagram {
            bytes: vec![1; at],
            peer: kernel_address(peer(at)),
            control: if at % 4 < 2 { leaving(local(at)) } else { Vec::new() },
        });
        assert_eq!(SENT.take(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_single_datagram_is_whole() {
        for (peer, local) in [("192.0.2.1:53", "192.0.2.53"), ("[2001:db8::1]:53", "2001:db8::53")] {
            send_from(0, b"later", peer.parse().unwrap(), local.parse().unwrap()).unwrap();
            let control = leaving(local);
            assert_eq!(SENT.take(), [Datagram { bytes: b"later".to_vec(), peer: kernel_address(peer), control }]);
        }
        assert!(send_from(0, &[0; 1 << 16], "192.0.2.1:53".parse().unwrap(), "0.0.0.0".parse().unwrap()).is_err());
    }
}
