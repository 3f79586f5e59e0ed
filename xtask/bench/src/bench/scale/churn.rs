//! Endpoints that change continuously while queries are answered.

use std::io;
use std::net::UdpSocket;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::{Findings, SERVICES, Served};
use crate::bench::asker::{only_address, query};
use crate::bench::cluster::{Cluster, Updates, service_name};
use crate::bench::load::{self, Load};
use crate::bench::queries::MIX;
use xtask::Failed;

/// Changes per second.
const RATE: u32 = 1000;
/// Maximum 99th percentile of the time until a change is visible.
const MOST: Duration = Duration::from_millis(50);
/// Timeout after which a change counts as never seen.
const LOST: Duration = Duration::from_secs(2);
/// Interval between queries for pending changes. It is as long as the limit allows, since these queries are load too.
const STEP: Duration = Duration::from_millis(1);
/// Maximum share of answers that changes may cost.
const SHARE: f64 = 0.05;

/// Measures with and without changes, at half of the maximum load and at full load.
pub(super) fn measure(server: &Path, time: Duration, findings: &mut Findings) -> Result<(), Failed> {
    let served = Served::start(server, SERVICES, false, |_| {})?;
    let queries = (MIX.make)(SERVICES.services);
    let run = |pace: u64| load::run_at(&served.server, &queries, time, pace);
    run(0)?;
    let most = run(0)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundred thousand")]
    let half = (most.per_second / 2.0) as u64;
    let alone = run(half)?;
    let (changing, changes) = with_changes(&served, time, || run(half))?;
    let (changing_most, _) = with_changes(&served, time, || run(0))?;
    add_changes(findings, &changes);
    add_loads(findings, &alone, &changing);
    findings.add(
        "answers/s at full load, without and with changes",
        format!(
            "{:.0}, {:.0}; CPU µs per query {:.2}, {:.2}; the changes and the load share a core",
            most.per_second, changing_most.per_second, most.cpu_each, changing_most.cpu_each,
        ),
        "-",
        true,
    );
    Ok(())
}

fn add_changes(findings: &mut Findings, changes: &Changes) {
    let Updates { count, half, most, all } = &changes.times;
    findings.add(
        format!("{RATE} endpoint changes per second at half load: time until answered (p50, p99, maximum)"),
        format!("{half:.1?}, {most:.1?}, {all:.1?}; {count} changes, {} never answered", changes.never),
        format!("p99 {MOST:?}"),
        *most <= MOST && changes.never == 0,
    );
}

fn add_loads(findings: &mut Findings, alone: &Load, changing: &Load) {
    findings.add(
        "answers/s at half load, without and with changes",
        format!(
            "{:.0}, {:.0}; CPU µs per query {:.2}, {:.2}; p99 {:.0}, {:.0} µs",
            alone.per_second,
            changing.per_second,
            alone.cpu_each,
            changing.cpu_each,
            alone.latencies[1],
            changing.latencies[1],
        ),
        format!("at most {:.0} % fewer", SHARE * 100.0),
        changing.per_second >= alone.per_second * (1.0 - SHARE),
    );
    findings.add(
        "unanswered queries, without and with changes",
        format!("{}, {}", alone.lost, changing.lost),
        "0",
        changing.lost == 0,
    );
}

/// Loads the server while endpoints change.
fn with_changes(
    served: &Served,
    time: Duration,
    load: impl FnOnce() -> Result<Load, Failed> + Send,
) -> Result<(Load, Changes), Failed> {
    thread::scope(|scope| {
        let changes = scope.spawn(|| Changer::new(served.server.port)?.run(&served.cluster, time));
        let load = load()?;
        let changes = changes.join().map_err(|_| "the thread that changes endpoints panicked".to_owned())?;
        Ok((load, changes?))
    })
}

/// Result of the changes.
struct Changes {
    times: Updates,
    never: usize,
}

/// Changes endpoints and queries each until the answer shows the change.
struct Changer {
    socket: UdpSocket,
    awaited: Vec<Awaited>,
    times: Vec<Duration>,
    never: usize,
}

/// Change that no answer has shown yet.
struct Awaited {
    id: u16,
    address: [u8; 4],
    query: Vec<u8>,
    since: Instant,
}

impl Changer {
    fn new(port: u16) -> Result<Changer, Failed> {
        let open = || {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.connect(("127.0.0.1", port))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|error: io::Error| error.to_string())?;
        Ok(Changer { socket, awaited: Vec::new(), times: Vec::new(), never: 0 })
    }

    fn run(mut self, cluster: &Cluster, time: Duration) -> Result<Changes, Failed> {
        let (begin, mut made) = (Instant::now(), 0);
        while begin.elapsed() < time || !self.awaited.is_empty() {
            let due = begin.elapsed().min(time).as_secs_f64() * f64::from(RATE);
            while f64::from(made) < due {
                self.change(cluster, made)?;
                made += 1;
            }
            self.ask();
            thread::sleep(STEP);
            self.listen();
        }
        if self.times.is_empty() { Err("no answer showed a change".to_owned()) } else { Ok(self.into_changes()) }
    }

    fn into_changes(self) -> Changes {
        Changes { times: Updates::of(self.times), never: self.never }
    }

    fn change(&mut self, cluster: &Cluster, at: u32) -> Result<(), Failed> {
        let [_, high, middle, low] = at.to_be_bytes();
        let address = [198, 18 + high, middle, low];
        let number = cluster.headless(usize::try_from(at).unwrap_or_default());
        let id = u16::from_be_bytes([middle, low]);
        let query = query(&service_name(number), id).ok_or("not a name")?;
        cluster.change(number, address);
        self.awaited.push(Awaited { id, address, query, since: Instant::now() });
        Ok(())
    }

    fn ask(&mut self) {
        let before = self.awaited.len();
        self.awaited.retain(|awaited| awaited.since.elapsed() < LOST);
        self.never += before - self.awaited.len();
        for awaited in &self.awaited {
            let _ = self.socket.send(&awaited.query);
        }
    }

    fn listen(&mut self) {
        let mut answer = [0; 512];
        while let Ok(length) = self.socket.recv(&mut answer) {
            let answer = &answer[..length];
            let id = answer.first_chunk().map(|id| u16::from_be_bytes(*id));
            let Some(at) = self.awaited.iter().position(|awaited| Some(awaited.id) == id) else { continue };
            if only_address(answer) == Some(self.awaited[at].address) {
                self.times.push(self.awaited.swap_remove(at).since.elapsed());
            }
        }
    }
}
