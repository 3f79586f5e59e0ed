//! `portolan tail --all`: the queries or the last failures of all replicas, each line with its replica.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{SyncSender, sync_channel};

use control::exit;
use control::tail::{Format, Line};
use control::text::harmless;
use serde_json::json;

use super::super::print_bytes;
use super::super::tail::Options;
use super::kubectl::reason;
use super::{Answer, Replicas, unreached, width};
use crate::all_error::AllError;
use crate::client::ControlError;

/// Lines that wait for the output, of all replicas. If the output is slow, the servers leave lines out and say so.
const WAITING_MAX: usize = 256;
/// Maximum length of a line, and of the errors of `kubectl`, in bytes.
const LENGTH_MAX: u64 = 64 << 10;

/// Line of a replica, or its end.
enum Arrived {
    Line(usize, Box<Line>),
    Ended(usize, Result<(), AllError>),
}

pub(in super::super) fn run(own: &Options, replicas: &Replicas<'_>, json: bool) -> Result<u8, ControlError> {
    own.check()?;
    let mut tail = Tail { own, json, replicas, width: width(replicas.pods.iter()), answers: Vec::new() };
    tail.run()
}

struct Tail<'a> {
    own: &'a Options,
    json: bool,
    replicas: &'a Replicas<'a>,
    width: usize,
    answers: Vec<Answer<()>>,
}

impl Tail<'_> {
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
        let printed = self.show(arrived.iter());
        for child in &mut children {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        printed?;
        self.answers.extend(self.replicas.left.iter().map(|pod| super::not_asked(pod)));
        eprint(&unreached(&self.answers));
        let is_complete = self.answers.iter().all(|answer| answer.outcome.is_ok());
        Ok(if is_complete { exit::FINE } else { exit::INCOMPLETE })
    }

    /// Prints lines: as they arrive, or, if all of them are from before, in their order.
    fn show(&mut self, arrived: impl Iterator<Item = Arrived>) -> Result<(), ControlError> {
        let is_record = self.own.is_record();
        let mut kept: Vec<(usize, Box<Line>)> = Vec::new();
        for one in arrived {
            match one {
                Arrived::Line(at, line) if is_record => kept.push((at, line)),
                Arrived::Line(at, line) => {
                    if !self.print(at, &line)? {
                        return Ok(());
                    }
                }
                Arrived::Ended(at, outcome) => {
                    self.answers.push(Answer { replica: self.replicas.pods[at].clone(), outcome });
                }
            }
        }
        kept.sort_by(|(_, one), (_, other)| time(one).cmp(time(other)));
        let first = kept.len().saturating_sub(self.own.last());
        for (at, line) in &kept[first..] {
            if !self.print(*at, line)? {
                break;
            }
        }
        Ok(())
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
        let outcome = stdout.map_or(Ok(true), |stdout| pass_on(at, stdout, &lines));
        let said = errors.join().unwrap_or_default();
        let outcome = match outcome {
            // A server says more if it has nothing to show. Only an error of `kubectl` begins like this.
            Ok(false) if is_error(&said) => Err(AllError::Kubectl(reason(&said).unwrap_or_default())),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        let _ = lines.send(Arrived::Ended(at, outcome));
    });
}

/// Passes lines on until the end. Returns false if there was none.
fn pass_on(at: usize, stdout: ChildStdout, lines: &SyncSender<Arrived>) -> Result<bool, AllError> {
    let (mut reader, mut has_lines) = (BufReader::new(stdout), false);
    loop {
        let mut line = Vec::new();
        let length = reader.by_ref().take(LENGTH_MAX).read_until(b'\n', &mut line);
        if !length.is_ok_and(|length| length > 0) {
            return Ok(has_lines);
        }
        let line = serde_json::from_slice(&line)
            .map_err(|error| AllError::Kubectl(format!("a line is not understood: {error}")))?;
        has_lines = true;
        if lines.send(Arrived::Line(at, Box::new(line))).is_err() {
            return Ok(has_lines);
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
