//! `kubectl`, which finds the replicas of a Service and runs commands in their Pods.
//!
//! It has the credentials of the user, and needs these rights in the namespace of the Service: list EndpointSlices, get
//! Pods, create and get `pods/exec`. Nothing listens for it in the Pods.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::all_error::AllError;
use crate::commands::service::Service;
use control::exit;

/// Program to run, from the `PATH`.
const KUBECTL: &str = "kubectl";
/// Name of the binary in the images of this server.
const BINARY: &str = "/portolan";
/// Label of an EndpointSlice with the name of its Service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// Time for an answer: a new TLS connection of `kubectl`, and what a command allows itself.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum length of an output in bytes: a status or a table is some kilobytes.
const OUTPUT_MAX: u64 = 4 << 20;
/// Beginning of the line with which `kubectl exec` reports the exit code of the command.
const ENDED: &str = "command terminated with exit code ";

impl Service {
    /// Returns the names of the Pods behind the Service, ready or not, in order.
    pub(super) fn pods(&self) -> Result<Vec<String>, AllError> {
        let label = format!("{SERVICE_LABEL}={}", self.name);
        let output = self.output(&["get", "endpointslices", "-l", &label, "-o", "json"])?;
        // Without the right, kubectl prints an empty list beside its error.
        if !output.is_success {
            return Err(output.failure());
        }
        kubeapi::pods_in(&output.stdout)
            .map_err(|error| AllError::Kubectl(output.reason(&format!("not a list of EndpointSlices: {error}"))))
    }

    /// Runs a command of this program in a Pod.
    pub(super) fn ask(&self, pod: &str, words: &[String]) -> Result<Output, AllError> {
        self.output(&self.exec(pod, words))
    }

    /// Starts a command of this program in a Pod. Its output can be read while it runs.
    pub(super) fn start(&self, pod: &str, words: &[String]) -> Result<Child, AllError> {
        self.spawn(&self.exec(pod, words))
    }

    fn exec<'a>(&'a self, pod: &'a str, words: &'a [String]) -> Vec<&'a str> {
        let container = self.container.iter().flat_map(|container| ["-c", container]);
        let words = words.iter().map(String::as_str);
        ["exec", pod].into_iter().chain(container).chain(["--", BINARY]).chain(words).collect()
    }

    fn spawn(&self, words: &[&str]) -> Result<Child, AllError> {
        let context = self.context.iter().flat_map(|context| ["--context", context]);
        let mut command = Command::new(KUBECTL);
        command.args(context).args(["-n", &self.namespace]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => AllError::NoKubectl,
            _ => AllError::Kubectl(format!("{KUBECTL}: {}", host::errors::describe(&error))),
        })
    }

    /// Runs `kubectl` to its end, for at most [`TIMEOUT`].
    fn output(&self, words: &[&str]) -> Result<Output, AllError> {
        let mut child = self.spawn(words)?;
        let [stdout, stderr] = [read_all(child.stdout.take()), read_all(child.stderr.take())];
        let outcome = stdout.recv_timeout(TIMEOUT);
        if let Err(RecvTimeoutError::Timeout) = outcome {
            let _ = child.kill();
        }
        let status = child.wait();
        let Ok(stdout) = outcome else { return Err(AllError::Late(TIMEOUT)) };
        if stdout.len() as u64 >= OUTPUT_MAX {
            return Err(AllError::TooLong(OUTPUT_MAX));
        }
        // A program that `kubectl` has started may keep the pipe open.
        let stderr = stderr.recv_timeout(TIMEOUT).unwrap_or_default();
        let is_success = status.is_ok_and(|status| status.success());
        Ok(Output { stdout, stderr: String::from_utf8_lossy(&stderr).into_owned(), is_success })
    }
}

/// Output of a command.
pub(super) struct Output {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
    pub(super) is_success: bool,
}

impl Output {
    /// Returns the last line of the errors, or another reason without one.
    pub(super) fn reason(&self, other: &str) -> String {
        reason(&self.stderr).unwrap_or_else(|| other.to_owned())
    }

    /// Returns the error of a command that has failed.
    pub(super) fn failure(&self) -> AllError {
        failure(&self.stderr, "kubectl failed without a message")
    }

    /// Returns the exit code of the command in the Pod. `None` if `kubectl` itself failed.
    pub(super) fn code(&self) -> Option<u8> {
        if self.is_success { Some(exit::FINE) } else { self.stderr.lines().find_map(code_in) }
    }

    /// Returns the errors of the command in the Pod, without those of `kubectl`.
    pub(super) fn said(&self) -> String {
        self.stderr.lines().filter(|line| !is_about_kubectl(line)).map(|line| format!("{line}\n")).collect()
    }
}

/// Returns the error that a command reports in these lines, or another reason without one.
pub(super) fn failure(errors: &str, other: &str) -> AllError {
    let reason = reason(errors).unwrap_or_else(|| other.to_owned());
    let is_in_pod = errors.lines().find_map(code_in) == Some(exit::NOT_ASKED);
    if is_in_pod { AllError::InPod(reason) } else { AllError::Kubectl(reason) }
}

/// Returns the exit code that a line of `kubectl` reports.
fn code_in(line: &str) -> Option<u8> {
    line.trim().strip_prefix(ENDED)?.parse().ok()
}

/// Returns true for a line with which `kubectl` describes what it did. Its errors are no such lines.
fn is_about_kubectl(line: &str) -> bool {
    code_in(line).is_some() || line.starts_with("Defaulted container ")
}

/// Returns the last line of errors, and what to do about it.
pub(super) fn reason(errors: &str) -> Option<String> {
    let lines = errors.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    // The exit code says less than what the command printed before, and a hint at `--help` less than the error.
    let error = lines.clone().find(|line| line.starts_with("error: "));
    let line = error.or_else(|| lines.clone().find(|line| !is_about_kubectl(line))).or_else(|| lines.clone().next())?;
    let is_elsewhere = line.contains(&format!("\"{BINARY}\"")) && line.contains("no such file or directory");
    let advice =
        if is_elsewhere { "; if the Pod has several containers, `--container` names that of the server" } else { "" };
    Some(format!("{line}{advice}"))
}

/// Reads a pipe to its end on a thread of its own.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (done, bytes) = channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(pipe) = pipe {
            // What was read before an error is all there is.
            let _ = pipe.take(OUTPUT_MAX).read_to_end(&mut all);
        }
        let _ = done.send(all);
    });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_not_the_last_line() {
        let errors = "/run/x.sock: no such file or directory\ncommand terminated with exit code 2\n";
        let output = Output { stdout: Vec::new(), stderr: errors.to_owned(), is_success: false };
        assert_eq!((output.code(), output.reason("")), (Some(2), "/run/x.sock: no such file or directory".to_owned()));
        assert_eq!(output.said(), "/run/x.sock: no such file or directory\n");
        assert_eq!(
            reason("command terminated with exit code 137\n").as_deref(),
            Some("command terminated with exit code 137")
        );
        let usage = "error: unexpected argument '--x' found\n\nUsage: …\n\nFor more information, try '--help'.\n\
                     command terminated with exit code 2\n";
        assert_eq!(reason(usage).as_deref(), Some("error: unexpected argument '--x' found"));
        assert_eq!((reason("\n"), reason("Error from server\n\n")), (None, Some("Error from server".to_owned())));
        let elsewhere = reason("exec: \"/portolan\": stat /portolan: no such file or directory");
        assert!(elsewhere.is_some_and(|reason| reason.contains("`--container`")));
    }
}
