//! Background job: takes queries from the queue, asks the other server and compares.

use core::pin::Pin;
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use config::setup::{OwnQueries, ShadowCounts};
use engine::log::{Level, Source};
use engine::{Connections, Exchange, ExchangeError, Instant, Io, ListenerId, Transport};
use metrics::Counter;
use wire::{Header, MessageBuf, Opt, Reply, Request};

use super::compare::{Answer, Rules, differences};
use super::file::{DifferenceFile, Line};
use super::known::known;
use super::manifest::Config;
use super::queue::{Exit, Sample};
use super::results::{Asked, Difference, Outcomes, Results};
use crate::shared::record_queue::{First, any, first};

/// Interval at which the job looks into the queue. Workers do not wake it, because that could make them wait.
const TICK: Duration = Duration::from_millis(20);
/// Maximum number of queries that wait for the other server.
const IN_FLIGHT_MAX: usize = 256;
/// Settings of the connections for truncated answers.
const CONNECTIONS: Connections =
    Connections { idle_max: Duration::from_secs(10), age_max: Duration::ZERO, kept_max: 4, source: None };

/// Job of one `shadow` line.
pub(super) struct Job {
    config: Config,
    exit: Exit,
    results: Arc<Results>,
    outcomes: Outcomes,
    file: Option<Arc<DifferenceFile>>,
}

/// This server, as a job asks it.
pub(super) struct Own {
    pub(super) queries: Rc<dyn OwnQueries>,
    pub(super) listener: ListenerId,
}

/// Error of an exchange with the other server.
#[derive(Debug, thiserror::Error)]
enum AskError {
    /// No answer came in time.
    #[error("no answer in time")]
    Timeout,
    /// The query could not be sent, or the reply cannot be read.
    #[error("the query could not be sent, or its answer cannot be read")]
    Failed,
}

impl From<ExchangeError> for AskError {
    fn from(error: ExchangeError) -> AskError {
        match error {
            ExchangeError::Timeout { .. } => AskError::Timeout,
            _ => AskError::Failed,
        }
    }
}

impl Job {
    pub(super) fn new(
        config: Config,
        exit: Exit,
        results: Arc<Results>,
        outcomes: Outcomes,
        file: Option<Arc<DifferenceFile>>,
    ) -> Job {
        Job { config, exit, results, outcomes, file }
    }

    /// Runs until the generation ends. With `own`, the queue has answers of the other server, and this server is asked.
    pub(super) async fn run(self, io: Rc<dyn Io>, own: Option<Own>) {
        let (io, own) = (&*io, own.as_ref());
        let mut budget = Budget { per_second: self.config.per_second_max.into(), left: 0.0, at: io.now() };
        let mut summary = Summary { before: self.results.counts(), next: io.now() + self.config.report };
        let mut in_flight: Vec<Pin<Box<_>>> = Vec::new();
        loop {
            budget.refill(io.now());
            // The queue drops what finds no place, so a slow server costs samples and never the answers to clients.
            while in_flight.len() < IN_FLIGHT_MAX && budget.left >= 1.0 {
                let Some(sample) = self.exit.take() else { break };
                budget.left -= 1.0;
                in_flight.push(Box::pin(self.compare(sample, own, io)));
            }
            let mut tick = core::pin::pin!(io.sleep_until(io.now() + TICK));
            // A query that has its result makes room, but the budget grows with time only.
            loop {
                let event = first(&mut any(&mut in_flight), &mut tick).await;
                let First::One((at, ())) = event else { break };
                drop(in_flight.swap_remove(at));
            }
            self.summarize(&mut summary, io);
        }
    }

    /// Asks the server whose answer the queue does not have, and counts the result.
    async fn compare(&self, sample: Sample, own: Option<&Own>, io: &dyn Io) {
        let mut request = Request::default();
        let is_read = Header::read(&sample.query).is_some_and(|header| request.read(header, &sample.query).is_ok());
        let known = Answer::read(&sample.response).filter(|_| is_read);
        let asked = match (known, own) {
            (Some(ours), None) => self.ask(&request, &sample, io).await.map(|theirs| (ours, theirs)),
            (Some(theirs), Some(own)) => self.ask_own(own, &sample, io).await.map(|ours| (ours, theirs)),
            (None, _) => Err(AskError::Failed),
        };
        match asked {
            Ok((ours, theirs)) => self.judge(&request, &sample, &ours, &theirs, io),
            Err(AskError::Timeout) => self.count(self.outcomes.timeout, |counts| &mut counts.timeout, io),
            Err(AskError::Failed) => self.count(self.outcomes.error, |counts| &mut counts.error, io),
        }
    }

    /// Returns the answer of the other server. If it is truncated, the records are those over TCP.
    async fn ask(&self, request: &Request, sample: &Sample, io: &dyn Io) -> Result<Answer, AskError> {
        let query = question(request);
        let until = io.now() + self.config.timeout;
        let over = if sample.peer.transport.is_stream() { Transport::Tcp } else { Transport::Udp };
        let mut answer = read(&self.exchange(over, &query, until, io).await?)?;
        if answer.is_truncated() && over == Transport::Udp {
            answer.complete_with(read(&self.exchange(Transport::Tcp, &query, until, io).await?)?);
        }
        Ok(answer)
    }

    /// Returns the answer of this server to the client of the other one.
    async fn ask_own(&self, own: &Own, sample: &Sample, io: &dyn Io) -> Result<Answer, AskError> {
        let mut answer = own.queries.ask(own.listener, sample.peer.clone(), &sample.query);
        match first(&mut answer, &mut io.sleep_until(io.now() + self.config.timeout)).await {
            First::One(response) => response.and_then(|bytes| Answer::read(&bytes)).ok_or(AskError::Failed),
            First::Other(()) => Err(AskError::Timeout),
        }
    }

    async fn exchange(&self, over: Transport, query: &[u8], until: Instant, io: &dyn Io) -> Result<Reply, AskError> {
        let exchange = Exchange::new(self.config.to, over, query, until, CONNECTIONS);
        Ok(io.exchange(exchange).await?.reply)
    }

    /// Compares both answers and counts the result.
    fn judge(&self, request: &Request, sample: &Sample, ours: &Answer, theirs: &Answer, io: &dyn Io) {
        let is_mixed_case = request.name.as_bytes().iter().any(u8::is_ascii_uppercase);
        // A TTL also falls while the query waits in the queue.
        let tolerance = self.config.tolerance + io.now().since(sample.at);
        let rules = Rules { ignored: self.config.ignored, tolerance, is_mixed_case };
        let parts = differences(theirs, ours, &rules);
        if parts.is_empty() {
            return self.count(self.outcomes.same, |counts| &mut counts.same, io);
        }
        let known = known(request.qtype, theirs, ours, &parts);
        match known {
            Some(_) => self.count(self.outcomes.known, |counts| &mut counts.known, io),
            None => self.count(self.outcomes.different, |counts| &mut counts.different, io),
        }
        let client = sample.peer.address.ip().to_canonical();
        let asked = Asked { name: &request.name, qtype: request.qtype, client, since_1970: sample.since_1970 };
        let difference = Difference { theirs, ours, parts: &parts, known };
        self.results.add(&asked, &difference);
        if let Some(file) = &self.file {
            let (zone, example) = (self.results.zone_of(&request.name), difference.example(&asked));
            let (qtype, known) = (request.qtype.to_string(), known.map(|known| known.code));
            file.put(&Line { zone: &zone, qtype, known, example: &example });
        }
    }

    fn count(&self, counter: Counter, of: impl FnOnce(&mut ShadowCounts) -> &mut u64, io: &dyn Io) {
        io.counters().count(counter);
        self.results.count(io.since_1970(), of);
    }

    /// Logs a summary at the end of each interval in which answers differed or were missing.
    fn summarize(&self, summary: &mut Summary, io: &dyn Io) {
        if self.config.report.is_zero() || io.now() < summary.next {
            return;
        }
        summary.next = io.now() + self.config.report;
        let counts = self.results.counts();
        let before = core::mem::replace(&mut summary.before, counts);
        let different = counts.different - before.different;
        let known = counts.known - before.known;
        let unanswered = counts.timeout + counts.error - before.timeout - before.error;
        let dropped = counts.dropped - before.dropped;
        if different + unanswered > 0 {
            let compared = counts.same - before.same + known + different;
            let to = self.config.to;
            io.log(
                Level::Warning,
                Source::Plugin(super::MANIFEST.name),
                format_args!(
                    "{to}: {different} of {compared} answers differ, {known} have known differences, \
                     {unanswered} queries have no answer, {dropped} found the queue full; see `portolan shadow report`"
                ),
            );
        }
    }
}

/// Number of queries that may be sent.
struct Budget {
    per_second: f64,
    left: f64,
    at: Instant,
}

impl Budget {
    fn refill(&mut self, now: Instant) {
        let grown = now.since(self.at).as_secs_f64() * self.per_second;
        // What is not used within a tick is lost, so that a pause does not cause a burst. One query is always kept.
        let most = (self.per_second * 2.0 * TICK.as_secs_f64()).max(1.0);
        (self.left, self.at) = ((self.left + grown).min(most), now);
    }
}

/// State of the summaries in the log.
struct Summary {
    before: ShadowCounts,
    next: Instant,
}

/// Writes the question of a client with its flags and EDNS parameters, but without EDNS options, which belong to the
/// connection of the client (RFC 6891 §6.1.1).
fn question(request: &Request) -> Vec<u8> {
    let mut message = MessageBuf::new();
    let header = Header { flags: request.header.flags, ..Header::default() };
    message.start(header, Some((request.name.as_ref(), request.qtype, request.qclass)));
    let opt = request.opt.map(|opt| Opt { extended_rcode: 0, ..opt });
    message.finish(opt, core::iter::empty()).to_vec()
}

fn read(reply: &Reply) -> Result<Answer, AskError> {
    Answer::read(reply.bytes()).ok_or(AskError::Failed)
}
