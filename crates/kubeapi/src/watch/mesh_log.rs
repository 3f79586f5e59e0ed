//! Log of changes in a mesh: one line for each changed DNS mapping, in the words of Istio's former CoreDNS plugin. That
//! plugin logged all mappings every five seconds.

use std::cell::Cell;
use std::time::Duration;

use cluster::mesh::Note;
use cluster::{Change, Index, Kind};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::meter::Meter;

/// Target of the log lines.
const LOG: &str = "plugin/istio";
/// Maximum number of mappings logged per second. More come from a list or an event storm, and only their number is
/// logged.
const LINES_MAX: u32 = 100;
const SECOND: Duration = Duration::from_secs(1);

/// Logger with a rate limit.
#[derive(Default)]
pub(crate) struct MeshLog {
    /// Start of the current second, and the number of mappings in it.
    second: Cell<Option<(Instant, u32)>>,
}

impl MeshLog {
    /// Logs the effects of a watch event of this kind, and counts invalid objects.
    pub(crate) fn log(&self, kind: Kind, change: Change, notes: &[Note], index: &Index, meter: &Meter) {
        for note in notes {
            if note.is_error() {
                meter.invalid(&format!("{kind:?}"));
            }
            if note.is_error() && meter.may_log() {
                warn!(target: LOG, "{note}");
            } else if !note.is_error() && self.may_log() {
                info!(target: LOG, "{note}");
            }
        }
        if kind == Kind::ServiceEntry && logs_number(change, index) {
            self.log_rest();
            info!(target: LOG, "Have {} service entries", index.count(kind));
        }
    }

    fn may_log(&self) -> bool {
        let now = Instant::now();
        let (begin, lines) = self.second.get().filter(|(begin, _)| now - *begin < SECOND).unwrap_or_else(|| {
            self.log_rest();
            (now, 0)
        });
        self.second.set(Some((begin, lines + 1)));
        lines < LINES_MAX
    }

    /// Logs the number of suppressed mappings, if any, and ends the current second.
    fn log_rest(&self) {
        let lines = self.second.take().map_or(0, |(_, lines)| lines);
        if lines > LINES_MAX {
            info!(target: LOG, "changing {} DNS mappings more", lines - LINES_MAX);
        }
    }
}

/// Returns true if the number of entries may have changed and no list is in progress.
fn logs_number(change: Change, index: &Index) -> bool {
    match change {
        Change::Listed { .. } => true,
        Change::Added | Change::Removed => index.knows(cluster::Kinds::of(&[Kind::ServiceEntry])),
        Change::Updated | Change::Nothing => false,
    }
}
