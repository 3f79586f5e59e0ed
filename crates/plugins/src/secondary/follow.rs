//! Following a zone as its SOA record says (RFC 1035 §3.3.13): when to look for another version, and when to give up.
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
use engine::{Connections, Exchange, Moment, Outside, Transport};
use wire::{Class, Header, Message, MessageBuf, NameRef, Owner, Section, Type};
use zone::{Broken, Differences, Incoming, Soa, Zone};

use crate::authority::Held;

const SOURCE: Source<'_> = Source::Plugin("secondary");

/// The pauses before a zone has come for the first time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const FIRST_PAUSE_MAX: Duration = Duration::from_secs(10);
/// How often is looked whether word has come that the zone has changed.
const EVERY: Duration = Duration::from_secs(1);
/// How long a primary may take to name its serial.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a zone may take to come.
const TRANSFER_MAX: Duration = Duration::from_secs(300);
/// Pauses are longer by up to this part of theirs, so that many secondaries do not come at once.
const JITTER: u32 = 16;

/// Follows a zone for ever.
pub(super) async fn run(held: Arc<Held>, outside: Rc<dyn Outside>) {
    let mut pause = FIRST_PAUSE;
    while held.soa().is_none() && !refresh(&held, &*outside).await {
        outside.sleep_until(outside.now() + pause).await;
        pause = (pause * 2).min(FIRST_PAUSE_MAX);
    }
    let mut heard = outside.now();
    let mut next = after(held.soa().map_or(0, |soa| soa.refresh), &*outside);
    loop {
        outside.sleep_until(next.min(outside.now() + EVERY)).await;
        let Some(times) = held.soa() else { return };
        if held.take_notified() || outside.now() >= next {
            let is_fresh = refresh(&held, &*outside).await;
            if is_fresh {
                heard = outside.now();
                held.confirm();
            }
            let times = held.soa().unwrap_or(times);
            next = after(if is_fresh { times.refresh } else { times.retry }, &*outside);
        }
        if !held.is_expired() && outside.now().since(heard) >= Duration::from_secs(times.expire.into()) {
            held.expire();
            let message = format_args!("Zone {} is expired: no primary answers", held.origin);
            outside.log(Level::Warning, SOURCE, message);
        }
    }
}

/// When so many seconds and a little more are over; a second at least.
fn after(seconds: u32, outside: &dyn Outside) -> Moment {
    let pause = Duration::from_secs(seconds.max(1).into());
    let part = u32::try_from(outside.random() % 1024).unwrap_or_default();
    outside.now() + pause + pause / JITTER * part / 1024
}

/// Gets the newest version from the first primary that has one; says whether a primary answered.
async fn refresh(held: &Held, outside: &dyn Outside) -> bool {
    for primary in &held.primaries {
        match refresh_from(*primary, held, outside).await {
            Ok(()) => return true,
            Err(error) => {
                let origin = &held.origin;
                outside.log(Level::Warning, SOURCE, format_args!("zone {origin} from {primary}: {error}"));
            }
        }
    }
    false
}

async fn refresh_from(primary: SocketAddr, held: &Held, outside: &dyn Outside) -> Result<(), String> {
    if let Some(ours) = held.soa() {
        let theirs = serial(primary, held, outside).await?;
        if !ours.is_older_than(theirs) {
            return Ok(());
        }
    }
    let Some(version) = newer(primary, held, outside).await? else { return Ok(()) };
    let Version { zone, changes } = version;
    let (serial, records) = (zone.soa().map_or(0, |soa| soa.serial), zone.len());
    held.set(zone);
    let origin = &held.origin;
    let how = changes.map_or_else(String::new, |changes| format!(", by {changes} differences"));
    let message = format_args!("Transferred: {origin} from {primary}: {records} records, {serial} SOA serial{how}");
    outside.log(Level::Info, SOURCE, message);
    Ok(())
}

/// A version of a zone that has come.
struct Version {
    zone: Zone,
    /// How many records went or came, if it came so.
    changes: Option<usize>,
}

/// The newest version: by its differences to what is there, if there is something and the primary has them.
async fn newer(primary: SocketAddr, held: &Held, outside: &dyn Outside) -> Result<Option<Version>, String> {
    if let Some(old) = held.known() {
        match differences(primary, old, held, outside).await {
            Ok(version) => return Ok(version),
            Err(error) => {
                let origin = &held.origin;
                let message = format_args!("zone {origin} from {primary}, asking for all of it: {error}");
                outside.log(Level::Info, SOURCE, message);
            }
        }
    }
    let mut incoming = Incoming::new(held.origin.as_ref());
    transfer(primary, &query(held, Type::AXFR, None), outside, &mut |message| incoming.take(message)).await?;
    let strangers = incoming.strangers();
    let zone = incoming.finish().map_err(|broken| broken.to_string())?;
    if strangers > 0 {
        let origin = &held.origin;
        let message = format_args!(
            "zone {origin} from {primary}: records left out, as they are not in the zone or not of class IN: {strangers}"
        );
        outside.log(Level::Warning, SOURCE, message);
    }
    Ok(Some(Version { zone, changes: None }))
}

/// What is newer than what is there (RFC 1995); `None` if nothing is.
async fn differences(
    primary: SocketAddr,
    old: Arc<Zone>,
    held: &Held,
    outside: &dyn Outside,
) -> Result<Option<Version>, String> {
    let query = query(held, Type::IXFR, old.soa());
    let mut differences = Differences::new(old);
    transfer(primary, &query, outside, &mut |message| differences.take(message)).await?;
    let changes = differences.changes();
    let zone = differences.finish().map_err(|broken| broken.to_string())?;
    Ok(zone.map(|zone| Version { zone, changes }))
}

/// The serial that a primary has.
async fn serial(primary: SocketAddr, held: &Held, outside: &dyn Outside) -> Result<u32, String> {
    let query = query(held, Type::SOA, None);
    let exchange = exchange(primary, &query, outside.now() + PATIENCE);
    let exchanged = outside.exchange(exchange).await.map_err(|error| format!("no SOA record: {error}"))?;
    let message = Message::parse(&exchanged.reply).map_err(|error| error.to_string())?;
    let rcode = message.header().flags.rcode();
    let soa = message.records().find(|record| record.rtype() == Type::SOA);
    let soa = soa.and_then(|soa| Soa::read(soa.rdata()));
    soa.map(|soa| soa.serial).ok_or_else(|| format!("no SOA record: {rcode}"))
}

/// Gives what answers a query to `take`, message by message, as long as that wants more.
async fn transfer(
    primary: SocketAddr,
    query: &[u8],
    outside: &dyn Outside,
    take: &mut dyn FnMut(&[u8]) -> Result<bool, Broken>,
) -> Result<(), String> {
    let mut broken = None;
    let mut take = |message: &[u8]| match take(message) {
        Ok(more) => more,
        Err(error) => {
            broken = Some(error);
            false
        }
    };
    let exchange = exchange(primary, query, outside.now() + TRANSFER_MAX);
    let outcome = outside.exchange_all(exchange, &mut take).await;
    match broken {
        Some(broken) => Err(broken.to_string()),
        None => outcome.map_err(|error| format!("the transfer broke off: {error}")),
    }
}

/// A query for the zone; with the SOA record of what is there, of which only the serial means something (RFC 1995 §3).
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

/// Over TCP, whatever is asked: a forged serial would cost a transfer.
fn exchange(primary: SocketAddr, query: &[u8], until: Moment) -> Exchange<'_> {
    let connections = Connections { idle_max: PATIENCE, age_max: Duration::ZERO, kept_max: 1, source: None };
    Exchange {
        to: primary,
        over: Transport::Tcp,
        tls: None,
        query,
        until,
        connections,
        kept_for: None,
        again_after: None,
    }
}
