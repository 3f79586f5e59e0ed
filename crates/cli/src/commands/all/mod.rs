//! `--all`: a command for every replica of a Service, with one output.
//!
//! `kubectl` runs the command in each Pod (`kubectl`), and `status`, `top` and `tail` merge what the Pods answer; the
//! output of other commands is that of each Pod (`each`). A replica without an answer is named with the reason, and the
//! exit code says that the output is incomplete.

mod each;
mod kubectl;
mod report;
mod status;
mod tail;
mod top;

use control::exit;
use control::text::harmless;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use kubectl::failure;

use super::service::Service;
use super::{Request, ready, reload, requests, shadow};
use crate::all_error::AllError;
use crate::client::ControlError;

/// Maximum number of replicas that are asked: each takes a process of `kubectl` of about 60 MiB. A node cache is no
/// Service, so the largest clusters have fewer.
const REPLICAS_MAX: usize = 32;

/// Runs a command for all replicas of a Service. `None` if it is about one server.
pub(super) fn run(request: &Request, json: bool, service: &Service) -> Option<Result<u8, ControlError>> {
    let replicas = || Replicas::find(service).map_err(ControlError::All);
    let with_json = |words: Vec<String>| words.into_iter().chain(json.then(|| "--json".to_owned())).collect();
    let words: Vec<String> = match request {
        Request::Status(own) => {
            return Some(own.check_all().and_then(|()| replicas()).and_then(|all| status::run(&all, json)));
        }
        Request::Top(own) => return Some(replicas().and_then(|all| top::run(own, &all, json))),
        Request::Tail(own) => return Some(replicas().and_then(|all| tail::run(own, &all, json))),
        Request::Report(own) => return Some(replicas().and_then(|all| report::run(own, &all))),
        // It looks at the cluster from here.
        Request::Doctor(_) => return None,
        Request::Explain(own) => return Some(replicas().and_then(|all| each::run(&own.words(), &all, own.is_json()))),
        Request::Cache(own) => own.words(json),
        Request::LogLevel(own) => with_json(own.words()),
        Request::Ready => with_json(texts([ready::NAME])),
        Request::Reload => with_json(texts([reload::NAME])),
        Request::Requests => with_json(texts([requests::NAME])),
        Request::Shadow => with_json(texts([shadow::NAME, shadow::REPORT])),
    };
    Some(replicas().and_then(|all| each::run(&words, &all, json)))
}

/// Pods behind a Service.
struct Replicas<'a> {
    service: &'a Service,
    pods: Vec<String>,
    /// Pods beyond [`REPLICAS_MAX`].
    left: Vec<String>,
}

/// Answer of a replica.
struct Answer<T> {
    replica: String,
    outcome: Result<T, AllError>,
}

impl Replicas<'_> {
    fn find(service: &Service) -> Result<Replicas<'_>, AllError> {
        let mut pods = service.pods()?;
        if pods.is_empty() {
            return Err(AllError::NoPods(format!("{}/{}", service.namespace, service.name)));
        }
        let left = pods.split_off(pods.len().min(REPLICAS_MAX));
        Ok(Replicas { service, pods, left })
    }

    /// Name of the Service.
    fn name(&self) -> String {
        format!("{}/{}", self.service.namespace, self.service.name)
    }

    /// Runs a command with the output as JSON in all Pods at the same time, and parses the answers.
    ///
    /// # Errors
    /// No replica can do its work, all for the same reason.
    fn ask<T: DeserializeOwned + Send>(&self, words: &[String]) -> Result<Vec<Answer<T>>, ControlError> {
        let ask = |pod: &String| {
            let output = self.service.ask(pod, words)?;
            // The exit code may be that of trouble, about which the output says more.
            let parsed = serde_json::from_slice(&output.stdout);
            parsed.map_err(|error| failure(&output.stderr, &format!("the answer is not understood: {error}")))
        };
        self.each(ask)
    }

    /// Asks all Pods at the same time.
    ///
    /// # Errors
    /// No replica can do its work, all for the same reason: there is nothing to say about each of them.
    fn each<T: Send>(
        &self,
        ask: impl Fn(&String) -> Result<T, AllError> + Sync,
    ) -> Result<Vec<Answer<T>>, ControlError> {
        let ask = &ask;
        let answers = std::thread::scope(|scope| {
            let asking: Vec<_> = self.pods.iter().map(|pod| (pod, scope.spawn(move || ask(pod)))).collect();
            let answer = |(pod, asked): (&String, std::thread::ScopedJoinHandle<'_, Result<T, AllError>>)| Answer {
                replica: pod.clone(),
                outcome: asked.join().unwrap_or_else(|_| Err(AllError::Kubectl("the thread ended".to_owned()))),
            };
            asking.into_iter().map(answer).collect::<Vec<_>>()
        });
        if let Some(error) = common(&answers) {
            return Err(ControlError::All(error));
        }
        Ok(answers.into_iter().chain(self.left.iter().map(|pod| not_asked(pod))).collect())
    }
}

/// Returns the reason why no replica can do its work, if all have the same one, such as an invalid option.
fn common<T>(answers: &[Answer<T>]) -> Option<AllError> {
    let mut reasons = answers.iter().map(|answer| match &answer.outcome {
        Err(AllError::InPod(reason)) => Some(reason),
        _ => None,
    });
    let first = reasons.next()??;
    reasons.all(|reason| reason == Some(first)).then(|| AllError::InAllPods(answers.len(), first.clone()))
}

fn not_asked<T>(pod: &str) -> Answer<T> {
    let reason = format!("not asked: at most {REPLICAS_MAX} replicas are");
    Answer { replica: pod.to_owned(), outcome: Err(AllError::Kubectl(reason)) }
}

/// Returns the exit code. Trouble of some replicas does not hide that others are unknown.
fn code<T>(answers: &[Answer<T>], is_fine: impl Fn(&T) -> bool) -> u8 {
    if answers.iter().any(|answer| answer.outcome.is_err()) {
        exit::INCOMPLETE
    } else if answers.iter().filter_map(|answer| answer.outcome.as_ref().ok()).all(is_fine) {
        exit::FINE
    } else {
        exit::TROUBLE
    }
}

/// Returns the answers as JSON. `members` are those of an answer, beside the name of its replica.
fn document<T>(replicas: &Replicas<'_>, answers: &[Answer<T>], members: impl Fn(&T) -> Value) -> Value {
    let one = |answer: &Answer<T>| {
        let mut object = match &answer.outcome {
            Ok(value) => members(value),
            Err(error) => json!({ "error": error.to_string() }),
        };
        object["replica"] = answer.replica.as_str().into();
        object
    };
    json!({ "service": replicas.name(), "replicas": answers.iter().map(one).collect::<Vec<_>>() })
}

/// Returns a line for each replica without an answer.
fn unreached<T>(answers: &[Answer<T>]) -> String {
    let missing = answers.iter().filter_map(|answer| Some((&answer.replica, answer.outcome.as_ref().err()?)));
    missing.map(|(replica, error)| format!("✗ {}: {error}\n", harmless(replica))).collect()
}

/// Returns the width of the column with the names of replicas.
fn width<'a>(replicas: impl Iterator<Item = &'a String>) -> usize {
    replicas.map(|replica| replica.chars().count()).chain([TITLE.len()]).max().unwrap_or(TITLE.len())
}

/// Title of that column.
const TITLE: &str = "REPLICA";

fn texts<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}
