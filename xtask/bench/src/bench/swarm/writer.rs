//! Thread that changes slices at the API server at a constant rate, and a marker each second, by whose address a reader
//! knows how old an answer is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fakeapi::FakeApi;
use serde_json::Value;

use super::objects::Slices;
use super::tally::Tally;

/// Name of the marker's Service.
pub(crate) const MARKER: &str = "marker.ns-0.svc.cluster.local.";
/// First byte of the cluster IP of the marker. The last two are its number.
const MARKER_NETWORK: [u8; 2] = [10, 255];

/// Times at which the marker got its addresses.
#[derive(Default)]
pub(crate) struct Markers(Mutex<Vec<Instant>>);

impl Markers {
    /// Returns the Service with its next address.
    fn next(&self) -> Value {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [.., c, d] = times.len().to_be_bytes();
        times.push(Instant::now());
        let [a, b] = MARKER_NETWORK;
        fakeapi::service("ns-0", "marker", &format!("{a}.{b}.{c}.{d}"))
    }

    /// Returns the time for which a reader of an address has lacked a later one, or `None` if it is not one of the
    /// marker.
    pub(crate) fn stale(&self, [a, b, c, d]: [u8; 4]) -> Option<Duration> {
        let times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = usize::from(u16::from_be_bytes([c, d])) + 1;
        ([a, b] == MARKER_NETWORK).then(|| times.get(next).map_or(Duration::ZERO, Instant::elapsed))
    }
}

/// Thread that writes until it is dropped.
pub(crate) struct Writer {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts to write changes, evenly spaced. One in `per_second` is a new marker.
    pub(crate) fn start(
        api: &Arc<FakeApi>,
        mut slices: Slices,
        tally: &Arc<Tally>,
        markers: &Arc<Markers>,
        per_second: usize,
    ) -> Writer {
        let ends = Arc::new(AtomicBool::new(false));
        let (api, tally, markers) = (Arc::clone(api), Arc::clone(tally), Arc::clone(markers));
        let is_ending = Arc::clone(&ends);
        let interval = Duration::from_secs(1) / u32::try_from(per_second).unwrap_or(u32::MAX);
        let thread = std::thread::spawn(move || {
            let mut next = Instant::now();
            for number in 0_usize.. {
                let object = if number.is_multiple_of(per_second) { markers.next() } else { slices.change() };
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
                next += interval;
                // There is room for the changes of the whole measurement.
                let version = if is_ending.load(Ordering::Relaxed) { None } else { tally.times.note() };
                let Some(version) = version else { return };
                assert_eq!(api.put(object), version, "only this thread writes");
            }
        });
        Writer { ends, thread: Some(thread) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_tells_how_old_an_answer_is() {
        let markers = Markers::default();
        assert_eq!(markers.next()["spec"]["clusterIP"], "10.255.0.0");
        assert_eq!(markers.stale([10, 255, 0, 0]), Some(Duration::ZERO));
        assert_eq!(markers.next()["spec"]["clusterIP"], "10.255.0.1");
        assert!(markers.stale([10, 255, 0, 0]) > Some(Duration::ZERO));
        assert_eq!([markers.stale([10, 255, 0, 1]), markers.stale([10, 96, 0, 1])], [Some(Duration::ZERO), None]);
    }
}
