//! Which room may know which: the table of ARCHITECTURE.md, checked against what Cargo knows.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::{Failed, root};

/// Each room with the rooms that it may know. All packages of the workspace are here.
const ALLOWED: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("corefile", &[]),
    ("rcu", &[]),
    ("cluster", &["wire", "rcu"]),
    ("skydns", &["wire", "rcu"]),
    ("upstream", &["wire"]),
    ("zone", &["wire"]),
    ("engine", &["wire", "corefile"]),
    ("plugins", &["wire", "corefile", "rcu", "cluster", "skydns", "upstream", "zone", "engine"]),
    ("net", &["wire", "engine"]),
    ("kubeapi", &["cluster", "engine"]),
    ("kubedns", &[]),
    ("node", &["kubedns"]),
    ("migrate", &["corefile", "kubedns"]),
    ("etcd", &["skydns", "engine", "net"]),
    ("conformance", &["wire", "cluster", "kubeapi"]),
    (
        "server",
        &[
            "wire",
            "corefile",
            "cluster",
            "engine",
            "plugins",
            "net",
            "kubeapi",
            "etcd",
            "skydns",
            "kubedns",
            "node",
            "migrate",
            "conformance",
        ],
    ),
    ("testkit", &["wire", "corefile", "engine"]),
    ("fakeapi", &["cluster"]),
    ("fuzz", &["wire", "corefile", "cluster", "skydns", "zone", "engine", "plugins", "kubeapi", "testkit"]),
    ("xtask", &["wire", "engine", "plugins", "net", "server", "fakeapi", "fuzz"]),
];

/// Outside crates that the pure rooms must not have, whatever the reason: they open, wait or spawn.
const WORLDLY: &[&str] = &["tokio", "hyper", "kube", "socket2", "libc", "mio", "reqwest", "notify"];
const PURE: &[&str] = &[
    "wire", "corefile", "rcu", "cluster", "skydns", "upstream", "zone", "engine", "plugins", "kubedns", "node",
    "migrate",
];

/// Checks the arrows between the rooms.
pub(crate) fn run() -> Result<(), Failed> {
    let wrong = wrong_arrows(&dependencies()?);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

type Dependencies = BTreeMap<String, Vec<String>>;

/// The direct dependencies of each room, without those of its tests.
fn dependencies() -> Result<Dependencies, Failed> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    Ok(packages.iter().map(|package| (room(&package["name"]), direct(package))).collect())
}

fn direct(package: &Value) -> Vec<String> {
    let all = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter(|dependency| dependency["kind"].is_null()).map(|dependency| room(&dependency["name"])).collect()
}

/// The folder of a package: `portolan-wire` is `wire`, and `portolan` itself the server.
fn room(name: &Value) -> String {
    match name.as_str().unwrap_or_default() {
        "portolan" => "server".to_owned(),
        name => name.strip_prefix("portolan-").unwrap_or(name).to_owned(),
    }
}

fn wrong_arrows(dependencies: &Dependencies) -> Vec<String> {
    let mut wrong = Vec::new();
    for room in dependencies.keys().filter(|room| !ALLOWED.iter().any(|(name, _)| name == room)) {
        wrong.push(format!("the room `{room}` is new: add it to the table in ARCHITECTURE.md and here"));
    }
    for (room, allowed) in ALLOWED {
        let Some(known) = dependencies.get(*room) else {
            wrong.push(format!("the room `{room}` is gone: take it out of the table in ARCHITECTURE.md and here"));
            continue;
        };
        for other in known {
            let is_room = ALLOWED.iter().any(|(name, _)| name == other);
            if is_room && !allowed.contains(&other.as_str()) {
                wrong.push(format!("`{room}` may not know `{other}`: see ARCHITECTURE.md"));
            }
            if PURE.contains(room) && WORLDLY.contains(&other.as_str()) {
                wrong.push(format!("`{room}` is a pure room and may not have `{other}`"));
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
