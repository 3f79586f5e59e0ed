//! The server as an operator runs it: the keeper, the process below it, the Corefile, and the reader of the log.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use specification::record::{Question, Type};

use super::client::probe;
use crate::random::Random;
use xtask::Failed;
use xtask::server::free_port;

/// Maximum time until a server that was started answers.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between looks at something.
const PAUSE: Duration = Duration::from_millis(5);
/// Timeout of a probe.
const PROBE_TIMEOUT: Duration = Duration::from_millis(100);
/// Words of lines that must not be in the log.
const BAD_WORDS: [&str; 3] = ["panicked at", "invariant", "stack backtrace"];
/// Number of last lines of the log that are kept.
const LINES_MAX: usize = 400;
/// Options that a reload may change.
const CACHES: [&str; 4] = ["", "prefetch 2 1m 10%", "success 500 20", "servfail 1s"];
const POLICIES: [&str; 3] = ["random", "round_robin", "sequential"];

/// Folders, addresses and ports in the Corefile.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    /// Folder of the snapshot.
    pub(crate) disk: PathBuf,
    pub(crate) api: String,
    pub(crate) upstreams: [u16; 2],
    /// Ports: DNS, another server block, *health*, *ready*, *prometheus*.
    pub(crate) ports: [u16; 5],
}

impl Place {
    pub(crate) fn ports() -> Result<[u16; 5], Failed> {
        let mut ports = [0; 5];
        for port in &mut ports {
            *port = free_port()?;
        }
        Ok(ports)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.ports[0]))
    }

    /// Returns a Corefile with random options.
    pub(crate) fn corefile(&self, random: &mut Random) -> String {
        let Place { folder, disk, api, upstreams: [one, other], ports: [dns, more, health, ready, metrics] } = self;
        let (folder, disk) = (folder.display(), disk.display());
        let (cache, policy, ttl) = (random.pick(&CACHES), random.pick(&POLICIES), random.pick(&[5, 10, 30]));
        let log = if random.percent(70) { "log" } else { "" };
        let extra = match random.percent(50) {
            true => format!("extra.test:{more} {{\n    bind 127.0.0.1\n    whoami\n}}\n"),
            false => String::new(),
        };
        let mut text = format!(
            ".:{dns} {{
    bind 127.0.0.1
    errors
    {log}
    health 127.0.0.1:{health}
    ready 127.0.0.1:{ready}
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        endpoint {api}
        tls {folder}/client.pem {folder}/client.key {folder}/ca.pem
        pods insecure
        ttl {ttl}
        snapshot {disk}/index
    }}
    prometheus 127.0.0.1:{metrics}
    forward . 127.0.0.1:{one} 127.0.0.1:{other} {{
        policy {policy}
        max_concurrent 1000
    }}
    cache 30 {{
        disable success cluster.local in-addr.arpa ip6.arpa
        disable denial cluster.local in-addr.arpa ip6.arpa
        {cache}
    }}
    reload
    loadbalance
}}
"
        );
        text.push_str(&extra);
        text
    }

    /// Replaces the Corefile.
    pub(crate) fn write_corefile(&self, text: &str) -> Result<(), Failed> {
        let (fresh, path) = (self.folder.join("Corefile.fresh"), self.folder.join("Corefile"));
        let written = std::fs::write(&fresh, text).and_then(|()| std::fs::rename(&fresh, &path));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Reader of the log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    is_stalled: AtomicBool,
    lines: Mutex<Vec<String>>,
    /// Number of pipes that are read.
    readers: AtomicUsize,
    /// Lines that must not be there.
    pub(crate) bad: Mutex<Vec<String>>,
}

impl Log {
    /// Stops or continues reading.
    pub(crate) fn stall(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::Relaxed);
    }

    fn read(&self, output: impl Read) {
        // Not `lines`: what is no UTF-8 must not end the reading.
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            while self.is_stalled.load(Ordering::Relaxed) {
                thread::sleep(PAUSE);
            }
            if BAD_WORDS.iter().any(|word| line.contains(word)) {
                lock(&self.bad).push(line.clone());
            }
            // The lines of the directive *log* are many.
            if !line.starts_with("[INFO] 127.0.0.1:") {
                let mut lines = lock(&self.lines);
                if lines.len() == LINES_MAX {
                    lines.remove(0);
                }
                lines.push(line);
            }
        }
    }

    /// Waits until nobody writes to the log any more, and returns true if that was so in time.
    pub(crate) fn wait_for_end(&self, timeout: Duration) -> bool {
        let begin = Instant::now();
        while self.readers.load(Ordering::Relaxed) > 0 && begin.elapsed() < timeout {
            thread::sleep(PAUSE);
        }
        self.readers.load(Ordering::Relaxed) == 0
    }

    /// Returns the last lines.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        lock(&self.lines).clone()
    }
}

/// Keeper with its server, both killed on drop.
#[derive(Debug)]
pub(crate) struct Server {
    keeper: Child,
    programs: Programs,
    corefile: PathBuf,
    clock: Option<(PathBuf, PathBuf)>,
    log: Arc<Log>,
    address: SocketAddr,
}

/// The two programs.
#[derive(Debug)]
struct Programs {
    keeper: PathBuf,
    server: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let worker = self.worker();
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        if let Some(worker) = worker {
            signal("KILL", worker);
        }
    }
}

impl Server {
    /// Starts the keeper beside `binary`, and waits until the server answers. `clock` names a library and a file that
    /// change its wall clock.
    pub(crate) fn start(
        binary: &Path,
        place: &Place,
        clock: Option<(PathBuf, PathBuf)>,
        log: &Arc<Log>,
    ) -> Result<Server, Failed> {
        let programs = Programs { keeper: binary.with_file_name("portolan-keeper"), server: binary.to_owned() };
        let corefile = place.folder.join("Corefile");
        let keeper = spawn(&programs, &corefile, clock.as_ref(), log)?;
        let server = Server { keeper, programs, corefile, clock, log: Arc::clone(log), address: place.address() };
        server.wait()?;
        Ok(server)
    }

    /// Starts another keeper after the end of the last one, and waits until its server answers.
    pub(crate) fn start_again(&mut self) -> Result<(), Failed> {
        let _ = self.keeper.wait();
        self.keeper = spawn(&self.programs, &self.corefile, self.clock.as_ref(), &self.log)?;
        self.wait()
    }

    /// Waits until the server answers.
    pub(crate) fn wait(&self) -> Result<(), Failed> {
        let question = Question { name: "dns-version.cluster.local.".to_owned(), qtype: Type::Txt };
        let begin = Instant::now();
        while probe(self.address, &question, PROBE_TIMEOUT).is_none() {
            if begin.elapsed() > START_TIMEOUT {
                return Err(format!("no answer for {START_TIMEOUT:?}; the log:\n{}", self.log.last_lines().join("\n")));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Returns the process of the server below the keeper.
    pub(crate) fn worker(&self) -> Option<u32> {
        let keeper = self.keeper.id();
        let children = std::fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Waits until another process than this one is the server.
    pub(crate) fn wait_for_successor(&mut self, former: u32) -> Result<(), Failed> {
        let begin = Instant::now();
        while self.worker().is_none_or(|worker| worker == former) {
            if let Ok(Some(status)) = self.keeper.try_wait() {
                return Err(format!("the keeper ended: {status}; the log:\n{}", self.log.last_lines().join("\n")));
            }
            if begin.elapsed() > START_TIMEOUT {
                return Err(format!("the keeper starts no server for {START_TIMEOUT:?}"));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    pub(crate) fn keeper(&self) -> u32 {
        self.keeper.id()
    }

    /// Kills the keeper and then the server, as the end of a container does.
    pub(crate) fn kill_all(&mut self) {
        let worker = self.worker();
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        if let Some(worker) = worker {
            signal("KILL", worker);
            while Path::new(&format!("/proc/{worker}/exe")).exists() && is_running(worker) {
                thread::sleep(PAUSE);
            }
        }
    }
}

/// Returns true if a process is no zombie.
fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn spawn(
    programs: &Programs,
    corefile: &Path,
    clock: Option<&(PathBuf, PathBuf)>,
    log: &Arc<Log>,
) -> Result<Child, Failed> {
    let mut keeper = Command::new(&programs.keeper);
    // Without the path of the server, the keeper starts the `portolan` beside it.
    keeper
        .arg(&programs.server)
        .arg("-conf")
        .arg(corefile)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some((library, file)) = clock {
        keeper.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", file);
        keeper.env("FAKETIME_CACHE_DURATION", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
    let mut child = keeper.spawn().map_err(|error| format!("{}: {error}", programs.keeper.display()))?;
    let output = child.stdout.take().map(|output| Box::new(output) as Box<dyn Read + Send>);
    let errors = child.stderr.take().map(|errors| Box::new(errors) as Box<dyn Read + Send>);
    for output in [output, errors].into_iter().flatten() {
        let log = Arc::clone(log);
        log.readers.fetch_add(1, Ordering::Relaxed);
        thread::spawn(move || {
            log.read(output);
            log.readers.fetch_sub(1, Ordering::Relaxed);
        });
    }
    Ok(child)
}

/// Locks, also after the panic of another thread: the run fails anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a signal to a process. Returns false if it has ended.
pub(crate) fn signal(name: &str, process: u32) -> bool {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
