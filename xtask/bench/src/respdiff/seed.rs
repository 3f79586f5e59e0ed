//! The comparison with one seed.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use testkit::Parsed;
use tokio::runtime::Runtime;

use super::asking::{self, Pair};
use super::cluster::{self, Cluster};
use super::compare;
use super::facts::Facts;
use super::grammar::{self, Block, Scene, is_within};
use super::questions::{self, Query};
use super::report::{Attempt, Case, Outcome, Report};
use super::rules::Words;
use super::servers::Server;
use super::upstream::Upstreams;
use crate::random::Random;
use xtask::Failed;

/// Number of rounds of questions with a cluster that changes.
const ROUNDS: usize = 4;
/// Seconds by which TTLs from caches may differ: the servers count from different moments of a second.
const TOLERANCE: u32 = 1;

/// Settings and servers that all seeds share.
pub(crate) struct Bench {
    /// CoreDNS and Portolan.
    pub(crate) binaries: [PathBuf; 2],
    pub(crate) upstreams: Upstreams,
    pub(crate) runtime: Runtime,
    /// Folder with a folder for each seed.
    pub(crate) folder: PathBuf,
    /// Number of questions of a seed.
    pub(crate) questions: usize,
    /// Maximum time of a seed.
    pub(crate) limit: Duration,
    /// True if the files of all seeds are kept.
    pub(crate) keep: bool,
}

/// Returns the runtime of the questions.
pub(crate) fn runtime() -> Result<Runtime, Failed> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())
}

impl Bench {
    /// Compares the servers with a seed.
    pub(crate) fn compare(&self, seed: u64, report: &mut Report) -> Result<Outcome, Failed> {
        let scene = grammar::scene(seed);
        let folder = self.folder.join(seed.to_string());
        write_all(&folder, &scene)?;
        let before = report.unexplained();
        let mut run = Run {
            bench: self,
            all_words: scene.blocks.iter().flat_map(|block| block.words.clone()).collect(),
            cluster: scene.kubernetes.map(|options| Cluster::start(seed, options)),
            names: scene.names.clone(),
            facts: Facts::of(&scene),
            scene,
            apart: Cell::new(0),
            seed,
            deadline: Instant::now() + self.limit,
        };
        if run.cluster.is_some() {
            run.names.extend(cluster::names());
        }
        let outcome = run.compare(&folder, report)?;
        if !self.keep && report.unexplained() == before && outcome != Outcome::Incomplete {
            let _ = std::fs::remove_dir_all(&folder);
        }
        Ok(outcome)
    }
}

/// Run of a seed.
struct Run<'b> {
    bench: &'b Bench,
    scene: Scene,
    /// Words of all server blocks.
    all_words: BTreeSet<String>,
    cluster: Option<Cluster>,
    names: Vec<String>,
    facts: Facts,
    /// Longest time in seconds between both responses to a question so far: so much may entries of caches differ.
    apart: Cell<u32>,
    seed: u64,
    deadline: Instant,
}

impl Run<'_> {
    fn compare(&mut self, folder: &Path, report: &mut Report) -> Result<Outcome, Failed> {
        let mut variables: Vec<(&'static str, String)> =
            self.bench.upstreams.ports.iter().map(|(name, port)| (*name, port.to_string())).collect();
        variables.extend(self.cluster.as_ref().map(|cluster| ("API", cluster.port().to_owned())));
        let [coredns, portolan] = &self.bench.binaries;
        let mut servers = [
            Server::start(("coredns", coredns), folder, &variables)?,
            Server::start(("portolan", portolan), folder, &variables)?,
        ];
        match servers.each_mut().map(Server::wait) {
            [Ok(()), Ok(())] => {}
            [Err(_), Err(_)] => return Ok(Outcome::Refused),
            [Err(error), Ok(())] => {
                return Ok(self.failed("(start)", &format!("CoreDNS does not start: {error}"), report));
            }
            [Ok(()), Err(error)] => {
                return Ok(self.failed("(start)", &format!("Portolan does not start: {error}"), report));
            }
        }
        self.rounds(&mut servers, report)
    }

    /// Reports what keeps the seed from its questions as a difference.
    fn failed(&self, question: &str, error: &str, report: &mut Report) -> Outcome {
        let case = self.case(question, "-", &self.all_words);
        report.add(&case, vec![error.to_owned()], [None, None], Attempt::Only);
        Outcome::Incomplete
    }

    fn rounds(&mut self, servers: &mut [Server; 2], report: &mut Report) -> Result<Outcome, Failed> {
        let mut random = Random::new(self.seed.wrapping_mul(7));
        let rounds = if self.cluster.as_ref().is_some_and(Cluster::churns) { ROUNDS } else { 1 };
        if let Some(error) = self.scene.markers.iter().find_map(|name| missing(servers, name)) {
            return Ok(self.failed("(marker)", &error, report));
        }
        for round in 0..rounds {
            if let Some(cluster) = &mut self.cluster {
                if round > 0 {
                    cluster.change();
                }
                let markers = cluster.markers();
                if let Some(error) = markers.iter().find_map(|name| missing(servers, name)) {
                    return Ok(self.failed("(marker)", &error, report));
                }
            }
            let queries = questions::random(&mut random, &self.names, self.bench.questions / rounds);
            let addresses = [servers[0].address(), servers[1].address()];
            let pairs = self.bench.runtime.block_on(asking::all(addresses, &queries, self.deadline))?;
            let is_open = |(query, pair): &(&Query, &Pair)| !self.judge(query, pair, Attempt::First, report);
            let open: Vec<Query> = queries.iter().zip(&pairs).filter(is_open).map(|(query, _)| query.clone()).collect();
            // A busy machine can make one of the servers wait too long for an upstream. What differs is asked again.
            let answered = self.bench.runtime.block_on(asking::all(addresses, &open, self.deadline))?;
            let last = |(query, pair): (&Query, &Pair)| _ = self.judge(query, pair, Attempt::Last, report);
            open.iter().zip(&answered).for_each(last);
            if let Some(ended) = servers.iter_mut().find_map(|server| server.has_ended().then(|| server.last_line())) {
                return Ok(self.failed("(end)", &format!("a server has ended: {ended}"), report));
            }
            if pairs.len() < queries.len() || answered.len() < open.len() {
                return Ok(Outcome::Incomplete);
            }
        }
        Ok(Outcome::Complete)
    }

    /// Compares the responses to a question. Returns false if it should be asked again.
    fn judge(&self, query: &Query, pair: &Pair, attempt: Attempt, report: &mut Report) -> bool {
        let read = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| Parsed::read(bytes));
        let mut words = self.words(&query.name, &[]);
        let [coredns, portolan] = [read(&pair.bytes[0]), read(&pair.bytes[1])];
        let (differences, shapes) = match (coredns, portolan) {
            (None, portolan) => {
                report.count_silent(portolan.is_none());
                return true;
            }
            (Some(_), None) => (vec!["no response of Portolan".to_owned()], "-".to_owned()),
            (_, Some(Err(error))) => (vec![format!("malformed response of Portolan: {error}")], "-".to_owned()),
            (Some(Err(error)), _) => (vec![format!("malformed response of CoreDNS: {error}")], "-".to_owned()),
            (Some(Ok(coredns)), Some(Ok(portolan))) => {
                let has_cache = self.all_words.contains("cache");
                let apart = u32::try_from(pair.apart.as_secs()).unwrap_or(u32::MAX).max(self.apart.get());
                self.apart.set(apart);
                let tolerance = if has_cache { TOLERANCE.saturating_add(apart) } else { 0 };
                let shape = |response| compare::shape(response, query.qtype);
                let shapes = format!("{{{} -> {}}}", shape(&coredns), shape(&portolan));
                let differences = compare::differences(&coredns, &portolan, &query.asked(), tolerance);
                if !differences.is_empty() {
                    words = self.words(&query.name, &[coredns, portolan]);
                }
                (differences, shapes)
            }
        };
        let bytes = [pair.bytes[0].as_deref(), pair.bytes[1].as_deref()];
        report.add(&self.case(&query.text, &shapes, &words), differences, bytes, attempt)
    }

    fn case<'c>(&'c self, question: &str, shapes: &str, words: &'c BTreeSet<String>) -> Case<'c> {
        Case {
            seed: self.seed,
            question: format!("{question} {shapes}"),
            words: Words { own: words, all: &self.all_words },
        }
    }

    /// Returns the words of the server blocks with the longest zone that has a name, and those of its facts. `nested`
    /// says that two or more zones other than the root have it. Views share a zone.
    fn words(&self, name: &str, responses: &[Parsed]) -> BTreeSet<String> {
        let has = |zone: &&String| is_within(name, zone);
        let depth = |block: &Block| {
            block.zones.iter().filter(has).map(|zone| zone.trim_matches('.').len() + 1).max().unwrap_or(0)
        };
        let longest = self.scene.blocks.iter().map(depth).max().unwrap_or(0);
        let blocks: Vec<&Block> =
            self.scene.blocks.iter().filter(|block| longest > 0 && depth(block) == longest).collect();
        let mut words: BTreeSet<String> = blocks.iter().flat_map(|block| block.words.clone()).collect();
        words.extend(self.facts.words(name, &blocks, responses));
        let zones = self.scene.blocks.iter().flat_map(|block| block.zones.iter().chain(&block.inner));
        if zones.filter(|zone| *zone != ".").filter(has).collect::<BTreeSet<_>>().len() > 1 {
            words.insert("nested".to_owned());
        }
        words
    }
}

/// Waits until both servers have an address of a name. Returns what is missing after a time.
fn missing(servers: &[Server; 2], name: &str) -> Option<Failed> {
    servers.iter().find_map(|server| server.wait_for(name).err())
}

fn write_all(folder: &Path, scene: &Scene) -> Result<(), Failed> {
    let corefile = [("Corefile", &scene.corefile)];
    let files = scene.files.iter().map(|(path, text)| (path.as_str(), text));
    for (path, text) in corefile.into_iter().chain(files) {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
