//! Real Prometheus for one test, on a free loopback port.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{Folder, PATIENCE, wait_until};
use testkit::ports::free_address;

/// Running Prometheus.
pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
}

/// Returns true if Prometheus is installed; prints a message otherwise.
pub(crate) fn is_installed() -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let has = |program: &str| std::env::split_paths(&paths).any(|folder| folder.join(program).is_file());
    let found = has("prometheus") && has("promtool");
    if !found {
        skipped("`prometheus` is not installed: boards and rules are not tried with it");
    }
    found
}

/// Prints a message about something that is not tested. Not with a macro, because the test harness captures the output
/// of macros.
pub(crate) fn skipped(what: &str) {
    super::skip(what);
}

impl Prometheus {
    /// Starts with these rules. Scrapes each target every second, as a pair of job and address.
    pub(crate) fn start(folder: &Folder, rules: &str, targets: &[(&str, SocketAddr)]) -> Prometheus {
        folder.write("rules.yaml", rules);
        let mut config = "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n\
            rule_files: [rules.yaml]\nscrape_configs:\n"
            .to_owned();
        let mut jobs: Vec<&str> = targets.iter().map(|(job, _)| *job).collect();
        jobs.dedup();
        for job in jobs {
            let own: Vec<String> =
                targets.iter().filter(|(of, _)| *of == job).map(|(_, target)| format!("'{target}'")).collect();
            config += &format!("- job_name: {job}\n  static_configs: [{{targets: [{}]}}]\n", own.join(", "));
        }
        let address = free_address();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.write("prometheus.yaml", &config).display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .spawn()
            .expect("Prometheus starts");
        let prometheus = Prometheus { child, address };
        wait_until("Prometheus is ready", || prometheus.get("/-/ready").is_some());
        prometheus
    }

    /// Evaluates an expression, at a time in Unix seconds or now. Returns true if a series has a value.
    pub(crate) fn has_data(&self, expression: &str, time: Option<u64>) -> bool {
        let time = time.map_or(String::new(), |time| format!("&time={time}"));
        let body = self.get(&format!("/api/v1/query?query={}{time}", encoded(expression)));
        let response: Value = body.and_then(|body| serde_json::from_str(&body).ok()).unwrap_or_default();
        assert_eq!(response["status"], "success", "{expression}: {response}");
        let series = response["data"]["result"].as_array();
        series.is_some_and(|series| series.iter().any(|one| one["value"][1] != "NaN"))
    }

    /// Returns the rules as pairs of name and expression. Panics if one cannot be evaluated.
    pub(crate) fn rules(&self) -> Vec<(String, String)> {
        let body = self.get("/api/v1/rules").expect("the rules");
        let response: Value = serde_json::from_str(&body).expect("the rules as JSON");
        let groups = response["data"]["groups"].as_array().expect("groups").iter();
        let rules = groups.flat_map(|group| group["rules"].as_array().expect("rules"));
        rules
            .map(|rule| {
                assert_eq!(rule["lastError"], Value::Null, "{rule}");
                let text = |key: &str| rule[key].as_str().expect("a text").to_owned();
                (text("name"), text("query"))
            })
            .collect()
    }

    /// Requests a path over HTTP/1.0, whose bodies have no chunks. Returns the body if the status is 200.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        (head.split(' ').nth(1) == Some("200")).then(|| body.to_owned())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `promtool` in a folder, and panics with its output if it fails.
pub(crate) fn promtool(folder: &Path, arguments: &[&str]) {
    let output = Command::new("promtool").args(arguments).current_dir(folder).output().expect("promtool runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
}

/// Encodes a query parameter.
fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
