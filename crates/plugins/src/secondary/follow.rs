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

use engine::{Connections, Exchange, Moment, Outside, Transport};
use wire::{Class, Header, Message, MessageBuf, Type};
use zone::{Incoming, Soa, Zone};

use crate::authority::Held;

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
            outside.log(&format!("[WARNING] plugin/secondary: Zone {} is expired: no primary answers", held.origin));
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
                outside.log(&format!("[WARNING] plugin/secondary: zone {origin} from {primary}: {error}"));
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
    let zone = transfer(primary, held, outside).await?;
    let (serial, records) = (zone.soa().map_or(0, |soa| soa.serial), zone.len());
    held.set(zone);
    let origin = &held.origin;
    outside.log(&format!(
        "[INFO] plugin/secondary: Transferred: {origin} from {primary}: {records} records, {serial} SOA serial"
    ));
    Ok(())
}

/// The serial that a primary has.
async fn serial(primary: SocketAddr, held: &Held, outside: &dyn Outside) -> Result<u32, String> {
    let query = query(held, Type::SOA);
    let exchange = exchange(primary, &query, outside.now() + PATIENCE);
    let exchanged = outside.exchange(exchange).await.map_err(|error| format!("no SOA record: {error:?}"))?;
    let message = Message::parse(&exchanged.reply).map_err(|error| error.to_string())?;
    let rcode = message.header().flags.rcode();
    let soa = message.records().find(|record| record.rtype() == Type::SOA);
    let soa = soa.and_then(|soa| Soa::read(soa.rdata()));
    soa.map(|soa| soa.serial).ok_or_else(|| format!("no SOA record: {rcode}"))
}

/// All of a zone.
async fn transfer(primary: SocketAddr, held: &Held, outside: &dyn Outside) -> Result<Zone, String> {
    let query = query(held, Type::AXFR);
    let mut incoming = Incoming::new(held.origin.as_ref());
    let mut broken = None;
    let mut take = |message: &[u8]| match incoming.take(message) {
        Ok(more) => more,
        Err(error) => {
            broken = Some(error);
            false
        }
    };
    let exchange = exchange(primary, &query, outside.now() + TRANSFER_MAX);
    let outcome = outside.exchange_all(exchange, &mut take).await;
    if let Some(broken) = broken {
        return Err(broken.to_string());
    }
    outcome.map_err(|error| format!("the transfer broke off: {error:?}"))?;
    incoming.finish().map_err(|broken| broken.to_string())
}

fn query(held: &Held, qtype: Type) -> Vec<u8> {
    let mut message = MessageBuf::new();
    message.start(Header::default(), Some((held.origin.as_ref(), qtype, Class::IN)));
    message.finish(None, core::iter::empty()).to_vec()
}

/// Over TCP, whatever is asked: a forged serial would cost a transfer.
fn exchange(primary: SocketAddr, query: &[u8], until: Moment) -> Exchange<'_> {
    let connections = Connections { idle_max: PATIENCE, age_max: Duration::ZERO, kept_max: 1, source: None };
    Exchange { to: primary, over: Transport::Tcp, tls: None, query, until, connections, again_after: None }
}
