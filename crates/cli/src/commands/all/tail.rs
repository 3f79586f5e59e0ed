//! `portolan tail --all`: the queries or the last failures of all replicas, each line with its replica.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use control::exit;
use control::tail::{Format, Line};
use control::text::harmless;
use serde_json::json;

use super::super::print_bytes;
use super::super::tail::Options;
use super::kubectl::{TIMEOUT, failure, reason};
use super::{Answer, Replicas, common, unreached, width};
use crate::all_error::AllError;
use crate::client::ControlError;

/// Lines that wait for the output, of all replicas. If the output is slow, the servers leave lines out and say so.
const WAITING_MAX: usize = 256;
/// Maximum length of a line, and of the errors of `kubectl`, in bytes.
const LENGTH_MAX: u64 = 64 << 10;

/// Time that a refusal of a replica waits for those of the others: if all refuse the same, one line says so.
const REFUSALS_WAIT: Duration = Duration::from_secs(2);

/// Line of a replica, or its end.
enum Arrived {
    Line(usize, Box<Line>),
    Ended(usize, Result<(), AllError>),
}

pub(in super::super) fn run(own: &Options, replicas: &Replicas<'_>, json: bool) -> Result<u8, ControlError> {
    own.check()?;
    Tail::new(own, json, replicas).run()
}

struct Tail<'a> {
    own: &'a Options,
    json: bool,
    replicas: &'a Replicas<'a>,
    width: usize,
    /// Replicas that have ended.
    answers: Vec<Answer<()>>,
    /// Number of `answers` whose errors are printed.
    reported: usize,
}

impl<'a> Tail<'a> {
    fn new(own: &'a Options, json: bool, replicas: &'a Replicas<'a>) -> Tail<'a> {
        Tail { own, json, replicas, width: width(replicas.pods.iter()), answers: Vec::new(), reported: 0 }
    }

    fn run(&mut self) -> Result<u8, ControlError> {
        let (lines, arrived) = sync_channel(WAITING_MAX);
        let mut children: Vec<Child> = Vec::new();
        for (at, pod) in self.replicas.pods.iter().enumerate() {
            match self.replicas.service.start(pod, &self.own.words()) {
                Ok(mut child) => {
                    read(at, &mut child, lines.clone());
                    children.push(child);
                }
                Err(error) => self.answers.push(Answer { replica: pod.clone(), outcome: Err(error) }),
            }
        }
        drop(lines);
        let printed = self.show(&arrived, self.limit());
        for child in &mut children {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        printed?;
        self.conclude()
    }

    /// Reports the replicas that could not be asked, and returns the exit code.
    fn conclude(&mut self) -> Result<u8, ControlError> {
        if self.reported == 0
            && let Some(error) = common(&self.answers)
        {
            return Err(ControlError::All(error));
        }
        self.answers.extend(self.replicas.left.iter().map(|pod| super::not_asked(pod)));
        self.report();
        let is_complete = self.answers.iter().all(|answer| answer.outcome.is_ok());
        Ok(if is_complete { exit::FINE } else { exit::INCOMPLETE })
    }

    /// Returns the time after which replicas that have not ended are given up. `None` for a stream without an end.
    fn limit(&self) -> Option<Duration> {
        if self.own.is_record() { Some(TIMEOUT) } else { self.own.duration().map(|duration| duration + TIMEOUT) }
    }

    /// Prints lines: as they arrive, or, if all of them are from before, in their order.
    fn show(&mut self, arrived: &Receiver<Arrived>, limit: Option<Duration>) -> Result<(), ControlError> {
        let is_record = self.own.is_record();
        let end = limit.map(|limit| Instant::now() + limit);
        let mut kept: Vec<(usize, Box<Line>)> = Vec::new();
        let mut refused_until = None;
        loop {
            let until = [end, refused_until].into_iter().flatten().min();
            match next(arrived, until) {
                Ok(Arrived::Line(at, line)) if is_record => kept.push((at, line)),
                Ok(Arrived::Line(at, line)) => {
                    self.report();
                    if !self.print(at, &line)? {
                        return Ok(());
                    }
                }
                Ok(Arrived::Ended(at, outcome)) => {
                    self.answers.push(Answer { replica: self.replicas.pods[at].clone(), outcome });
                    // A stream may have no end at which to say it.
                    if !is_record && common(&self.answers).is_none() {
                        self.report();
                    } else if !is_record && refused_until.is_none() {
                        refused_until = Some(Instant::now() + REFUSALS_WAIT);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if refused_until.is_some() && until == refused_until => self.report(),
                Err(RecvTimeoutError::Timeout) => {
                    self.give_up(limit.unwrap_or_default());
                    break;
                }
            }
            refused_until = refused_until.filter(|_| self.reported < self.answers.len());
        }
        self.print_kept(kept)
    }

    /// Notes that the replicas that have not ended took longer than the limit.
    fn give_up(&mut self, limit: Duration) {
        let has_ended = |pod: &&String| self.answers.iter().any(|answer| answer.replica == **pod);
        let late: Vec<&String> = self.replicas.pods.iter().filter(|pod| !has_ended(pod)).collect();
        let late = late.into_iter().map(|pod| Answer { replica: pod.clone(), outcome: Err(AllError::Late(limit)) });
        self.answers.extend(late);
    }

    /// Prints the last lines of all replicas in their order.
    fn print_kept(&self, mut kept: Vec<(usize, Box<Line>)>) -> Result<(), ControlError> {
        host::sorting::sort_by(&mut kept, |(_, one), (_, other)| time(one).cmp(time(other)));
        let first = kept.len().saturating_sub(self.own.last());
        for (at, line) in &kept[first..] {
            if !self.print(*at, line)? {
                break;
            }
        }
        Ok(())
    }

    /// Prints the errors that are not printed yet.
    fn report(&mut self) {
        eprint(&unreached(&self.answers[self.reported..]));
        self.reported = self.answers.len();
    }

    fn print(&self, at: usize, line: &Line) -> Result<bool, ControlError> {
        let (replica, width) = (&self.replicas.pods[at], self.width);
        let format = if self.json { Format::Json } else { self.own.format() };
        let text = match format {
            Format::Json => json!({ "replica": replica, "line": line }).to_string(),
            Format::Logfmt => format!("replica={} {}", harmless(replica), line.text(format)),
            _ => format!("{:<width$}  {}", harmless(replica), line.text(format)),
        };
        print_bytes((text + "\n").as_bytes())
    }
}

/// Waits for a line or an end of a replica, until a time if there is one.
fn next(arrived: &Receiver<Arrived>, end: Option<Instant>) -> Result<Arrived, RecvTimeoutError> {
    match end {
        Some(end) => arrived.recv_timeout(end.saturating_duration_since(Instant::now())),
        None => arrived.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}

/// Time of a query, by which lines of several replicas are ordered. Other lines stay at the beginning.
fn time(line: &Line) -> &str {
    if let Line::Query(event) = line { &event.time } else { "" }
}

/// Reads the lines of a replica on a thread of its own.
fn read(at: usize, child: &mut Child, lines: SyncSender<Arrived>) {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.map(|stderr| stderr.take(LENGTH_MAX).read_to_string(&mut text));
        text
    });
    std::thread::spawn(move || {
        let outcome = stdout.map_or(Ok(()), |stdout| pass_on(at, stdout, &lines));
        let said = errors.join().unwrap_or_default();
        let outcome = match outcome {
            // Also after lines: a connection may break, and the Pod may end.
            Ok(()) if is_error(&said) => Err(failure(&said, "kubectl failed without a message")),
            outcome => outcome,
        };
        let _ = lines.send(Arrived::Ended(at, outcome));
    });
}

/// Passes lines on until the end.
fn pass_on(at: usize, stdout: ChildStdout, lines: &SyncSender<Arrived>) -> Result<(), AllError> {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let length = reader.by_ref().take(LENGTH_MAX).read_until(b'\n', &mut line);
        if !length.is_ok_and(|length| length > 0) {
            return Ok(());
        }
        let line = serde_json::from_slice(&line)
            .map_err(|error| AllError::Kubectl(format!("a line is not understood: {error}")))?;
        if lines.send(Arrived::Line(at, Box::new(line))).is_err() {
            return Ok(());
        }
    }
}

/// Returns true for errors of `kubectl` or of the command, and not for notices.
fn is_error(said: &str) -> bool {
    reason(said).is_some_and(|line| !line.starts_with("no recorded failure") && !line.starts_with("Defaulted"))
}

#[allow(clippy::print_stderr, reason = "a command prints to its user")]
fn eprint(text: &str) {
    eprint!("{text}");
}

#[cfg(test)]
mod tests {
    use super::super::super::tail::definition;
    use super::*;
    use crate::commands::service::Service;

    fn service() -> Service {
        Service { namespace: "kube-system".to_owned(), name: "kube-dns".to_owned(), context: None, container: None }
    }

    #[test]
    fn names_replicas_that_do_not_end_in_time() {
        let pods = ["dns-a", "dns-b"].map(str::to_owned).to_vec();
        let service = service();
        let replicas = Replicas { service: &service, pods, left: Vec::new() };
        let own = Options::read(&definition().get_matches_from(["tail", "--last", "3"]));
        let mut tail = Tail::new(&own, false, &replicas);
        let (lines, arrived) = sync_channel(WAITING_MAX);
        assert!(lines.send(Arrived::Ended(0, Ok(()))).is_ok());
        // The other replica keeps its end of the channel.
        assert!(tail.show(&arrived, Some(Duration::from_millis(1))).is_ok());
        let late: Vec<_> =
            tail.answers.iter().map(|answer| (answer.replica.as_str(), answer.outcome.clone())).collect();
        assert_eq!(late, [("dns-a", Ok(())), ("dns-b", Err(AllError::Late(Duration::from_millis(1))))]);
        assert_eq!(tail.limit(), Some(TIMEOUT));
        let limit = |words: [&str; 2]| {
            let own = Options::read(&definition().get_matches_from(words));
            Tail::new(&own, false, &replicas).limit()
        };
        assert_eq!(limit(["tail", "--for=5s"]), Some(Duration::from_secs(5) + TIMEOUT));
        assert_eq!(limit(["tail", "--json"]), None);
        drop(lines);
    }

    fn refusals(pods: &[&str]) -> (Result<u8, ControlError>, usize) {
        let pods: Vec<String> = pods.iter().map(|pod| (*pod).to_owned()).collect();
        let service = service();
        let replicas = Replicas { service: &service, pods, left: Vec::new() };
        let own = Options::read(&definition().get_matches_from(["tail"]));
        let mut tail = Tail::new(&own, false, &replicas);
        let (lines, arrived) = sync_channel(WAITING_MAX);
        for at in 0..replicas.pods.len() {
            let reason = if at == 2 { "other" } else { "`x` is not a type" };
            assert!(lines.send(Arrived::Ended(at, Err(AllError::InPod(reason.to_owned())))).is_ok());
        }
        drop(lines);
        assert!(tail.show(&arrived, None).is_ok());
        let reported = tail.reported;
        (tail.conclude(), reported)
    }

    #[test]
    fn says_once_what_all_replicas_refuse() {
        let (outcome, reported) = refusals(&["dns-a", "dns-b"]);
        assert_eq!(outcome.unwrap_err().to_string(), "`x` is not a type (all 2 replicas)");
        assert_eq!(reported, 0, "nothing is said about each of them");
        let (outcome, reported) = refusals(&["dns-a", "dns-b", "dns-c"]);
        assert_eq!((outcome.unwrap(), reported), (exit::INCOMPLETE, 3), "they differ");
    }
}
