//! `portolan check --for coredns` and CoreDNS itself agree on the examples of all READMEs, and on the Corefiles in the
//! folder that `PORTOLAN_COREFILES` names.
//!
//! `PORTOLAN_COREDNS` names the binary of CoreDNS 1.15.0, else it is `coredns` in the `PATH`. Without it, the test
//! prints a message and is skipped.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::support::Folder;

/// Release that the test runs.
const RELEASE: &str = "CoreDNS-1.15.0";
/// Time after which CoreDNS has neither ended nor started. It then waits for an API server, so it has read everything.
const WAIT: Duration = Duration::from_secs(30);
/// Errors of CoreDNS after it has read everything: it could not listen here.
const READ: [&str; 2] = ["Listen: ", "listen tcp"];
/// Errors about files, addresses and accounts that this machine lacks. They hide what CoreDNS would have read after
/// them.
const LACKING: [&str; 12] = [
    "no such file or directory",
    "unable to load in-cluster configuration",
    "failed to resolve",
    "failed to get shared config profile",
    "could not load TLS cert",
    "error reading",
    "not a valid IP address or interface name",
    "invalid configuration: no configuration has been provided",
    "unable to find key",
    "connection refused",
    "cannot assign requested address",
    "failed to create",
];

/// What CoreDNS did with a Corefile.
#[derive(Debug, PartialEq)]
enum Verdict {
    Started,
    Refused(String),
    /// This machine lacks something, so the verdict is unknown.
    Unknown,
}

#[test]
fn check_for_coredns_and_coredns_agree() {
    let binary = std::env::var_os("PORTOLAN_COREDNS").map_or("coredns".into(), PathBuf::from);
    match Command::new(&binary).arg("-version").output() {
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains(RELEASE) => {}
        _ => {
            // Not with a macro, because the test harness captures the output of macros.
            return crate::support::skip("set PORTOLAN_COREDNS to the binary of CoreDNS 1.15.0");
        }
    }
    let mut corefiles = examples();
    if let Some(folder) = std::env::var_os("PORTOLAN_COREFILES") {
        corefiles.extend(stored(Path::new(&folder)));
    }
    let (mut wrong, mut unknown) = (Vec::new(), 0);
    for (name, text) in &corefiles {
        let folder = Folder::new("coredns");
        folder.write("Corefile", text);
        let (passes, output) = check(&folder);
        match start(&binary, &folder) {
            Verdict::Unknown => unknown += 1,
            Verdict::Started if !passes => wrong.push(format!("{name}: CoreDNS starts\n{output}")),
            Verdict::Refused(why) if passes => wrong.push(format!("{name}: CoreDNS does not start: {why}")),
            _ => {}
        }
    }
    let count = corefiles.len();
    writeln!(std::io::stderr(), "{count} Corefiles, of which {unknown} need more than this machine has").unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(unknown * 2 < count, "most Corefiles can be compared");
}

/// Returns the example Corefiles of all plugins.
fn examples() -> Vec<(String, String)> {
    let crates = crate::support::packages::repository().join("crates");
    let plugins = ["common-plugins", "plugins"].map(|name| crates.join(name).join("src/plugins"));
    let folders = plugins.iter().flat_map(|plugins| std::fs::read_dir(plugins).unwrap().flatten());
    let mut folders: Vec<_> = folders.map(|entry| entry.path()).collect();
    folders.sort();
    let readme = |folder: PathBuf| {
        let text = std::fs::read_to_string(folder.join("README.md")).ok()?;
        Some((folder.file_name()?.to_string_lossy().into_owned(), text))
    };
    let examples = |(plugin, text): (String, String)| {
        let blocks = text.split("~~~ corefile\n").skip(1).map(|rest| rest.split("~~~").next().unwrap().to_owned());
        blocks.enumerate().map(|(number, text)| (format!("{plugin} {number}"), text)).collect::<Vec<_>>()
    };
    folders.into_iter().filter_map(readme).flat_map(examples).collect()
}

/// Returns the Corefiles of a folder.
fn stored(folder: &Path) -> Vec<(String, String)> {
    let files = crate::support::packages::files(folder).into_iter();
    let corefiles = files.filter(|file| file.extension().is_some_and(|extension| extension == "corefile"));
    corefiles.map(|file| (file.display().to_string(), std::fs::read_to_string(&file).unwrap())).collect()
}

fn check(folder: &Folder) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    let output = command.args(["check", "--for", "coredns"]).current_dir(folder.path()).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Starts CoreDNS until it serves or ends.
fn start(binary: &Path, folder: &Folder) -> Verdict {
    let mut command = Command::new(binary);
    command.args(["-dns.port", "0"]).current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (lines, out) = channel();
    let reader = BufReader::new(child.stdout.take().unwrap());
    let thread = std::thread::spawn(move || reader.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let has_started = loop {
        match out.recv_timeout(WAIT) {
            Ok(line) if line.starts_with(RELEASE) => break true,
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => break true,
            Err(RecvTimeoutError::Disconnected) => break false,
        }
    };
    let _ = child.kill();
    let error = String::from_utf8_lossy(&child.wait_with_output().unwrap().stderr).into_owned();
    drop(out);
    let _ = thread.join();
    let has = |parts: &[&str]| parts.iter().any(|part| error.contains(part));
    match error {
        _ if has_started || has(&READ) => Verdict::Started,
        _ if has(&LACKING) => Verdict::Unknown,
        error => Verdict::Refused(error),
    }
}
