//! What is known, on disk: a process that begins while the API server is away serves from it.

use std::fs;
use std::path::Path;

use cluster::Request;
use fakeapi::{FakeApi, service};

use crate::support::{Edge, WEB, folder, quick, request};

fn remembering(api: &FakeApi, file: &Path) -> Request {
    Request { snapshot: Some(file.to_owned()), ..request(api) }
}

/// An edge that has written what it knows of the shop.
fn written(api: &FakeApi, file: &Path) {
    let edge = Edge::start_with(&remembering(api, file), quick());
    edge.wait_synced();
    edge.wait("the snapshot is written", |_| file.exists());
}

#[test]
fn what_was_known_is_served_until_the_truth_is_there() {
    let (api, folder) = (FakeApi::with_shop(), folder("snapshot"));
    let file = folder.join("snapshot");
    written(&api, &file);
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
fn a_file_that_cannot_be_used_is_refused_with_a_reason() {
    let (api, folder) = (FakeApi::with_shop(), folder("snapshot-bad"));
    let file = folder.join("snapshot");
    written(&api, &file);
    api.down();
    let good = fs::read(&file).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let other = Request { pods: true, ..remembering(&api, &file) };
    for (octets, asked, reason) in [
        (flipped, remembering(&api, &file), "it is damaged: its checksum is wrong"),
        (good[..good.len() / 2].to_vec(), remembering(&api, &file), "it is damaged: its checksum is wrong"),
        (b"hello".to_vec(), remembering(&api, &file), "it is no snapshot of this version"),
        (Vec::new(), remembering(&api, &file), "it is no snapshot of this version"),
        (good.clone(), other, "the stanza that it was written for asked for other objects"),
    ] {
        fs::write(&file, octets).unwrap();
        let edge = Edge::start_with(&asked, quick());
        assert_eq!(edge.service("shop/web"), "none");
        assert!(!edge.index.is_remembered());
        let line = format!("[WARNING] plugin/kubernetes: Snapshot {} is not used: {reason}", file.display());
        edge.wait_log(&line);
    }
}

#[test]
fn a_place_that_cannot_be_written_is_told_once_and_costs_nothing_else() {
    let (api, folder) = (FakeApi::with_shop(), folder("snapshot-no-place"));
    let file = folder.join("no such folder/snapshot");
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    edge.wait_synced();
    edge.wait_metric("portolan_kubernetes_snapshot_errors_total", 3.0);
    let line = format!("[WARNING] plugin/kubernetes: Snapshot {} cannot be written: ", file.display());
    assert_eq!(edge.logged(&line), 1);
    assert_eq!(edge.service("shop/web"), WEB);
}
