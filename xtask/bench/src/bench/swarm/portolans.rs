//! Real servers as nodes: each follows the relays, and is asked for the marker all the time.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::asker::Asker;
use super::super::certificates::{AUTHORITY, SERVER_NAME};
use super::super::processes::{LOAD_CPU, Pinned};
use super::super::{Corefile, Folder};
use super::Swarm;
use super::relay::metric;
use super::writer::{MARKER, Markers};
use xtask::{Failed, server};

/// Pause between two rounds of queries.
const PAUSE: Duration = Duration::from_millis(50);
/// Time for a server to know the cluster.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Age of an answer up to which a server is current: the marker changes each second.
const CURRENT: Duration = Duration::from_millis(500);

/// Servers, and the thread that queries them.
pub(crate) struct Portolans {
    servers: Vec<Portolan>,
    answers: Arc<Answers>,
    thread: Option<JoinHandle<()>>,
    _token: Folder,
}

struct Portolan {
    _server: Pinned,
    corefile: Corefile,
    pages: u16,
}

/// Answers of all servers.
#[derive(Default)]
struct Answers {
    ends: AtomicBool,
    asked: AtomicU64,
    /// Queries without an answer that has an address of the marker.
    lost: AtomicU64,
    /// Longest time in ms for which an answer lacked a later address.
    stale: AtomicU64,
    /// Servers that are current, in the last round.
    current: AtomicU64,
}

/// Answers of some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) asked: u64,
    pub(crate) lost: u64,
    pub(crate) stale_ms: u64,
}

impl Portolans {
    /// Starts this many servers, and waits until all of them are current.
    pub(crate) fn start(swarm: &Swarm, count: usize) -> Result<Portolans, Failed> {
        let folder = Folder::make("token")?;
        let token = folder.path().join("token");
        std::fs::write(&token, &swarm.token).map_err(|error| format!("{}: {error}", token.display()))?;
        let start = |_| Portolan::start(swarm, &token);
        let servers: Vec<Portolan> = (0..count).map(start).collect::<Result<_, _>>()?;
        let askers: Vec<Asker> =
            servers.iter().map(|server| Asker::new(server.corefile.port)).collect::<Result<_, _>>()?;
        wait_known(&askers)?;
        let (answers, markers) = (Arc::<Answers>::default(), Arc::clone(&swarm.markers));
        let shared = Arc::clone(&answers);
        let thread = std::thread::spawn(move || ask(&askers, &shared, &markers));
        Ok(Portolans { servers, answers, thread: Some(thread), _token: folder })
    }

    /// Returns what has been answered since the last call.
    pub(crate) fn take(&self) -> Answered {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let Answers { asked, lost, stale, .. } = &*self.answers;
        Answered { asked: take(asked), lost: take(lost), stale_ms: take(stale) }
    }

    /// Returns true if all servers were current in the last round of queries.
    pub(crate) fn are_current(&self) -> bool {
        self.answers.current.load(Ordering::Relaxed) == self.servers.len() as u64
    }

    /// Returns the number of lists that the servers have requested.
    pub(crate) fn lists(&self) -> u64 {
        let lists = self.servers.iter().filter_map(|server| metric(server.pages, "portolan_kubernetes_lists_total"));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let lists = lists.sum::<f64>() as u64;
        lists
    }
}

impl Drop for Portolans {
    fn drop(&mut self) {
        self.answers.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Portolan {
    fn start(swarm: &Swarm, token: &Path) -> Result<Portolan, Failed> {
        let pages = server::free_port()?;
        let relays =
            swarm.relays.iter().fold(String::new(), |text, relay| format!("{text} https://127.0.0.1:{}", relay.port));
        let (ca, token) = (swarm.certificates.path(AUTHORITY), token.display());
        let text = format!(
            "dns://.:{{PORT}} {{
    bind 127.0.0.1
    kubernetes cluster.local {{
        endpoint {{API}}
        relays{relays}
        relay_tls {} {SERVER_NAME}
        relay_token {token}
        ttl 0
    }}
    prometheus 127.0.0.1:{{UPSTREAM}}
}}
",
            ca.display()
        );
        let corefile = Corefile::write(&text, swarm.api.url(), pages)?;
        let server = Pinned::serve_on(LOAD_CPU, &swarm.server, &corefile, Stdio::null())?;
        Ok(Portolan { _server: server, corefile, pages })
    }
}

fn wait_known(askers: &[Asker]) -> Result<(), Failed> {
    let start = Instant::now();
    while askers.iter().any(|asker| asker.address(MARKER).is_none()) {
        if start.elapsed() > START_TIMEOUT {
            return Err(format!("a server does not know the cluster after {START_TIMEOUT:?}"));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Queries all servers until the end.
fn ask(askers: &[Asker], answers: &Answers, markers: &Markers) {
    while !answers.ends.load(Ordering::Relaxed) {
        let mut current = 0;
        for asker in askers {
            answers.asked.fetch_add(1, Ordering::Relaxed);
            let Some(stale) = asker.address(MARKER).and_then(|address| markers.stale(address)) else {
                answers.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            current += u64::from(stale < CURRENT);
            answers.stale.fetch_max(u64::try_from(stale.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        answers.current.store(current, Ordering::Relaxed);
        std::thread::sleep(PAUSE);
    }
}
