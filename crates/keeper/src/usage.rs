//! State of a thread according to the kernel: `/proc`, and the CPU statistics of its control group.

use std::fs::read_to_string;
use std::path::Path;
use std::time::Duration;

use crate::watchdog::{State, Usage};

/// Mount point of the control groups.
const CGROUPS: &str = "/sys/fs/cgroup";
/// Folder of the controller in control groups of version 1.
const CPU_V1: &str = "/sys/fs/cgroup/cpu";

/// Reads the usage of a thread. Returns `None` if it does not exist.
pub(crate) fn read(process: u32, thread: u32) -> Option<Usage> {
    let folder = format!("/proc/{process}/task/{thread}");
    let stat = read_to_string(format!("{folder}/stat")).ok()?;
    // A kernel without these statistics has no such file.
    let times = read_to_string(format!("{folder}/schedstat")).unwrap_or_default();
    let (ran, waited) = schedstat(&times);
    Some(Usage { ran, waited, throttled: throttled(), state: state(&stat) })
}

/// Returns the state in `/proc/PID/task/TID/stat`. The name before it may contain anything.
fn state(stat: &str) -> State {
    match stat.rsplit(") ").next().and_then(|rest| rest.chars().next()) {
        Some('R') => State::Runnable,
        Some('T') => State::Stopped,
        Some('t') => State::Traced,
        _ => State::Waiting,
    }
}

/// Returns the CPU time and the time on the run queue, in nanoseconds in the file.
fn schedstat(text: &str) -> (Duration, Duration) {
    let mut fields = text.split_whitespace().map(|field| Duration::from_nanos(field.parse().unwrap_or(0)));
    (fields.next().unwrap_or_default(), fields.next().unwrap_or_default())
}

/// Returns the longest time that this control group or one above it was throttled.
fn throttled() -> Duration {
    let own = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let (v2, v1) = groups(&own);
    let folders = [Path::new(CGROUPS).join(v2), Path::new(CPU_V1).join(v1)];
    let files = folders.iter().flat_map(|folder| {
        folder.ancestors().take_while(|folder| folder.starts_with(CGROUPS)).map(|folder| folder.join("cpu.stat"))
    });
    let texts = files.filter_map(|file| read_to_string(file).ok());
    texts.map(|text| throttled_in(&text)).max().unwrap_or_default()
}

/// Returns the names of the group of version 2, and of the group for CPU time of version 1, in `/proc/self/cgroup`.
/// They are relative, and empty for the root, which is that of the container in most containers.
fn groups(text: &str) -> (&str, &str) {
    let find = |is_it: &dyn Fn(&str) -> bool| {
        text.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            is_it(controllers).then(|| path.trim_start_matches('/'))
        })
    };
    let v1 = find(&|controllers| controllers.split(',').any(|controller| controller == "cpu"));
    (find(&str::is_empty).unwrap_or_default(), v1.unwrap_or_default())
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
        for (text, expected) in [
            ("12 (a) b) R 1 12 12", State::Runnable),
            ("12 (worker-R) S 1", State::Waiting),
            ("12 (a) D 1", State::Waiting),
            ("12 (a) T 1", State::Stopped),
            ("12 (a) t 1", State::Traced),
            ("", State::Waiting),
        ] {
            assert_eq!(state(text), expected, "{text}");
        }
        assert_eq!(groups("4:memory:/m\n2:cpu,cpuacct:/kube/pod\n0::/unified/pod\n"), ("unified/pod", "kube/pod"));
        assert_eq!(groups("0::/\n"), ("", ""));
        assert_eq!(groups(""), ("", ""));
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
