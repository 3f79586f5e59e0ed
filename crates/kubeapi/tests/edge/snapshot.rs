//! Snapshots: a process that starts while the API server is down serves from one.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use cluster::Request;
use fakeapi::{FakeApi, ReceivedRequest, service};

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
    flipped[200] ^= 1;
    let former = [b"portolan snapshot 1\n", &good[b"portolan snapshot 2\n".len()..]].concat();
    let other = Request { pods: true, ..remembering(&api, &file) };
    for (bytes, asked, reason) in [
        (flipped, remembering(&api, &file), "it has no complete list of all objects"),
        (good[..good.len() / 2].to_vec(), remembering(&api, &file), "it has no complete list of all objects"),
        (former, remembering(&api, &file), "it is no snapshot of this version"),
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

/// Requests that list objects, other than checks of a position.
fn lists(seen: &[ReceivedRequest]) -> Vec<&ReceivedRequest> {
    let is_list = |seen: &&ReceivedRequest| {
        seen.is_streaming_list() || !seen.is_watch() && seen.parameter("limit") != "1" && seen.name.is_empty()
    };
    seen.iter().filter(is_list).collect()
}

/// Waits until the watches of an earlier process are resumed.
fn wait_resumed(edge: &Edge) {
    edge.wait_synced();
    assert!(!edge.index.is_remembered());
    for resource in ["namespaces", "services", "endpointslices"] {
        let series = format!("portolan_kubernetes_resumes_total{{resource=\"{resource}\"}}");
        assert!((edge.metric(&series) - 1.0).abs() < 0.1, "{resource}: {}", edge.metrics());
    }
}

#[test]
fn resumes_its_watches_without_a_list() {
    let (api, folder) = (FakeApi::with_shop(), folder("resume"));
    let file = folder.join("snapshot");
    api.put(service("shop", "db", "10.96.0.30"));
    written(&api, &file);
    // Changes while no process runs arrive by the resumed watches.
    api.put(service("shop", "web", "10.96.0.77"));
    api.delete("services", "shop", "db");
    let before = api.seen().len();
    for round in 0..3 {
        let edge = Edge::start_with(&remembering(&api, &file), quick());
        edge.wait_service("shop/web", "10.96.0.77 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
        wait_resumed(&edge);
        assert_eq!(edge.service("shop/db"), "none");
        api.put(service("shop", "new", &format!("10.96.0.8{round}")));
        edge.wait_service("shop/new", &format!("10.96.0.8{round} http:80/TCP"));
    }
    let seen = api.seen();
    assert_eq!(lists(&seen[before..]).len(), 0, "{:?}", lists(&seen[before..]));
    assert!(
        seen[before..].iter().filter(|seen| seen.is_watch()).all(|seen| !seen.parameter("resourceVersion").is_empty())
    );
}

#[test]
fn is_never_older_than_what_was_answered() {
    let (api, folder) = (FakeApi::with_shop(), folder("never-older"));
    let file = folder.join("snapshot");
    written(&api, &file);
    for round in 0..20 {
        let address = format!("10.96.1.{round}");
        {
            let edge = Edge::start_with(&remembering(&api, &file), quick());
            api.put(service("shop", "new", &address));
            edge.wait_service("shop/new", &format!("{address} http:80/TCP"));
            // A copy is what a process that is killed now leaves behind.
            fs::copy(&file, folder.join("killed")).unwrap();
        }
        fs::rename(folder.join("killed"), &file).unwrap();
        api.down();
        let edge = Edge::start_with(&remembering(&api, &file), quick());
        assert_eq!(edge.service("shop/new"), format!("{address} http:80/TCP"), "round {round}");
        api.up();
    }
}

#[test]
fn lists_again_after_an_expired_position_and_not_from_a_cache() {
    let (api, folder) = (FakeApi::with_shop(), folder("resume-expired"));
    let file = folder.join("snapshot");
    written(&api, &file);
    api.put(service("shop", "web", "10.96.0.77"));
    api.compact();
    let before = api.seen().len();
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    assert_eq!(edge.service("shop/web"), WEB, "at once");
    edge.wait_service("shop/web", "10.96.0.77 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
    edge.wait_synced();
    let seen = api.seen();
    assert!(!lists(&seen[before..]).is_empty());
    assert!(lists(&seen[before..]).iter().all(|seen| seen.parameter("resourceVersion") != "0"), "a cached list");
    // The list is in the snapshot too.
    drop(edge);
    let before = api.seen().len();
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    wait_resumed(&edge);
    assert_eq!(lists(&api.seen()[before..]).len(), 0);
}

#[test]
fn lists_again_after_the_storage_was_restored() {
    let (api, folder) = (FakeApi::with_shop(), folder("resume-restored"));
    let file = folder.join("snapshot");
    let backup = api.put(service("shop", "kept", "10.96.0.40"));
    for round in 0..9 {
        api.put(service("shop", "lost", &format!("10.96.0.5{round}")));
    }
    written(&api, &file);
    api.delete("services", "shop", "lost");
    api.put_back(backup);
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    edge.wait_service("shop/lost", "none");
    edge.wait_synced();
    assert_eq!(edge.service("shop/kept"), "10.96.0.40 http:80/TCP");
}

#[test]
fn uses_what_is_before_a_damaged_end() {
    let (api, folder) = (FakeApi::with_shop(), folder("snapshot-cut"));
    let file = folder.join("snapshot");
    written(&api, &file);
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    edge.wait_synced();
    api.put(service("shop", "new", "10.96.0.80"));
    edge.wait_service("shop/new", "10.96.0.80 http:80/TCP");
    drop(edge);
    let whole = fs::read(&file).unwrap();
    for (end, bytes) in
        [("a cut record", whole[..whole.len() - 3].to_vec()), ("zeros", [&whole[..], &[0; 64]].concat())]
    {
        fs::write(&file, bytes).unwrap();
        let before = api.seen().len();
        let edge = Edge::start_with(&remembering(&api, &file), quick());
        assert_eq!(edge.service("shop/web"), WEB, "{end}");
        let line = format!("[WARNING] plugin/kubernetes: Snapshot {} has ", file.display());
        assert_eq!(edge.logged(&line), 1, "{end}: {:?}", edge.lines());
        // The watch continues from before the lost event.
        edge.wait_service("shop/new", "10.96.0.80 http:80/TCP");
        wait_resumed(&edge);
        assert_eq!(lists(&api.seen()[before..]).len(), 0, "{end}");
    }
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    assert_eq!(edge.logged("[WARNING]"), 0, "the end was cut off");
}

#[test]
fn another_process_with_the_same_path_gets_a_file_of_its_own() {
    let (api, folder) = (FakeApi::with_shop(), folder("snapshot-shared"));
    let file = folder.join("snapshot");
    let first = Edge::start_with(&remembering(&api, &file), quick());
    first.wait("the snapshot is written", |_| file.exists());
    let inode = || fs::metadata(&file).unwrap().ino();
    let before = inode();
    let second = Edge::start_with(&remembering(&api, &file), quick());
    assert_eq!(second.service("shop/web"), WEB, "at once");
    second.wait("a new file", |_| inode() != before);
    api.put(service("shop", "new", "10.96.0.80"));
    for edge in [&first, &second] {
        edge.wait_service("shop/new", "10.96.0.80 http:80/TCP");
    }
    drop((first, second));
    api.down();
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    assert_eq!(edge.service("shop/new"), "10.96.0.80 http:80/TCP");
    assert_eq!(edge.service("shop/web"), WEB, "the new file has what was known before it");
}

#[test]
fn a_grown_file_is_compacted_without_a_gap() {
    let (api, folder) = (FakeApi::with_shop(), folder("snapshot-compacted"));
    let file = folder.join("snapshot");
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    edge.wait("the snapshot is written", |_| file.exists());
    let length = || fs::metadata(&file).unwrap().len();
    let (mut most, mut number) = (0, 0_u32);
    // Until the file has been shorter than before twice.
    for _ in 0..2 {
        loop {
            for _ in 0..200 {
                number += 1;
                api.put(service("shop", &format!("{}-{}", "long".repeat(14), number % 7), "10.96.0.80"));
            }
            api.put(service("shop", "last", &format!("10.97.{}.{}", number / 200 % 250, number % 250)));
            edge.wait_service("shop/last", &format!("10.97.{}.{} http:80/TCP", number / 200 % 250, number % 250));
            if length() < most {
                most = 0;
                break;
            }
            most = length();
            assert!(most < 4 << 20, "{most} bytes");
        }
    }
    api.put(service("shop", "new", "10.96.0.81"));
    edge.wait_service("shop/new", "10.96.0.81 http:80/TCP");
    drop(edge);
    let before = api.seen().len();
    let edge = Edge::start_with(&remembering(&api, &file), quick());
    assert_eq!(edge.service("shop/web"), WEB);
    assert_eq!(edge.service("shop/new"), "10.96.0.81 http:80/TCP");
    wait_resumed(&edge);
    assert_eq!(lists(&api.seen()[before..]).len(), 0);
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
