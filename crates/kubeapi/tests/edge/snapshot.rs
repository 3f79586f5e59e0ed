//! Snapshots: a process that starts while the API server is down serves from one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cluster::Request;
use fakeapi::{FakeApi, service};

use crate::support::{Edge, WEB, folder, quick, request};

fn remembering(api: &FakeApi, file: &Path) -> Request {
    Request { snapshot: Some(file.to_owned()), ..request(api) }
}

/// Runs a subscription to the shop until it has written a snapshot.
fn written(api: &FakeApi, file: &Path) {
    let edge = Edge::start_with(&remembering(api, file), quick());
    edge.wait_synced();
    edge.wait("the snapshot is written", |_| file.exists());
}

#[test]
fn serves_the_snapshot_until_the_api_server_responds() {
    let (api, folder) = (FakeApi::with_shop(), folder("snapshot"));
    let file = folder.join("snapshot");
    // One that an earlier process left half written, readable for all.
    fs::write(folder.join("snapshot.new"), "half").unwrap();
    written(&api, &file);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    api.down();
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    assert_eq!(edge.service("shop/web"), WEB, "at once");
    assert!(edge.index.is_remembered() && !edge.index.is_synced());
    assert_eq!(edge.logged("[INFO] plugin/kubernetes: Serving what snapshot "), 1);
    api.put(service("shop", "web", "10.96.0.77"));
    api.up();
    edge.wait_service("shop/web", "10.96.0.77 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
    edge.wait_synced();
    assert!(!edge.index.is_remembered());
}

#[test]
fn rejects_an_unusable_snapshot_with_a_reason() {
    let (api, folder) = (FakeApi::with_shop(), folder("snapshot-bad"));
    let file = folder.join("snapshot");
    written(&api, &file);
    api.down();
    let good = fs::read(&file).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let other = Request { pods: true, ..remembering(&api, &file) };
    for (bytes, asked, reason) in [
        (flipped, remembering(&api, &file), "it is damaged: its checksum is wrong"),
        (good[..good.len() / 2].to_vec(), remembering(&api, &file), "it is damaged: its checksum is wrong"),
        (b"hello".to_vec(), remembering(&api, &file), "it is no snapshot of this version"),
        (Vec::new(), remembering(&api, &file), "it is no snapshot of this version"),
        (good.clone(), other, "the stanza that it was written for asked for other objects"),
    ] {
        fs::write(&file, bytes).unwrap();
        let edge = Edge::start_with(&asked, quick());
        assert_eq!(edge.service("shop/web"), "none");
        assert!(!edge.index.is_remembered());
        let line = format!("[WARNING] plugin/kubernetes: Snapshot {} is not used: {reason}", file.display());
        edge.wait_log(&line);
    }
}

#[test]
fn neither_reads_nor_replaces_what_is_no_regular_file() {
    let (api, folder) = (FakeApi::with_shop(), folder("snapshot-fifo"));
    let file = folder.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    edge.wait_synced();
    edge.wait_metric("portolan_kubernetes_snapshot_errors_total", 1.0);
    let line =
        format!("[WARNING] plugin/kubernetes: Snapshot {} cannot be written: it is not a regular file", file.display());
    edge.wait_log(&line);
    assert_eq!(edge.logged(&line), 1);
    assert!(!std::fs::metadata(&file).unwrap().is_file(), "the FIFO is still there");
    assert_eq!(edge.service("shop/web"), WEB);
}

#[test]
fn reports_an_unwritable_snapshot_path_once_and_continues() {
    let (api, folder) = (FakeApi::with_shop(), folder("snapshot-no-place"));
    let file = folder.join("no such folder/snapshot");
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    edge.wait_synced();
    edge.wait_metric("portolan_kubernetes_snapshot_errors_total", 3.0);
    let line = format!("[WARNING] plugin/kubernetes: Snapshot {} cannot be written: ", file.display());
    assert_eq!(edge.logged(&line), 1);
    assert_eq!(edge.service("shop/web"), WEB);
}
