//! Following one ConfigMap.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use cluster::Source;
use fakeapi::{FakeApi, Fault, ReceivedRequest};
use kubeapi::{ConfigMap, Data, Timing};
use metrics::Registry;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::support::{empty, on_a_local_set, quick};

/// Maximum time that a test waits for a condition.
const PATIENCE: Duration = Duration::from_secs(60);

/// Follower on its own thread. It stops when dropped.
struct Follower {
    last: Arc<Mutex<Option<Data>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Follower {
    fn start(api: &FakeApi, timing: Timing) -> Follower {
        let source = Source::Endpoint { url: api.url().to_owned(), tls: None };
        let last = Arc::new(Mutex::new(None));
        let (for_thread, (stop, stopped)) = (Arc::clone(&last), oneshot::channel::<()>());
        let (ready, is_ready) = mpsc::channel();
        let thread = thread::spawn(move || {
            on_a_local_set(async move {
                let follower = ConfigMap::with_timing(&source, "kube-system", "kube-dns", &Registry::new(), timing);
                let following = follower.unwrap().follow(move |data| {
                    *for_thread.lock().unwrap() = data;
                    let _ = ready.send(());
                });
                tokio::select! {
                    () = following => {}
                    _ = stopped => {}
                }
            });
        });
        is_ready.recv_timeout(PATIENCE).unwrap();
        Follower { last, stop: Some(stop), thread: Some(thread) }
    }

    fn wait(&self, value: &str) {
        let deadline = Instant::now() + PATIENCE;
        let is_there = || self.last.lock().unwrap().as_ref().is_some_and(|data| data["key"] == value);
        while !is_there() {
            assert!(Instant::now() < deadline, "{value}: {:?}", self.last.lock().unwrap());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().map(thread::JoinHandle::join);
    }
}

fn config_map(value: &str) -> Value {
    let metadata = json!({ "namespace": "kube-system", "name": "kube-dns" });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "key": value } })
}

/// Waits for a request.
fn wait_request(api: &FakeApi, what: &str, condition: impl Fn(&[ReceivedRequest]) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition(&api.seen()) {
        assert!(Instant::now() < deadline, "{what}: {:?}", api.seen());
        thread::sleep(Duration::from_millis(1));
    }
}

fn wait_watch(api: &FakeApi) {
    wait_request(api, "a watch", |seen| seen.iter().any(ReceivedRequest::is_watch));
}

/// Replaces the ConfigMap by that of a backup whose version is older.
fn restore(api: &FakeApi) {
    api.delete("configmaps", "kube-system", "kube-dns");
    api.put(config_map("kept"));
    api.put_back(1);
}

#[test]
fn follows_changes() {
    let api = empty();
    api.put(config_map("first"));
    let follower = Follower::start(&api, quick());
    follower.wait("first");
    api.put(config_map("second"));
    follower.wait("second");
}

#[test]
fn reads_again_after_the_server_was_restored_from_a_backup() {
    let api = empty();
    api.put(config_map("lost"));
    let follower = Follower::start(&api, quick());
    follower.wait("lost");
    wait_watch(&api);
    api.down();
    restore(&api);
    api.up();
    follower.wait("kept");
}

/// The storage of an API server behind a load balancer may be restored without a broken connection.
#[test]
fn a_silent_watch_detects_a_restored_server() {
    let api = empty();
    api.put(config_map("lost"));
    let timing = Timing { watch_silence: Duration::from_millis(300), ..quick() };
    let follower = Follower::start(&api, timing);
    follower.wait("lost");
    wait_watch(&api);
    api.fault("configmaps", Fault::Silence);
    restore(&api);
    api.heal("configmaps");
    follower.wait("kept");
}

/// An API server that lags behind, or was restored, may reject the version of a watch with status 504.
#[test]
fn reads_again_after_a_version_that_the_server_does_not_have() {
    let api = empty();
    api.put(config_map("lost"));
    api.script("configmaps", [None, Some(Fault::Ahead), None]);
    let follower = Follower::start(&api, quick());
    follower.wait("lost");
    wait_request(&api, "a second list", |seen| seen.iter().filter(|seen| !seen.is_watch()).count() == 2);
}
