//! Client that has many questions on their way at once.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use specification::message::{self, Response};
use specification::record::Question;
use xtask::Failed;
use xtask::server::over_tcp;

/// Number of questions without a response. More would overflow the socket buffer of a server.
const WINDOW: usize = 64;
/// Time without any response after which the open questions are sent again.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Number of times that a question is sent.
const SENT_MAX: usize = 3;
/// Length in bytes of the longest datagram.
const DATAGRAM_MAX: usize = 65_535;

/// Response, or the reason for its absence.
pub(crate) type Outcome = Result<Response, String>;

/// Asks all questions over UDP, and over TCP where the response is truncated. Returns the outcomes in their order.
pub(crate) fn all<'q>(
    server: SocketAddr,
    questions: impl Iterator<Item = &'q Question>,
) -> Result<Vec<Outcome>, Failed> {
    let questions: Vec<&Question> = questions.collect();
    let mut outcomes = Vec::with_capacity(questions.len());
    for window in questions.chunks(WINDOW) {
        outcomes.extend(ask_window(server, window).map_err(|error| format!("{server}: {error}"))?);
    }
    Ok(outcomes)
}

fn ask_window(server: SocketAddr, questions: &[&Question]) -> std::io::Result<Vec<Outcome>> {
    // A new socket, so that no late response to an earlier window is taken for one to this.
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    let mut outcomes: HashMap<usize, Outcome> = HashMap::new();
    for _ in 0..SENT_MAX {
        for (id, question) in questions.iter().enumerate().filter(|(id, _)| !outcomes.contains_key(id)) {
            socket.send(&message::query(u16::try_from(id).unwrap_or_default(), question))?;
        }
        receive(&socket, server, questions, &mut outcomes);
    }
    let none = || Err("no response".to_owned());
    Ok((0..questions.len()).map(|id| outcomes.remove(&id).unwrap_or_else(none)).collect())
}

/// Receives responses until all questions have one, or none comes in time.
fn receive(socket: &UdpSocket, server: SocketAddr, questions: &[&Question], outcomes: &mut HashMap<usize, Outcome>) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    while outcomes.len() < questions.len() {
        let Ok(length) = socket.recv(&mut buffer) else { return };
        let bytes = &buffer[..length];
        let id = bytes.first_chunk().map_or(usize::MAX, |id| usize::from(u16::from_be_bytes(*id)));
        let Some(question) = questions.get(id) else { continue };
        let mut outcome = message::read(bytes, question).map_err(|error| error.to_string());
        if outcome.as_ref().is_ok_and(|response| response.truncated) {
            let bytes = over_tcp(server, &message::query(0, question), TIMEOUT).map_err(|error| error.to_string());
            outcome = bytes.and_then(|bytes| message::read(&bytes, question).map_err(|error| error.to_string()));
        }
        outcomes.insert(id, outcome);
    }
}
