//! What the log is told of a mesh: each change of a name once, in the words of Istio's old DNS plugin, which said all of
//! them every five seconds.

use std::cell::Cell;
use std::time::Duration;

use cluster::mesh::Note;
use cluster::{Change, Index, Kind};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::meter::Meter;

/// Where its lines say that they come from.
const LOG: &str = "plugin/istio";
/// Mappings that are told in a second: more are a list or a storm, and only counted.
const LINES_MAX: u32 = 100;
const SECOND: Duration = Duration::from_secs(1);

/// What was told of the names of a mesh.
#[derive(Default)]
pub(crate) struct MeshLog {
    /// When the present second began, and how many mappings it has had.
    second: Cell<Option<(Instant, u32)>>,
}

impl MeshLog {
    /// Tells what an event of a watch of this kind changed.
    pub(crate) fn tell(&self, kind: Kind, change: Change, notes: &[Note], index: &Index, meter: &Meter) {
        for note in notes {
            if note.is_fault() {
                meter.invalid(&format!("{kind:?}"));
            }
            if note.is_fault() && meter.may_log() {
                warn!(target: LOG, "{note}");
            } else if !note.is_fault() && self.may_tell() {
                info!(target: LOG, "{note}");
            }
        }
        if kind == Kind::ServiceEntry && tells_number(change, index) {
            self.tell_rest();
            info!(target: LOG, "Have {} service entries", index.count(kind));
        }
    }

    fn may_tell(&self) -> bool {
        let now = Instant::now();
        let (begin, lines) = self.second.get().filter(|(begin, _)| now - *begin < SECOND).unwrap_or_else(|| {
            self.tell_rest();
            (now, 0)
        });
        self.second.set(Some((begin, lines + 1)));
        lines < LINES_MAX
    }

    /// Tells how many mappings were not told, and begins a new second.
    fn tell_rest(&self) {
        let lines = self.second.take().map_or(0, |(_, lines)| lines);
        if lines > LINES_MAX {
            info!(target: LOG, "changing {} DNS mappings more", lines - LINES_MAX);
        }
    }
}

/// Whether there may be another number of entries, and nobody is about to tell all of them.
fn tells_number(change: Change, index: &Index) -> bool {
    match change {
        Change::Listed { .. } => true,
        Change::Added | Change::Removed => index.knows(cluster::Kinds::of(&[Kind::ServiceEntry])),
        Change::Updated | Change::Nothing => false,
    }
}
