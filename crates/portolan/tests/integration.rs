//! Tests of the whole server, as users run it. One program: each would link the server's crates again.
//!
//! `cargo test -p portolan --test integration explain::` runs the tests of `explain.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod attacks;
mod bursts;
mod cluster;
mod conformance;
mod control;
mod control_access;
mod control_docs;
mod control_socket;
mod coredns;
mod diagnostics;
mod dnssec;
mod dnstap;
mod doctor;
mod dynupdate;
mod early_refusals;
mod empty_root;
mod encrypted_upstreams;
mod etcd;
mod every_node;
mod everything;
mod explain;
mod explain_client;
mod explain_resolver;
mod ferret;
mod gate;
mod grpc;
mod guides;
mod http2_attacks;
mod https;
mod idle_connections;
mod istio;
mod keeper;
mod kube_dns;
mod log;
mod migrate;
mod mistakes;
mod monitoring;
mod node;
mod packages;
mod page;
mod process;
mod process_limits;
mod profile;
mod quic;
mod relay;
mod relays;
mod replicas;
mod seccomp;
mod shadow;
mod specified;
mod support;
mod tls;
mod tls_listener;
mod trace;
mod troubleshooting;
mod upstreams;
mod watch;
mod zones;

#[test]
fn each_file_of_tests_belongs_to_a_program() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let programs = ["integration", "allocations", "real"];
    let texts = programs.map(|program| std::fs::read_to_string(folder.join(program).with_extension("rs")).unwrap());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_known = programs.contains(&name) || texts.iter().any(|text| text.contains(&format!("\nmod {name};\n")));
        assert!(
            is_known || path.extension().is_none_or(|extension| extension != "rs"),
            "{} is not run",
            path.display()
        );
    }
}
