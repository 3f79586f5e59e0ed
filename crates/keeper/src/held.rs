//! The sockets that the keeper holds.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use host::invariant::{Expected as _, holds};

use crate::record::SOCKETS_MAX;

/// Maximum number of records with sockets: those of 64 addresses with 32 workers, the maximum.
pub(crate) const HELD_MAX: usize = 2048;

/// Sockets of one worker at one address.
#[derive(Debug)]
struct Pair {
    /// `LABEL ADDRESS`, as the server has sent it.
    text: String,
    sockets: Vec<OwnedFd>,
}

impl Pair {
    fn label(&self) -> &str {
        self.text.split(' ').next().expected("the first part of a text").unwrap_or_default()
    }
}

/// Sockets of the server that runs, and of the one before it until the new one has sent its own.
#[derive(Debug, Default)]
pub(crate) struct HeldSockets {
    /// Sockets for the next server.
    current: Vec<Pair>,
    /// Sockets that a starting server has sent. They become current when it serves.
    starting: Option<Vec<Pair>>,
}

impl HeldSockets {
    /// Begins with a new server. What an earlier one sent before it served is closed.
    pub(crate) fn begin(&mut self) {
        self.starting = Some(Vec::new());
    }

    /// Adds sockets from the server. Returns false if there are too many; then these are closed.
    pub(crate) fn add(&mut self, text: String, sockets: Vec<OwnedFd>) -> bool {
        let pairs = self.starting.as_mut().unwrap_or(&mut self.current);
        let fits = pairs.len() < HELD_MAX && (1..=SOCKETS_MAX).contains(&sockets.len());
        if fits {
            pairs.push(Pair { text, sockets });
            holds(pairs.len() <= HELD_MAX, "the number of sockets is bounded");
        }
        fits
    }

    /// Closes the sockets with this label.
    pub(crate) fn close(&mut self, label: &str) {
        holds(!label.contains(' '), "a label is the first word of a text");
        self.starting.as_mut().unwrap_or(&mut self.current).retain(|pair| pair.label() != label);
    }

    /// Keeps what the starting server has sent, and closes all others: it does not serve those.
    pub(crate) fn commit(&mut self) {
        if let Some(sent) = self.starting.take() {
            self.current = sent;
        }
        holds(self.current.len() <= HELD_MAX, "the number of sockets is bounded");
    }

    /// Closes all sockets.
    pub(crate) fn clear(&mut self) {
        *self = HeldSockets::default();
    }

    /// Returns the sockets for a starting server, from a position on.
    pub(crate) fn at(&self, position: usize) -> Option<(&str, Vec<BorrowedFd<'_>>)> {
        let pair = self.current.get(position)?;
        holds((1..=SOCKETS_MAX).contains(&pair.sockets.len()), "a pair has one socket or two");
        Some((&pair.text, pair.sockets.iter().map(AsFd::as_fd).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> Vec<OwnedFd> {
        vec![std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into()]
    }

    fn texts(held: &HeldSockets) -> Vec<&str> {
        (0..).map_while(|position| held.at(position).map(|(text, _)| text)).collect()
    }

    #[test]
    fn keeps_the_sockets_of_the_last_server_that_served() {
        let mut held = HeldSockets::default();
        held.begin();
        assert!(held.add("a 1".to_owned(), socket()) && held.add("a 1".to_owned(), socket()));
        assert!(held.add("b 2".to_owned(), socket()));
        assert_eq!(texts(&held), [""; 0], "nothing until the server serves");
        held.commit();
        assert!(held.add("c 3".to_owned(), socket()));
        held.close("b");
        assert_eq!(texts(&held), ["a 1", "a 1", "c 3"]);
        // The next server ends before it serves.
        held.begin();
        assert!(held.add("a 1".to_owned(), socket()));
        held.begin();
        assert_eq!(texts(&held), ["a 1", "a 1", "c 3"]);
        // The one after it does not serve `c`.
        assert!(held.add("a 1".to_owned(), socket()));
        held.commit();
        assert_eq!(texts(&held), ["a 1"]);
        held.clear();
        assert_eq!(texts(&held), [""; 0]);
    }

    #[test]
    fn refuses_a_record_without_sockets() {
        let mut held = HeldSockets::default();
        assert!(!held.add("a 1".to_owned(), Vec::new()));
        assert_eq!(texts(&held), [""; 0]);
    }
}
