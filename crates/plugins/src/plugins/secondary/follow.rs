//! Refreshes a secondary zone by the timers of its SOA record (RFC 1035 §3.3.13).
//!
//! ```text
//!   nothing yet ──(250 ms, doubling to 10 s)──► transferred ──refresh, or notified──► same serial, or transferred
//!                                                   ▲  │                                   │
//!                                                   │  └── no answer: retry ──► expire ──► SERVFAIL
//!                                                   └──────────────────────────────────────┘
//! ```

use core::net::SocketAddr;
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use engine::log::{Level, Source};
use engine::{Connections, Exchange, ExchangeError, Instant, Io, Transport};
use host::invariant::holds;
use wire::{Class, Header, MessageBuf, MessageError, NameRef, Owner, Rcode, Record, Section, Type};
use zone::{Differences, Incoming, Limits, Soa, TransferError, Zone};

use super::Bounds;
use crate::shared::zone_store::Held;

const SOURCE: Source<'_> = Source::Plugin("secondary");

/// Delays between attempts before the first transfer, doubling from the first value to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const FIRST_PAUSE_MAX: Duration = Duration::from_secs(10);
/// Interval of checks for a received NOTIFY.
const EVERY: Duration = Duration::from_millis(200);
/// Average time between two queries that NOTIFYs cause, because their source address can be forged. All NOTIFYs until
/// then cause one query.
const NOTIFIED_APART: Duration = Duration::from_secs(1);
/// Number of queries for NOTIFYs without such a pause: primaries send one at their start, and one for each of a few
/// changes in a row.
const NOTIFIED_BURST: u32 = 4;
/// Timeout of an SOA query.
const SOA_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a transfer.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(300);
/// Delays are extended by a random part of up to 1/16, so that many secondaries do not query at once.
const JITTER: u32 = 16;

/// Keeps a zone up to date until dropped.
///
/// A zone that was kept across a reload is asked for at once: the reload may be the operator's order, and a Corefile
/// that changes more often than the zone is refreshed must not put the refresh off.
pub(super) async fn run(held: Arc<Held>, bounds: Bounds, io: Rc<dyn Io>) {
    let is_kept = held.soa().is_some();
    let mut pause = FIRST_PAUSE;
    while held.soa().is_none() && !refresh(&held, bounds, &*io).await {
        io.sleep_until(io.now() + pause).await;
        pause = (pause * 2).min(FIRST_PAUSE_MAX);
    }
    let mut next = io.now();
    if !is_kept {
        held.confirm(io.now());
        next = after(held.soa().map_or(0, |soa| soa.refresh), &*io);
    }
    // Time at which all queries for NOTIFYs so far would have been sent if they had been `NOTIFIED_APART`.
    let mut paid_at = io.now();
    loop {
        io.sleep_until(next.min(io.now() + EVERY)).await;
        let Some(times) = held.soa() else { return };
        let may_ask = paid_at <= io.now() + NOTIFIED_APART * (NOTIFIED_BURST - 1);
        let is_notified = may_ask && held.take_notified();
        if is_notified {
            paid_at = paid_at.max(io.now()) + NOTIFIED_APART;
        }
        if is_notified || io.now() >= next {
            let is_fresh = refresh(&held, bounds, &*io).await;
            if is_fresh {
                held.confirm(io.now());
            }
            let times = held.soa().unwrap_or(times);
            next = after(if is_fresh { times.refresh } else { times.retry }, &*io);
        }
        if !held.is_expired() && io.now().since(held.confirmed()) >= Duration::from_secs(times.expire.into()) {
            held.expire();
            let message = format_args!("Zone {} has expired: no primary answers", held.origin);
            io.log(Level::Warning, SOURCE, message);
        }
    }
}

/// Time after `seconds` plus a random extension; at least one second from now.
fn after(seconds: u32, io: &dyn Io) -> Instant {
    let pause = Duration::from_secs(seconds.max(1).into());
    let [low, high, ..] = io.random().to_le_bytes();
    let part = u32::from(u16::from_le_bytes([low, high]) % 1024);
    io.now() + pause + pause / JITTER * part / 1024
}

/// Fetches the newest version from the first primary that answers. Returns true if one did.
async fn refresh(held: &Held, bounds: Bounds, io: &dyn Io) -> bool {
    for primary in &held.primaries {
        match refresh_from(*primary, held, bounds, io).await {
            Ok(()) => return true,
            Err(error) => {
                let origin = &held.origin;
                let kept = if held.soa().is_some() && error.is_of_zone() { "; the old version stays" } else { "" };
                io.log(error.level(), SOURCE, format_args!("zone {origin} from {primary}: {error}{kept}"));
            }
        }
    }
    false
}

async fn refresh_from(primary: SocketAddr, held: &Held, bounds: Bounds, io: &dyn Io) -> Result<(), RefreshError> {
    if let Some(ours) = held.soa() {
        let theirs = serial(primary, held, io).await?;
        if !ours.is_older_than(theirs) {
            if ours.serial != theirs {
                log_older(primary, (ours.serial, theirs), held, io);
            }
            return Ok(());
        }
    }
    let Some(version) = newer(primary, held, bounds.limits(held), io).await? else { return Ok(()) };
    let Version { zone, changes } = version;
    let (serial, records) = (zone.soa().map_or(0, |soa| soa.serial), zone.len());
    let is_newer = held.soa().is_none_or(|ours| ours.is_older_than(serial));
    holds(is_newer, "only a newer version replaces the one that is served");
    held.set(zone);
    let origin = &held.origin;
    let how = changes.map_or_else(String::new, |changes| format!(", {changes} changes by IXFR"));
    let message = format_args!("Transferred: {origin} from {primary}: {records} records, {serial} SOA serial{how}");
    io.log(Level::Info, SOURCE, message);
    Ok(())
}

/// Logs that a primary has an older version. It confirms the zone, whose primaries may differ for a while after a
/// change; but one that was set back needs somebody to raise its serial.
fn log_older(primary: SocketAddr, (ours, theirs): (u32, u32), held: &Held, io: &dyn Io) {
    let origin = &held.origin;
    let message = format_args!(
        "zone {origin} from {primary}: the primary has SOA serial {theirs}, which is not newer than {ours}; the old \
         version stays"
    );
    io.log(Level::Error, SOURCE, message);
}

/// Transferred version of a zone.
struct Version {
    zone: Zone,
    /// Number of removed and added records, if it was an incremental transfer.
    changes: Option<usize>,
}

/// Fetches the newest version: incrementally if there is an old one and the primary supports it, otherwise completely.
async fn newer(primary: SocketAddr, held: &Held, limits: Limits, io: &dyn Io) -> Result<Option<Version>, RefreshError> {
    if let Some(old) = held.known() {
        match differences(primary, old, held, limits, io).await {
            Ok(version) => return Ok(version),
            Err(error) => {
                let origin = &held.origin;
                let message = format_args!("zone {origin} from {primary}, requesting the whole zone: {error}");
                io.log(Level::Info, SOURCE, message);
            }
        }
    }
    let ours = held.soa().map(|soa| soa.serial);
    let mut incoming = Incoming::new(held.origin.as_ref()).newer_than(ours).within(limits);
    transfer(primary, &query(held, Type::AXFR, None), io, &mut |message| incoming.receive(message)).await?;
    let strangers = incoming.strangers();
    let zone = incoming.finish().map_err(RefreshError::Zone)?;
    if strangers > 0 {
        let origin = &held.origin;
        let message = format_args!("zone {origin} from {primary}: ignored records outside of the zone: {strangers}");
        io.log(Level::Warning, SOURCE, message);
    }
    Ok(Some(Version { zone, changes: None }))
}

/// Fetches the changes since the old version (RFC 1995). `None` if there are none.
async fn differences(
    primary: SocketAddr,
    old: Arc<Zone>,
    held: &Held,
    limits: Limits,
    io: &dyn Io,
) -> Result<Option<Version>, RefreshError> {
    let query = query(held, Type::IXFR, old.soa());
    let mut differences = Differences::new(old).within(limits);
    transfer(primary, &query, io, &mut |message| differences.receive(message)).await?;
    let changes = differences.changes();
    let zone = differences.finish().map_err(RefreshError::Zone)?;
    Ok(zone.map(|zone| Version { zone, changes }))
}

/// Queries the serial of a primary.
async fn serial(primary: SocketAddr, held: &Held, io: &dyn Io) -> Result<u32, RefreshError> {
    let query = query(held, Type::SOA, None);
    let exchange = exchange(primary, &query, io.now() + SOA_TIMEOUT);
    let exchanged = io.exchange(exchange).await.map_err(RefreshError::NoSerial)?;
    let message = exchanged.reply.message().map_err(RefreshError::Message)?;
    let rcode = message.header().flags.rcode();
    // The SOA record of another zone, such as that of a denial, says nothing about this one.
    let is_ours = |record: &Record<'_>| {
        (record.section(), record.rtype(), record.class()) == (Section::Answer, Type::SOA, Class::IN)
            && record.owner().is_ok_and(|owner| owner.as_ref().same(held.origin.as_ref()))
    };
    let soa = message.records().filter(|_| rcode == Rcode::NOERROR).find(is_ours);
    let soa = soa.and_then(|soa| Soa::read(soa.rdata()));
    soa.map(|soa| soa.serial).ok_or(RefreshError::NoSoa(rcode))
}

/// Sends a query and passes each message of the response to `take` until it returns false.
async fn transfer(
    primary: SocketAddr,
    query: &[u8],
    io: &dyn Io,
    take: &mut dyn FnMut(&[u8]) -> Result<bool, TransferError>,
) -> Result<(), RefreshError> {
    let mut failure = None;
    let mut take = |message: &[u8]| match take(message) {
        Ok(more) => more,
        Err(error) => {
            failure = Some(error);
            false
        }
    };
    let exchange = exchange(primary, query, io.now() + TRANSFER_TIMEOUT);
    let outcome = io.exchange_all(exchange, &mut take).await;
    match failure {
        Some(error) => Err(RefreshError::Zone(error)),
        None => outcome.map_err(RefreshError::Transfer),
    }
}

/// Reason why a zone could not be refreshed from a primary. The next primary, or a retry, may succeed.
#[derive(Debug, thiserror::Error)]
enum RefreshError {
    /// The primary did not answer the SOA query.
    #[error("no SOA record: {0}")]
    NoSerial(#[source] ExchangeError),
    /// The response to the SOA query is malformed.
    #[error("{0}")]
    Message(#[source] MessageError),
    /// The response to the SOA query has this code and no SOA record.
    #[error("no SOA record: {0}")]
    NoSoa(Rcode),
    /// The transfer broke off.
    #[error("transfer failed: {0}")]
    Transfer(#[source] ExchangeError),
    /// The transferred data is not a valid zone.
    #[error("{0}")]
    Zone(#[source] TransferError),
}

impl RefreshError {
    /// Returns true if the primary sent a zone that cannot be served. Such a zone needs somebody to repair it.
    const fn is_of_zone(&self) -> bool {
        matches!(self, RefreshError::Zone(error) if !matches!(error, TransferError::Refused(_)))
    }

    const fn level(&self) -> Level {
        if self.is_of_zone() { Level::Error } else { Level::Warning }
    }
}

/// Builds a query for the zone. For IXFR it has the old SOA record, of which only the serial matters (RFC 1995 §3).
fn query(held: &Held, qtype: Type, ours: Option<Soa>) -> Vec<u8> {
    let mut message = MessageBuf::new();
    message.start(Header::default(), Some((held.origin.as_ref(), qtype, Class::IN)));
    if let Some(Soa { serial, refresh, retry, expire, minimum }) = ours {
        message.push(Section::Authority, Owner::Question, (Type::SOA, Class::IN, 0), |rdata| {
            (0..2).for_each(|_| rdata.plain_name(NameRef::ROOT));
            [serial, refresh, retry, expire, minimum].into_iter().for_each(|number| rdata.u32(number));
        });
    }
    message.finish(None, core::iter::empty()).to_vec()
}

/// Exchange over TCP even for the SOA query, because a forged serial would trigger a transfer.
fn exchange(primary: SocketAddr, query: &[u8], until: Instant) -> Exchange<'_> {
    let connections = Connections { idle_max: SOA_TIMEOUT, age_max: Duration::ZERO, kept_max: 1, source: None };
    Exchange::new(primary, Transport::Tcp, query, until, connections)
}
