//! Detects forwarding loops: sends a probe query to this server and counts how often it arrives.

use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};

use config::options::Manifest;
use config::setup::{InspectLoop, LoopState, Part, Setup, SetupError};
use engine::log::{Level, Source};
use engine::{
    Connections, Exchange, Explanation, Failure, Hook, Hooks, Instant, Io, Plugin, Query, ReasonCode, Response,
    Transport, Verdict, Worker,
};
use metrics::{Counter, Kind, Metric};
use wire::{Class, EdeCode, Flags, Header, MessageBuf, Name, Type};

use crate::shared::probe_mark::finish_probe;

pub static MANIFEST: Manifest<()> =
    Manifest::new("loop", "detect forwarding loops", || (), build).metrics(&[&DETECTED]);

static DETECTED: Metric = Metric {
    name: "portolan_loop_detections_total",
    help: "Probes of the loop plugin that came back.",
    kind: Kind::Counter,
    labels: &["zone"],
};

/// Time from the start to the first probe. The sockets are open by then.
const FIRST: Duration = Duration::from_secs(1);
/// Probe interval until a probe has been answered, and during a loop.
const OFTEN: Duration = Duration::from_secs(2);
/// Probe interval while there is no loop. Bounds the time to detect a loop that appears at run time.
const SELDOM: Duration = Duration::from_secs(30);
/// Timeout of a probe. Shorter than the timeout of forwarded queries, so that a loop shows first.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Number of arrivals that means a loop. A probe is sent once, so the second arrival came back.
const SEEN_IN_A_LOOP: u32 = 2;

fn build(_: Vec<()>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let zone = setup.block.zones.first().cloned().unwrap_or_default();
    let site = setup.block.sites.first();
    let ip = site.and_then(|site| site.ip).unwrap_or(Ipv4Addr::LOCALHOST.into());
    let state = Arc::new(State { zone: zone.clone(), ..State::default() });
    let watch = Watch {
        state: Arc::clone(&state),
        own: SocketAddr::new(ip, site.map_or(53, |site| site.port)),
        detected: setup.registry.counter(&DETECTED, &[&zone.to_string()]),
        zone,
    };
    setup.requests.inspection.loops.push(Arc::clone(&state) as _);
    setup.requests.jobs.push(Box::new(move |io| Box::pin(watch.run(io))));
    Ok(Some(Part::new(Loop { state }, Hooks::DOWN)))
}

/// State shared between the probes and the queries.
#[derive(Default)]
struct State {
    zone: Name,
    /// Name of the probe in flight.
    probe: RwLock<Option<Name>>,
    seen: AtomicU32,
    looping: AtomicBool,
    /// Result of the last probe, for status and doctor.
    shown: RwLock<LoopState>,
}

/// Codes of the reasons.
pub(crate) static REASONS: [&ReasonCode; 1] = [&LOOPING];

static LOOPING: ReasonCode = ReasonCode {
    code: "PE-O01",
    meaning: "*loop* has found a forwarding loop: queries to an upstream come back to this server",
    advice: "See to which servers the upstreams forward, and name one in `forward` that does not ask this server; \
             docs/runbooks/PortolanLoop.md",
};

struct Loop {
    state: Arc<State>,
}

impl Plugin for Loop {
    fn explain(&self, _: Hook, _: &Query, _: &Response, now: Instant) -> Option<Explanation> {
        let since = self.state.state().looping_since?;
        let zone = &self.state.zone;
        let text = format!(
            "forwarding loop in zone {zone} for {} s: queries come back to this server",
            now.since(since).as_secs()
        );
        Some(Explanation::new("forwarding loop detected").because(&LOOPING, text))
    }

    fn on_query(&self, query: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        if query.qtype == Type::HINFO && self.state.is_probe(query) {
            self.state.seen.fetch_add(1, Ordering::Relaxed);
            return Verdict::Pass;
        }
        if self.state.looping.load(Ordering::Relaxed) {
            return Verdict::Fail(Failure::servfail(EdeCode::OTHER, "forwarding loop detected"));
        }
        Verdict::Pass
    }
}

impl InspectLoop for State {
    fn zone(&self) -> &Name {
        &self.zone
    }

    fn state(&self) -> LoopState {
        *self.shown.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn show(&self, now: Instant, answered: bool, looping: bool) {
        let mut shown = self.shown.write().unwrap_or_else(PoisonError::into_inner);
        let since = shown.looping_since.unwrap_or(now);
        *shown = LoopState { probed: Some(now), answered, looping_since: looping.then_some(since) };
    }

    fn is_probe(&self, query: &Query) -> bool {
        let probe = self.probe.read().unwrap_or_else(PoisonError::into_inner);
        probe.as_ref().is_some_and(|probe| probe.as_ref().same(query.key()))
    }
}

/// Job that probes periodically.
struct Watch {
    state: Arc<State>,
    own: SocketAddr,
    zone: Name,
    detected: Counter,
}

impl Watch {
    async fn run(self, io: Rc<dyn Io>) {
        let mut pause = FIRST;
        loop {
            io.sleep_until(io.now() + pause).await;
            let Some((text, answered)) = self.probe(&*io).await else { return };
            let looping = self.state.seen.load(Ordering::Relaxed) >= SEEN_IN_A_LOOP;
            let before = self.state.looping.swap(looping, Ordering::Relaxed);
            self.state.show(io.now(), answered, looping);
            self.report(&text, before, looping, &*io);
            pause = if looping || !answered { OFTEN } else { SELDOM };
        }
    }

    /// Sends a probe. Returns its name, and true if it was answered. `None` if the zone's name is too long for a probe.
    async fn probe(&self, io: &dyn Io) -> Option<(String, bool)> {
        let mut name = Name::from_text(&format!("{}.{}.", io.random() >> 2, io.random() >> 2)).ok()?;
        name.append(self.zone.as_ref()).ok()?;
        let text = name.to_string();
        let mut message = MessageBuf::new();
        // Without RD, a resolver on the way would not forward the probe.
        let header = Header { flags: Flags::default().with_recursion_desired(true), ..Header::default() };
        message.start(header, Some((name.as_ref(), Type::HINFO, Class::IN)));
        let query = finish_probe(&mut message).to_vec();
        self.state.seen.store(0, Ordering::Relaxed);
        *self.state.probe.write().unwrap_or_else(PoisonError::into_inner) = Some(name);
        let connections = Connections { idle_max: TIMEOUT, age_max: Duration::ZERO, kept_max: 1, source: None };
        let until = io.now() + TIMEOUT;
        // Not retransmitted: a second one would look like a probe that came back.
        let exchange = Exchange::new(self.own, Transport::Udp, &query, until, connections);
        let answered = io.exchange(exchange).await.is_ok();
        Some((text, answered))
    }

    fn report(&self, probe: &str, before: bool, looping: bool, io: &dyn Io) {
        if looping {
            io.counters().count(self.detected);
        }
        let (source, own, zone) = (Source::Plugin(MANIFEST.name), self.own, &self.zone);
        match (before, looping) {
            (false, true) => io.log(
                Level::Error,
                source,
                format_args!(
                    "Loop ({own} -> {own}) detected for zone \"{zone}\": queries get SERVFAIL instead of being \
                     forwarded until it is gone. Query: \"HINFO {probe}\""
                ),
            ),
            (true, false) => io.log(Level::Info, source, format_args!("The loop for zone \"{zone}\" is gone")),
            _ => {}
        }
    }
}
