//! NOTIFY messages to other servers (RFC 1996).

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use engine::log::Level;
use engine::{Connections, Exchange, Instant, Io, Transport};
use wire::{Class, Flags, Header, MessageBuf, Name, Opcode, Type};

use super::Lines;

/// Interval at which serials are checked. Bounds the delay of a NOTIFY. The delays of a chain of servers add up.
const EVERY: Duration = Duration::from_millis(200);
/// Average time between two NOTIFYs for a zone that changes constantly, as that of a cluster does: each NOTIFY causes a
/// full transfer.
const APART: Duration = Duration::from_secs(10);
/// The same for a zone whose changes can be transferred alone.
const CHANGES_APART: Duration = Duration::from_secs(1);
/// Number of NOTIFYs for a zone that may follow each other without a pause, so that a zone that rarely changes is
/// transferred at once: that of the start, and a few edits in a row.
const BURST: u32 = 4;
/// Number of attempts to notify a server.
const TRIES: usize = 3;
/// Timeout of an attempt.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Notifier of one server. Each server has its own, so that one that does not answer delays no other.
pub(super) struct Notifier {
    lines: Arc<Lines>,
    /// Index of its line.
    line: usize,
    peer: SocketAddr,
    /// Last notified version of each zone.
    notified: HashMap<String, Notified>,
}

struct Notified {
    serial: u32,
    /// Time at which all NOTIFYs so far would have been sent if they had been that far apart.
    paid_at: Instant,
}

impl Notifier {
    pub(super) fn new(lines: Arc<Lines>, line: usize, peer: SocketAddr) -> Notifier {
        Notifier { lines, line, peer, notified: HashMap::new() }
    }

    pub(super) async fn run(mut self, io: Rc<dyn Io>) {
        loop {
            io.sleep_until(io.now() + EVERY).await;
            for zone in self.changed(io.now()) {
                let source = self.lines.lines.get(self.line).and_then(|line| line.source);
                notify(&zone, self.peer, source, &*io).await;
            }
        }
    }

    /// Returns the zones of the line whose serial differs from the last notified one.
    fn changed(&mut self, now: Instant) -> Vec<Name> {
        let mut changed = Vec::new();
        for source in &self.lines.sources.0 {
            for zone in source.zones().into_iter().filter(|zone| self.lines.index(zone) == Some(self.line)) {
                let Some(serial) = source.serial(zone.as_ref()) else { continue };
                let last = self.notified.get(&zone.to_string());
                let apart = if source.has_changes() { CHANGES_APART } else { APART };
                let may_follow = |last: &Notified| last.paid_at <= now + apart * (BURST - 1);
                if last.is_none_or(|last| last.serial != serial && may_follow(last)) {
                    let paid_at = last.map_or(now, |last| last.paid_at.max(now)) + apart;
                    self.notified.insert(zone.to_string(), Notified { serial, paid_at });
                    changed.push(zone);
                }
            }
        }
        changed
    }
}

async fn notify(zone: &Name, peer: SocketAddr, source: Option<core::net::IpAddr>, io: &dyn Io) {
    let flags = Flags::default().with_opcode(Opcode::NOTIFY).with_authoritative(true);
    let mut message = MessageBuf::new();
    message.start(Header { flags, ..Header::default() }, Some((zone.as_ref(), Type::SOA, Class::IN)));
    let query = message.finish(None, core::iter::empty()).to_vec();
    let connections = Connections { idle_max: TIMEOUT, age_max: Duration::ZERO, kept_max: 1, source };
    for _ in 0..TRIES {
        let until = io.now() + TIMEOUT;
        // The loop retransmits.
        let exchange = Exchange::new(peer, Transport::Udp, &query, until, connections);
        if io.exchange(exchange).await.is_ok() {
            return;
        }
        io.sleep_until(until).await;
    }
    let message = format_args!("{peer} does not answer NOTIFY for zone {zone}");
    io.log(Level::Warning, super::SOURCE, message);
}
