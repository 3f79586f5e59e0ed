//! Checks the dependencies between the crates of the workspace against the table in ARCHITECTURE.md.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::{Failed, root};

/// All crates of the workspace, each with the crates that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("corefile", &[]),
    ("rcu", &[]),
    ("cluster", &["wire", "rcu", "host"]),
    ("skydns", &["wire", "rcu", "host"]),
    ("upstream", &["wire", "host"]),
    ("listwatch", &["host"]),
    ("relay", &["host"]),
    ("zone", &["wire"]),
    ("stub-resolver", &["wire", "upstream"]),
    ("doh", &["wire"]),
    ("quic", &["wire", "doh", "host"]),
    ("metrics", &[]),
    ("host", &[]),
    ("gotext", &[]),
    ("control", &[]),
    ("doctor", &["control", "corefile", "host"]),
    ("dynserde", &[]),
    ("engine", &["wire", "metrics", "host"]),
    ("config", &["wire", "corefile", "gotext", "metrics", "engine"]),
    ("plugin", &["wire", "metrics", "engine", "config", "testkit"]),
    (
        "common-plugins",
        &[
            "wire", "corefile", "dynserde", "rcu", "cluster", "upstream", "zone", "gotext", "engine", "metrics",
            "config", "host", "plugin",
        ],
    ),
    (
        "plugins",
        &[
            "wire",
            "corefile",
            "rcu",
            "cluster",
            "skydns",
            "upstream",
            "zone",
            "gotext",
            "engine",
            "metrics",
            "config",
            "host",
            "plugin",
            "common-plugins",
        ],
    ),
    ("linux", &[]),
    ("keeper", &["host", "linux"]),
    ("transport", &["host", "stub-resolver"]),
    ("net", &["wire", "metrics", "engine", "host", "linux", "transport", "upstream", "stub-resolver", "doh", "quic"]),
    ("manifests", &["cluster", "corefile", "dynserde"]),
    ("kubeapi", &["cluster", "dynserde", "manifests", "listwatch", "metrics", "host", "transport", "stub-resolver"]),
    ("compat", &["corefile", "host"]),
    ("etcd", &["skydns", "listwatch", "metrics", "transport", "host", "stub-resolver"]),
    ("conformance", &["wire", "cluster", "dynserde", "host", "kubeapi", "stub-resolver"]),
    (
        "process",
        &[
            "cluster",
            "config",
            "corefile",
            "engine",
            "etcd",
            "host",
            "kubeapi",
            "metrics",
            "net",
            "plugins",
            "linux",
            "skydns",
            "stub-resolver",
            "transport",
        ],
    ),
    (
        "inspect",
        &[
            "cluster",
            "config",
            "control",
            "corefile",
            "doctor",
            "engine",
            "etcd",
            "host",
            "kubeapi",
            "metrics",
            "net",
            "plugins",
            "process",
            "transport",
            "upstream",
            "wire",
        ],
    ),
    (
        "cli",
        &[
            "cluster",
            "compat",
            "config",
            "conformance",
            "control",
            "corefile",
            "doctor",
            "dynserde",
            "engine",
            "host",
            "inspect",
            "kubeapi",
            "net",
            "plugins",
            "process",
            "stub-resolver",
            "transport",
            "upstream",
            "wire",
        ],
    ),
    (
        "server",
        &[
            "cluster",
            "compat",
            "config",
            "corefile",
            "engine",
            "host",
            "inspect",
            "keeper",
            "kubeapi",
            "linux",
            "listwatch",
            "metrics",
            "net",
            "plugins",
            "process",
            "relay",
            "stub-resolver",
            "transport",
            "wire",
        ],
    ),
    (
        "portolan",
        &["cli", "compat", "config", "corefile", "etcd", "keeper", "kubeapi", "net", "plugins", "process", "server"],
    ),
    ("testkit", &["wire", "corefile", "gotext", "metrics", "engine", "config", "host"]),
    ("fakeapi", &["cluster"]),
    ("specification", &[]),
    (
        "simulation",
        &["wire", "cluster", "upstream", "engine", "host", "plugins", "kubeapi", "testkit", "specification"],
    ),
    (
        "fuzz",
        &[
            "wire",
            "corefile",
            "cluster",
            "skydns",
            "upstream",
            "zone",
            "engine",
            "config",
            "plugins",
            "kubeapi",
            "testkit",
            "doh",
            "quic",
            "transport",
            "control",
            "host",
            "relay",
        ],
    ),
    ("xtask", &[]),
    ("xtask-text", &["metrics", "engine", "config", "control", "doctor", "plugins", "portolan", "xtask"]),
    ("xtask-bench", &["wire", "linux", "fakeapi", "testkit", "specification", "xtask"]),
    ("xtask-lab", &["wire", "testkit", "xtask"]),
    ("xtask-specification", &["specification", "fakeapi", "xtask"]),
];

/// External crates that do I/O or spawn threads. The crates in [`PURE`] must not depend on them.
const WORLDLY: &[&str] = &["tokio", "hyper", "kube", "socket2", "libc", "mio", "reqwest", "notify"];
const PURE: &[&str] = &[
    "wire",
    "corefile",
    "rcu",
    "metrics",
    "host",
    "gotext",
    "control",
    "doctor",
    "dynserde",
    "cluster",
    "skydns",
    "upstream",
    "relay",
    "listwatch",
    "manifests",
    "zone",
    "doh",
    "quic",
    "engine",
    "config",
    "common-plugins",
    "plugins",
    "compat",
    "specification",
];

/// Checks the dependencies of all crates.
pub(crate) fn run() -> Result<(), Failed> {
    let wrong = wrong_arrows(&dependencies()?);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

type Dependencies = BTreeMap<String, Vec<String>>;

/// Returns the direct dependencies of each crate, without those of its tests.
fn dependencies() -> Result<Dependencies, Failed> {
    Ok(packages()?.iter().map(|package| (room(package), direct(package))).collect())
}

/// Returns the packages of the workspace, as `cargo metadata` describes them.
pub(crate) fn packages() -> Result<Vec<Value>, Failed> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let mut metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    match metadata["packages"].take() {
        Value::Array(packages) => Ok(packages),
        _ => Err("cargo metadata lists no packages".to_owned()),
    }
}

fn direct(package: &Value) -> Vec<String> {
    let all = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter(|dependency| dependency["kind"].is_null()).map(room).collect()
}

/// Returns the folder of a package or a dependency: `wire` for `portolan-wire`.
pub(crate) fn room(package: &Value) -> String {
    let name = package["name"].as_str().unwrap_or_default();
    name.strip_prefix("portolan-").unwrap_or(name).to_owned()
}

fn wrong_arrows(dependencies: &Dependencies) -> Vec<String> {
    let mut wrong = Vec::new();
    for room in dependencies.keys().filter(|room| !ALLOWED.iter().any(|(name, _)| name == room)) {
        wrong.push(format!("crate `{room}` is new: add it to the table in ARCHITECTURE.md and here"));
    }
    for (room, allowed) in ALLOWED {
        let Some(known) = dependencies.get(*room) else {
            wrong.push(format!("crate `{room}` does not exist: remove it from the table in ARCHITECTURE.md and here"));
            continue;
        };
        for other in known {
            let is_room = ALLOWED.iter().any(|(name, _)| name == other);
            if is_room && !allowed.contains(&other.as_str()) {
                wrong.push(format!("`{room}` must not depend on `{other}`; see ARCHITECTURE.md"));
            }
            if PURE.contains(room) && WORLDLY.contains(&other.as_str()) {
                wrong.push(format!("`{room}` does no I/O and must not depend on `{other}`"));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_depend_only_on_allowed_crates() {
        assert_eq!(run(), Ok(()));
    }

    #[test]
    fn reports_a_forbidden_dependency() {
        let mut dependencies: Dependencies = ALLOWED.iter().map(|(room, _)| ((*room).to_owned(), Vec::new())).collect();
        dependencies.insert("wire".to_owned(), vec!["engine".to_owned(), "tokio".to_owned()]);
        assert_eq!(wrong_arrows(&dependencies).len(), 2);
        dependencies.remove("net");
        assert_eq!(wrong_arrows(&dependencies).len(), 3);
        dependencies.insert("cellar".to_owned(), Vec::new());
        assert_eq!(wrong_arrows(&dependencies).len(), 4);
    }
}
