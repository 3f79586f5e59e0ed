//! Schedule of a seed: what happens when, the faults, and the checks.

use core::time::Duration;
use std::path::PathBuf;

use engine::{Instant, Transport};
use specification::message;
use specification::record::{Question, Type};
use testkit::{Arrival, CLIENT, Parsed, Ticket};

use crate::api::{Api, Condition, SERVERS};
use crate::check::{Expected, check};
use crate::counts::{Counts, What};
use crate::mirror::Mirrors;
use crate::network::Upstream;
use crate::objects;
use crate::outside::{self, Limits};
use crate::process::{Machine, Options, Process, upstreams};
use crate::questions;
use crate::random::Generator;

/// Time for which faults happen.
const FAULTS: Duration = Duration::from_secs(120);
/// Time after the faults from which every answer must be right: the longest pause after a failure, which is 30 s as in
/// client-go, and the requests after it.
const HEALED: Duration = Duration::from_secs(40);
/// The same, if API servers have left out events: the next bookmark, because the number of objects at a version that
/// was compacted is not known, then the longest interval between two comparisons, 45 s, and a list. It is also more
/// than the silence of 50 s after which a watch is opened again.
const MISSED: Duration = Duration::from_secs(120);
/// Maximum time of a query: *forward* gives up after five seconds, a stale answer comes before, and an alias of the
/// cluster is looked up once.
const QUERY_MAX: Duration = Duration::from_secs(6);
/// Number of questions that are asked at once.
const MANY: usize = 40;
/// Time between queries that are asked one after the other.
const BETWEEN: Duration = Duration::from_millis(200);
/// Longest time in seconds that the machine sleeps.
const SLEEP_MAX: u64 = 1800;

/// Query that was sent.
struct Asked {
    question: Question,
    at: Instant,
    transport: Transport,
    ticket: Ticket,
    /// Expected answer, for a name of the cluster.
    expected: Option<Expected>,
    may_fail: bool,
    may_be_refused: bool,
}

/// Run of one seed.
pub(crate) struct Schedule {
    seed: u64,
    random: Generator,
    api: Api,
    machine: Machine,
    process: Process,
    options: Options,
    asked: Vec<Asked>,
    /// Longest time for which an expired answer was permitted by any Corefile of this process.
    stale: Duration,
    healed: Option<Instant>,
    counts: Counts,
}

impl Schedule {
    pub(crate) fn new(seed: u64, snapshot: PathBuf) -> Schedule {
        let mut random = Generator::new(seed);
        let api = Api::new(&mut random);
        let creation = objects::creation(&mut random);
        api.change(|state| creation.into_iter().for_each(|change| state.store.apply(change)));
        let machine = Machine::new(&api, &mut random, snapshot);
        let options = Options::random(&mut random);
        let process = machine.start(&options, random.next());
        Schedule {
            seed,
            random,
            api,
            machine,
            process,
            stale: options.stale(),
            options,
            asked: Vec::new(),
            healed: None,
            counts: Counts::default(),
        }
    }

    /// Runs the schedule.
    ///
    /// # Panics
    /// Panics at the first violation of a rule.
    pub(crate) fn run(mut self) -> Counts {
        let end = self.machine.now() + FAULTS;
        while self.machine.now() < end {
            let pause = self.random.millis(400);
            self.pass(pause);
            self.happen();
        }
        self.heal();
        self.pass(self.healing());
        self.check_everything();
        self.finish()
    }

    /// Lets time pass and checks what has been answered.
    fn pass(&mut self, span: Duration) {
        let at = self.machine.now() + span;
        self.machine.pass_until(&mut self.process, at);
        self.check_answers();
        self.check_view();
    }

    /// Lets one thing happen.
    fn happen(&mut self) {
        match self.random.below(1000) {
            0..560 => self.ask_some(),
            560..800 => self.change_cluster(),
            800..860 => self.change_server(),
            860..920 => self.change_upstream(),
            920..935 => self.compact(),
            935..945 => self.api.disconnect(),
            945..955 => self.machine.net().disconnect(),
            955..965 => self.reload(),
            965..972 => self.crash(),
            972..976 => self.restore(),
            976..978 => self.sleep(),
            978..985 => self.freeze(),
            985..990 => self.omit(),
            _ => self.check_many(),
        }
    }

    fn ask_some(&mut self) {
        for _ in 0..1 + self.random.below(3) {
            let is_of_cluster = self.random.is(60);
            let question = match is_of_cluster {
                true => questions::of_cluster(&mut self.random),
                false => questions::outside_of_cluster(&mut self.random),
            };
            // Clients repeat their questions, and ask the same at the same time.
            let times = if self.random.is(20) { 2 } else { 1 };
            (0..times).for_each(|_| self.ask(&question, is_of_cluster));
        }
        self.check_answers();
    }

    fn ask(&mut self, question: &Question, is_of_cluster: bool) {
        let expected = is_of_cluster.then(|| self.api.lock().model().expect(question));
        self.send(question, expected);
    }

    fn send(&mut self, question: &Question, expected: Option<Expected>) {
        self.counts.count(if expected.is_some() { What::ClusterQuery } else { What::OutsideQuery });
        let id = u16::try_from(self.random.below(1 << 16)).expect("an ID");
        let mut packet = message::query(id, question);
        // RD: the forwarder passes it on.
        packet[2] |= 1;
        let transport = if self.random.is(20) { Transport::Tcp } else { Transport::Udp };
        let arrival = Arrival { peer: CLIENT, transport, port: None };
        let (at, may_fail) = (self.machine.now(), self.healed.is_none());
        let may_be_refused = may_fail && self.options.limits_queries();
        let ticket = self.process.ask(&packet, arrival);
        let question = question.clone();
        self.asked.push(Asked { question, at, transport, ticket, expected, may_fail, may_be_refused });
    }

    /// Checks the answers that have come, and that none is late.
    fn check_answers(&mut self) {
        let now = self.machine.now();
        for asked in core::mem::take(&mut self.asked) {
            match asked.ticket.outcome() {
                None if now.since(asked.at) > QUERY_MAX => self.fail(&format!("{:?}: no answer", asked.question)),
                None => self.asked.push(asked),
                Some(outcome) => {
                    let Some(bytes) = outcome.answer else { self.fail(&format!("{:?}: dropped", asked.question)) };
                    self.check_answer(&asked, &bytes, asked.at + outcome.took);
                }
            }
        }
    }

    fn check_answer(&mut self, asked: &Asked, bytes: &[u8], at: Instant) {
        if let Some(expected) = &asked.expected {
            let is_over_udp = asked.transport == Transport::Udp;
            check(expected, bytes, is_over_udp).unwrap_or_else(|problem| self.fail(&problem));
            return;
        }
        let response = Parsed::read(bytes).unwrap_or_else(|error| self.fail(&error.to_string()));
        match response.rcode() {
            wire::Rcode::SERVFAIL => self.counts.count(What::Failure),
            wire::Rcode::REFUSED => self.counts.count(What::Limited),
            _ => {}
        }
        let number = outside::number_of(&asked.question.name).expect("a name outside of the cluster");
        let (may_fail, may_be_truncated) = (asked.may_fail, asked.transport == Transport::Udp);
        let may_be_refused = asked.may_be_refused;
        let limits = Limits { stale: self.stale, may_fail, may_be_refused, may_be_truncated, exchange: QUERY_MAX };
        let checked = outside::check(&response, number, at, limits);
        checked.unwrap_or_else(|problem| {
            self.fail(&format!("{} {}: {problem}", asked.question.name, asked.question.qtype))
        });
    }

    /// Checks the requests to the API server.
    fn check_view(&mut self) {
        let violation = self.api.lock().violation.clone();
        if let Some(violation) = violation {
            self.fail(&violation);
        }
        let flights = self.machine.net().in_flight();
        assert!(flights <= self.asked.len() * 4 + 16, "{}: {flights} queries in flight", self.seed);
    }

    /// Asks for some names of the cluster at once.
    fn check_many(&mut self) {
        for _ in 0..MANY {
            let question = questions::of_cluster(&mut self.random);
            self.ask(&question, true);
        }
        self.check_answers();
    }

    /// Asks for every name of the cluster and compares the answers with the model of what was delivered.
    fn check_everything(&mut self) {
        let model = self.api.lock().model();
        for question in questions::all_of_cluster() {
            self.send(question, Some(model.expect(question)));
        }
        self.check_answers();
    }

    fn change_cluster(&mut self) {
        let (changes, version, bound) = {
            let state = self.api.lock();
            let former = state.mirrors.0.iter().filter(|mirror| mirror.epoch != state.store.epoch);
            let bound = former.map(|mirror| mirror.version).min();
            (objects::next(&state.store.current, &mut self.random), state.store.version, bound)
        };
        // After a backup was restored, a version that is reached again cannot be told from the former one.
        if bound.is_some_and(|bound| version + changes.len() as u64 >= bound) {
            return;
        }
        self.counts.count(What::Change);
        self.api.change(|state| changes.into_iter().for_each(|change| state.store.apply(change)));
    }

    fn change_server(&mut self) {
        let server = self.random.index(SERVERS);
        let conditions = [
            Condition::Fine,
            Condition::Fine,
            Condition::Fine,
            Condition::Down,
            Condition::Status(500, None),
            Condition::Status(429, Some(2)),
            Condition::Status(503, None),
            Condition::Hanging,
            Condition::Cutting,
            Condition::Slow,
            Condition::Short,
            Condition::Stalled,
        ];
        let condition = self.random.pick(&conditions);
        self.api.set(server, condition);
    }

    fn change_upstream(&mut self) {
        let address = self.random.pick(&upstreams());
        let upstream = Upstream::random(&mut self.random);
        self.machine.net().set(address, upstream);
    }

    fn compact(&mut self) {
        let back = self.random.index(10);
        self.api.change(|state| state.store.compact(state.store.ago(back)));
    }

    /// Makes the cache of a server lag, or lets it catch up.
    fn freeze(&mut self) {
        let (server, is_frozen) = (self.random.index(SERVERS), self.random.is(60));
        self.api.change(|state| state.servers[server].frozen = is_frozen.then_some(state.store.version));
    }

    /// Makes the watches of a server leave out events, or not any more. Not with a snapshot: a process that resumes
    /// does not know the number of objects that it should have.
    fn omit(&mut self) {
        let omits = self.random.is(60) && !self.options.has_snapshot;
        let server = self.random.index(SERVERS);
        self.api.change(|state| state.servers[server].omits = omits);
    }

    /// Returns the time after the faults from which every answer must be right.
    fn healing(&self) -> Duration {
        let counts = self.api.lock().counts;
        if counts.has(What::Omitted) || counts.has(What::Deaf) { MISSED } else { HEALED }
    }

    fn reload(&mut self) {
        let Options { has_snapshot, stale_after, .. } = self.options;
        self.options = Options { has_snapshot, stale_after, ..Options::random(&mut self.random) };
        self.stale = self.stale.max(self.options.stale());
        self.counts.count(What::Reload);
        self.machine.load(&mut self.process, &self.options);
    }

    /// Ends the process, and starts another one.
    fn crash(&mut self) {
        let had_snapshot = self.process.has_snapshot();
        self.options = Options { has_snapshot: self.options.has_snapshot, ..Options::random(&mut self.random) };
        self.stale = self.options.stale();
        let seed = self.random.next();
        self.machine.restart(&mut self.process, &self.options, seed);
        self.asked.clear();
        self.counts.count(What::Crash);
        let is_remembered = self.process.is_remembered();
        if had_snapshot && !is_remembered {
            self.fail("the snapshot of the former process is not served");
        }
        if is_remembered {
            self.counts.count(What::Snapshot);
        } else {
            self.api.change(|state| state.mirrors = Mirrors::default());
        }
        self.check_many();
    }

    /// Restores an earlier backup of the storage.
    fn restore(&mut self) {
        self.counts.count(What::Restoration);
        let back = 1 + self.random.index(20);
        self.api.change(|state| state.restore(state.store.ago(back)));
        self.api.disconnect();
    }

    fn sleep(&mut self) {
        self.counts.count(What::Sleep);
        let span = Duration::from_secs(1 + self.random.below(SLEEP_MAX));
        self.machine.sleep(&mut self.process, span);
    }

    /// Ends all faults.
    fn heal(&mut self) {
        (0..SERVERS).for_each(|server| self.api.set(server, Condition::Fine));
        self.api
            .change(|state| state.servers.iter_mut().for_each(|server| (server.frozen, server.omits) = (None, false)));
        upstreams().into_iter().for_each(|address| self.machine.net().set(address, Upstream::GOOD));
    }

    /// Checks that everything is as if nothing had happened.
    fn finish(mut self) -> Counts {
        self.healed = Some(self.machine.now());
        let lagging: Vec<String> = {
            let state = self.api.lock();
            let kinds = objects::Kind::ALL.into_iter();
            let lags = |kind: &objects::Kind| {
                let mirror = &state.mirrors.0[*kind as usize];
                let own = mirror.objects.iter().map(|(key, object)| (key, object.json(0)));
                !own.eq(state.store.current[*kind as usize].iter().map(|(key, object)| (key, object.json(0))))
            };
            kinds.filter(lags).map(|kind| format!("{kind:?}")).collect()
        };
        if !lagging.is_empty() {
            self.fail(&format!("not current {:?} after the faults: {}", self.healing(), lagging.join(", ")));
        }
        // Aliases that lead out of the cluster wait for upstreams.
        self.pass(BETWEEN);
        for number in 0..objects::OUTSIDE {
            for qtype in [Type::A, Type::Aaaa] {
                self.send(&Question { name: objects::outside(number), qtype }, None);
            }
            // So that few wait at once.
            self.pass(BETWEEN);
        }
        self.pass(QUERY_MAX + Duration::from_secs(1));
        assert!(self.asked.is_empty(), "seed {}: a query without an answer", self.seed);
        self.counts.add(&self.api.lock().counts);
        self.counts
    }

    fn fail(&self, problem: &str) -> ! {
        let at = self.machine.now().since(Instant::START);
        let log = self.process.log();
        let last = log[log.len().saturating_sub(5)..].join("\n");
        panic!("seed {} at {at:?}: {problem}\noptions {:?}\n{last}", self.seed, self.options);
    }
}
