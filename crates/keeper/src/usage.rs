//! What the kernel says about a thread: `/proc`, and the CPU statistics of its control group.

use std::fs::read_to_string;
use std::path::Path;
use std::time::Duration;

use crate::watchdog::Usage;

/// Mount point of the control groups.
const CGROUPS: &str = "/sys/fs/cgroup";
/// The same file for control groups of version 1.
const CPU_STAT_V1: &str = "/sys/fs/cgroup/cpu/cpu.stat";

/// Reads the usage of a thread. Returns `None` if it does not exist.
pub(crate) fn read(process: u32, thread: u32) -> Option<Usage> {
    let folder = format!("/proc/{process}/task/{thread}");
    let stat = read_to_string(format!("{folder}/stat")).ok()?;
    // A kernel without these statistics has no such file.
    let times = read_to_string(format!("{folder}/schedstat")).unwrap_or_default();
    let (ran, waited) = schedstat(&times);
    Some(Usage { ran, waited, throttled: throttled(), is_runnable: is_runnable(&stat) })
}

/// Returns true if the state in `/proc/PID/task/TID/stat` is R, or t: a debugger has stopped the thread. The name before
/// it may contain anything.
fn is_runnable(stat: &str) -> bool {
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['R', 't']))
}

/// Returns the CPU time and the time on the run queue, in nanoseconds in the file.
fn schedstat(text: &str) -> (Duration, Duration) {
    let mut fields = text.split_whitespace().map(|field| Duration::from_nanos(field.parse().unwrap_or(0)));
    (fields.next().unwrap_or_default(), fields.next().unwrap_or_default())
}

/// Returns the longest time that this control group or one above it was throttled.
fn throttled() -> Duration {
    let own = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let name = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let folders = Path::new(CGROUPS).join(name);
    let files =
        folders.ancestors().take_while(|folder| folder.starts_with(CGROUPS)).map(|folder| folder.join("cpu.stat"));
    let texts = files.chain([CPU_STAT_V1.into()]).filter_map(|file| read_to_string(file).ok());
    texts.map(|text| throttled_in(&text)).max().unwrap_or_default()
}

/// Returns the time in the text of a `cpu.stat` file.
fn throttled_in(text: &str) -> Duration {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    match value("throttled_usec ") {
        Some(micros) => Duration::from_micros(micros),
        None => Duration::from_nanos(value("throttled_time ").unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_files_of_the_kernel() {
        assert!(is_runnable("12 (a) b) R 1 12 12") && is_runnable("12 (a) t 1"));
        assert!(!is_runnable("12 (a) T 1"), "SIGSTOP");
        assert!(!is_runnable("12 (worker-R) S 1") && !is_runnable(""));
        let (ran, waited) = schedstat("1500000000 250000000 42\n");
        assert_eq!((ran, waited), (Duration::from_millis(1500), Duration::from_millis(250)));
        assert_eq!(schedstat(""), (Duration::ZERO, Duration::ZERO));
        assert_eq!(throttled_in("usage_usec 5\nnr_throttled 2\nthrottled_usec 7000\n"), Duration::from_millis(7));
        assert_eq!(throttled_in("nr_periods 0\nthrottled_time 7000000\n"), Duration::from_millis(7));
        assert_eq!(throttled_in("usage_usec 5\n"), Duration::ZERO);
    }

    #[test]
    fn knows_this_thread_and_no_other_one() {
        let own = std::process::id();
        assert!(read(own, own).is_some());
        assert_eq!(read(own, u32::MAX), None);
    }
}
