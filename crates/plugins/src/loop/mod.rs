//! Finds out whether what is passed on comes back.

use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};

use engine::log::{Level, Source};
use engine::metrics::{Counter, Kind, Metric};
use engine::options::Manifest;
use engine::setup::{Part, Setup, SetupError};
use engine::{Connections, Exchange, Failure, Hooks, Outside, Plugin, Query, Response, Transport, Verdict, Worker};
use wire::{Class, EdeCode, Flags, Header, MessageBuf, Name, Type};

pub static MANIFEST: Manifest<()> =
    Manifest::new("loop", "detect forwarding loops", include_str!("README.md"), || (), build).metrics(&[&DETECTED]);

static DETECTED: Metric = Metric {
    name: "portolan_loop_detections_total",
    help: "Probes of the loop plugin that came back.",
    kind: Kind::Counter,
    labels: &["zone"],
};

/// How long after the start the first probe is sent: the sockets are open then.
const FIRST: Duration = Duration::from_secs(1);
/// How often is probed while no probe was answered yet, and while there is a loop.
const OFTEN: Duration = Duration::from_secs(2);
/// How often is probed while all is well: a loop that begins at run time is found by then.
const SELDOM: Duration = Duration::from_secs(30);
/// How long a probe may take; a loop shows before its questions give up.
const PATIENCE: Duration = Duration::from_secs(1);
/// A probe is sent once: seen twice it has come back.
const SEEN_IN_A_LOOP: u32 = 2;

fn build(_: Vec<()>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let zone = setup.block.zones.first().cloned().unwrap_or_default();
    let site = setup.block.sites.first();
    let ip = site.and_then(|site| site.ip).unwrap_or(Ipv4Addr::LOCALHOST.into());
    let state = Arc::new(State::default());
    let watch = Watch {
        state: Arc::clone(&state),
        own: SocketAddr::new(ip, site.map_or(53, |site| site.port)),
        detected: setup.registry.counter(&DETECTED, &[&zone.to_string()]),
        zone,
    };
    setup.needs.jobs.push(Box::new(move |outside| Box::pin(watch.run(outside))));
    Ok(Some(Part::new(Loop { state }, Hooks::DOWN)))
}

/// What the probes and the queries have in common.
#[derive(Default)]
struct State {
    /// The name of the probe that is on its way.
    probe: RwLock<Option<Name>>,
    seen: AtomicU32,
    looping: AtomicBool,
}

struct Loop {
    state: Arc<State>,
}

impl Plugin for Loop {
    fn on_query(&self, query: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        if query.qtype == Type::HINFO && self.state.is_probe(query) {
            self.state.seen.fetch_add(1, Ordering::Relaxed);
            return Verdict::Pass;
        }
        if self.state.looping.load(Ordering::Relaxed) {
            return Verdict::Fail(Failure::servfail(EdeCode::OTHER, "what is forwarded comes back: a forwarding loop"));
        }
        Verdict::Pass
    }
}

impl State {
    fn is_probe(&self, query: &Query) -> bool {
        let probe = self.probe.read().unwrap_or_else(PoisonError::into_inner);
        probe.as_ref().is_some_and(|probe| probe.as_ref().same(query.key()))
    }
}

/// Probes again and again.
struct Watch {
    state: Arc<State>,
    own: SocketAddr,
    zone: Name,
    detected: Counter,
}

impl Watch {
    async fn run(self, outside: Rc<dyn Outside>) {
        let mut pause = FIRST;
        loop {
            outside.sleep_until(outside.now() + pause).await;
            let Some((text, answered)) = self.probe(&*outside).await else { return };
            let looping = self.state.seen.load(Ordering::Relaxed) >= SEEN_IN_A_LOOP;
            let before = self.state.looping.swap(looping, Ordering::Relaxed);
            self.report(&text, before, looping, &*outside);
            pause = if looping || !answered { OFTEN } else { SELDOM };
        }
    }

    /// Sends a probe; gives its text and whether it was answered, or `None` if the zone leaves no room for one.
    async fn probe(&self, outside: &dyn Outside) -> Option<(String, bool)> {
        let mut name = Name::from_text(&format!("{}.{}.", outside.random() >> 2, outside.random() >> 2)).ok()?;
        name.append(self.zone.as_ref()).ok()?;
        let text = name.to_string();
        let mut message = MessageBuf::new();
        // With RD, or a resolver on the way around does not pass it on.
        let header = Header { flags: Flags::default().with_recursion_desired(true), ..Header::default() };
        message.start(header, Some((name.as_ref(), Type::HINFO, Class::IN)));
        let query = message.finish(None, core::iter::empty()).to_vec();
        self.state.seen.store(0, Ordering::Relaxed);
        *self.state.probe.write().unwrap_or_else(PoisonError::into_inner) = Some(name);
        let connections = Connections { idle_max: PATIENCE, age_max: Duration::ZERO, kept_max: 1, source: None };
        let until = outside.now() + PATIENCE;
        // Sent once only: a second copy would look as if the first had come back.
        let again_after = None;
        let over = Transport::Udp;
        let exchange =
            Exchange { to: self.own, over, tls: None, query: &query, until, connections, kept_for: None, again_after };
        let answered = outside.exchange(exchange).await.is_ok();
        Some((text, answered))
    }

    fn report(&self, probe: &str, before: bool, looping: bool, outside: &dyn Outside) {
        if looping {
            outside.counters().count(self.detected);
        }
        let (source, own, zone) = (Source::Plugin(MANIFEST.name), self.own, &self.zone);
        match (before, looping) {
            (false, true) => outside.log(
                Level::Error,
                source,
                format_args!(
                    "Loop ({own} -> {own}) detected for zone \"{zone}\": what would be forwarded is answered with SERVFAIL \
                     until it is gone. Query: \"HINFO {probe}\""
                ),
            ),
            (true, false) => outside.log(Level::Info, source, format_args!("The loop for zone \"{zone}\" is gone")),
            _ => {}
        }
    }
}
