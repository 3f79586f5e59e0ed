//! UDP servers without DNS logic: the echo, and an upstream.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::thread;

use linux::datagrams::{BATCH, Batch};

use xtask::Failed;

/// Size of the kernel's socket buffers in bytes, the same as for the server.
const KERNEL_BUFFER: usize = 4 << 20;

/// Runs a responder on a free port until killed. Prints the port.
pub(crate) fn run(kind: &str) -> Result<(), Failed> {
    let answer: fn(&[u8], &mut Vec<u8>) = match kind {
        "echo" => echo,
        "upstream" => upstream,
        other => return Err(format!("unknown responder `{other}`; use `echo` or `upstream`")),
    };
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let tuned = socket2::SockRef::from(&socket);
    let _ = tuned.set_recv_buffer_size(KERNEL_BUFFER);
    let _ = tuned.set_send_buffer_size(KERNEL_BUFFER);
    println!("{}", socket.local_addr().map_err(|error| error.to_string())?.port());
    let (mut batch, mut out) = (Batch::new(), Vec::new());
    let mut first = [0; 1];
    loop {
        // Wait for a datagram without consuming it, because receiving a batch does not wait.
        let _ = socket.peek(&mut first);
        while let Ok(received @ 1..) = batch.receive(socket.as_raw_fd()) {
            for at in 0..received {
                out.clear();
                answer(batch.datagram(at), &mut out);
                batch.answer(at, &out);
            }
            batch.send(socket.as_raw_fd());
            if received < BATCH {
                break;
            }
        }
        thread::yield_now();
    }
}

/// Returns the query with QR and AA set and 16 bytes appended, which measures the kernel's share of an answer.
fn echo(query: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(query);
    if let Some(flags) = out.get_mut(2) {
        *flags |= 0x84;
    }
    out.extend_from_slice(&[0; 16]);
}

/// Answers every A query with one A record with a TTL of 300 s, and others with NODATA.
fn upstream(query: &[u8], out: &mut Vec<u8>) {
    let Some(question_end) = wire::question_end(query) else { return };
    out.extend_from_slice(&query[..question_end]);
    out[2..4].copy_from_slice(&[0x81 | query[2] & 1, 0x80]);
    out[6..12].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
    let address = [0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 80];
    // The query mixes ask for AAAA as often as for A. These names have no AAAA record.
    if query[question_end - 4..question_end - 2] == [0, 1] {
        out.extend_from_slice(&address);
    } else {
        out[7] = 0;
        out[9] = 1;
        out.extend_from_slice(b"\xc0\x0c\x00\x06\x00\x01\x00\x00\x01\x2c\x00\x16\x00\x00");
        out.extend_from_slice(&[0; 16]);
        out.extend_from_slice(&300u32.to_be_bytes());
    }
}
