//! Tests in namespaces of their own. The test runs itself again inside.

use std::io::Write;
use std::process::Command;

/// Environment variable that is set in the process inside the namespace.
const INSIDE: &str = "PORTOLAN_TEST_IN_NAMESPACE";

/// Runs the test of this name in new namespaces, which the flags of unshare(1) name. `module` is the test's
/// `module_path!()`. In the namespaces, the loopback interface is up when `body` runs.
pub(crate) fn enter(module: &str, test: &str, flags: &[&str], body: impl FnOnce()) {
    if is_inside() {
        assert!(run("ip", &["link", "set", "lo", "up"]).0);
        return body();
    }
    let own = std::env::current_exe().expect("its path");
    let (_, module) = module.split_once("::").expect("a module of the program");
    let mut command = Command::new("unshare");
    let status = command
        .args(flags)
        .arg(own)
        .args([&format!("{module}::{test}"), "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .status();
    assert!(status.expect("unshare runs").success(), "{test} in its namespace");
}

/// Returns true in the process inside the namespaces.
pub(crate) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Prints a line even if the test passes; the test harness captures the output of macros.
pub(crate) fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).expect("standard error");
}

/// Runs a program. Returns true if it succeeded, and its standard output.
pub(crate) fn run(program: &str, words: &[&str]) -> (bool, String) {
    match Command::new(program).args(words).output() {
        Ok(output) => (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(_) => (false, String::new()),
    }
}
