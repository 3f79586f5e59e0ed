//! Limits of the process's cgroup and how often it was throttled, for cgroups of version 1 and 2. The lowest limit of
//! the cgroup and those above it counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use net::{CpuLimit, CurrentCpuLimit};

/// Mount point of cgroups.
const CGROUPS: &str = "/sys/fs/cgroup";
/// Time between two looks at the CPU limit. A resize of a Pod takes seconds as well.
const RESIZE_INTERVAL: Duration = Duration::from_secs(5);
/// Smallest value that means no memory limit: version 1 has a number in the range of 64 bits for it.
const NO_LIMIT: u64 = 1 << 60;

/// Periods of the CPU limit so far, and those in which the process was throttled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which the process ran.
    pub periods: u64,
    /// Periods in which it was throttled.
    pub throttled: u64,
}

/// Returns the memory limit of this process in bytes.
pub fn memory_limit() -> Option<u64> {
    memory_limit_in(Path::new(CGROUPS), &read("/proc/self/cgroup")?)
}

/// Returns the CPU limit of this process in CPUs.
pub fn cpu_limit() -> Option<f64> {
    cpu_quota().map(cpus)
}

/// Returns the CPU limit of this process as CPU time in each period.
pub fn cpu_quota() -> Option<CpuLimit> {
    cpu_quota_in(Path::new(CGROUPS), &read("/proc/self/cgroup")?)
}

/// Passes the CPU limit on each time that it may have changed: Kubernetes resizes Pods in place.
pub async fn follow_cpu_limit(limit: Arc<CurrentCpuLimit>) {
    loop {
        tokio::time::sleep(RESIZE_INTERVAL).await;
        limit.set(cpu_quota());
    }
}

/// Returns how often this process was throttled; `None` without a CPU limit.
pub fn throttling() -> Option<Throttling> {
    throttling_in(Path::new(CGROUPS), &read("/proc/self/cgroup")?)
}

fn memory_limit_in(root: &Path, own: &str) -> Option<u64> {
    let limit = |folder: PathBuf| {
        let text = read(folder.join("memory.max")).or_else(|| read(folder.join("memory.limit_in_bytes")))?;
        text.trim().parse().ok().filter(|limit| *limit < NO_LIMIT)
    };
    folders(root, own, "memory").into_iter().filter_map(limit).min()
}

fn cpu_quota_in(root: &Path, own: &str) -> Option<CpuLimit> {
    let limit = |folder: PathBuf| {
        let text = read(folder.join("cpu.max")).or_else(|| {
            let quota = read(folder.join("cpu.cfs_quota_us"))?;
            Some(format!("{} {}", quota.trim(), read(folder.join("cpu.cfs_period_us"))?.trim()))
        })?;
        quota_of(&text)
    };
    let limits = folders(root, own, "cpu").into_iter().filter_map(limit);
    limits.min_by(|one, other| cpus(*one).total_cmp(&cpus(*other)))
}

/// Parses `QUOTA PERIOD` in microseconds, where the quota is `max` or negative without a limit.
fn quota_of(text: &str) -> Option<CpuLimit> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    let [quota, period] = [quota, period].map(Duration::from_micros);
    (!quota.is_zero() && !period.is_zero()).then_some(CpuLimit { quota, period })
}

fn cpus(limit: CpuLimit) -> f64 {
    limit.quota.as_secs_f64() / limit.period.as_secs_f64()
}

fn throttling_in(root: &Path, own: &str) -> Option<Throttling> {
    folders(root, own, "cpu").iter().find_map(|folder| throttling_of(&read(folder.join("cpu.stat"))?))
}

fn throttling_of(stat: &str) -> Option<Throttling> {
    let value = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    let found = Throttling { periods: value("nr_periods ")?, throttled: value("nr_throttled ")? };
    (found.periods > 0).then_some(found)
}

/// Returns the folders of a controller, from the own cgroup to the root. `own` is the text of `/proc/self/cgroup`, with
/// lines `NUMBER:CONTROLLERS:PATH`. In a container, the path may belong to the host, and the root is the own cgroup.
fn folders(root: &Path, own: &str, controller: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let base = match controllers {
            "" => root.to_owned(),
            names if names.split(',').any(|name| name == controller) => root.join(controller),
            _ => continue,
        };
        let full = base.join(path.trim_start_matches('/'));
        folders.extend(full.ancestors().take_while(|folder| folder.starts_with(&base)).map(Path::to_owned));
    }
    folders
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu_limit_in(root: &Path, own: &str) -> Option<f64> {
        cpu_quota_in(root, own).map(cpus)
    }

    /// Folder with these files, which is removed on drop.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[(&str, &str)]) -> Tree {
            let root = std::env::temp_dir().join(format!("portolan-cgroup-{name}-{}", std::process::id()));
            for (file, text) in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(path, text).expect("a file");
            }
            Tree(root)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_lowest_limit_of_version_2_counts() {
        let tree =
            Tree::new("v2", &[("memory.max", "max\n"), ("a/memory.max", "1000\n"), ("a/b/memory.max", "2000\n")]);
        assert_eq!(memory_limit_in(&tree.0, "0::/a/b\n"), Some(1000));
        assert_eq!(memory_limit_in(&tree.0, "0::/\n"), None);
    }

    #[test]
    fn reads_the_files_of_version_1() {
        let stat = "nr_periods 50\nnr_throttled 7\nthrottled_time 3\n";
        let none = format!("{}\n", i64::MAX - 4095);
        let files = [("memory/memory.limit_in_bytes", none.as_str()), ("memory/a/memory.limit_in_bytes", "4096\n")];
        let tree = Tree::new("v1", &[files[0], files[1], ("cpu/a/cpu.stat", stat)]);
        let own = "4:memory:/a\n2:cpu,cpuacct:/a\n0::/\n";
        assert_eq!(memory_limit_in(&tree.0, own), Some(4096));
        assert_eq!(throttling_in(&tree.0, own), Some(Throttling { periods: 50, throttled: 7 }));
        assert_eq!(memory_limit_in(&tree.0, "4:memory:/\n"), None);
    }

    #[test]
    fn a_path_of_the_host_falls_back_to_the_root() {
        let tree = Tree::new("host", &[("memory.max", "512\n"), ("cpu.stat", "nr_periods 0\nnr_throttled 0\n")]);
        assert_eq!(memory_limit_in(&tree.0, "0::/kubepods/pod1/x\n"), Some(512));
        assert_eq!(throttling_in(&tree.0, "0::/kubepods/pod1/x\n"), None);
    }

    #[test]
    fn reads_the_limits_of_version_2() {
        let files = [
            ("pods/one/memory.max", "max\n"),
            ("pods/memory.max", "178257920\n"),
            ("pods/one/cpu.max", "50000 100000\n"),
        ];
        let tree = Tree::new("two", &files);
        assert_eq!(memory_limit_in(&tree.0, "0::/pods/one\n"), Some(170 << 20));
        assert_eq!(cpu_limit_in(&tree.0, "0::/pods/one\n"), Some(0.5));
        let [quota, period] = [50, 100].map(Duration::from_millis);
        assert_eq!(cpu_quota_in(&tree.0, "0::/pods/one\n"), Some(CpuLimit { quota, period }));
        // In a container, the path of the host does not exist, and the root has the limits.
        let tree = Tree::new("two-host", &[("memory.max", "1048576\n"), ("cpu.max", "max 100000\n")]);
        assert_eq!(memory_limit_in(&tree.0, "0::/of/the/host\n"), Some(1 << 20));
        assert_eq!(cpu_limit_in(&tree.0, "0::/of/the/host\n"), None);
    }

    #[test]
    fn the_lowest_cpu_limit_of_version_1_counts() {
        let files = [
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/pod/memory.limit_in_bytes", "1048576\n"),
            ("cpu/pod/cpu.cfs_quota_us", "-1\n"),
            ("cpu/pod/cpu.cfs_period_us", "100000\n"),
            ("cpu/cpu.cfs_quota_us", "200000\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
        ];
        let tree = Tree::new("one", &files);
        let own = "4:memory:/pod\n3:cpu,cpuacct:/pod\n";
        assert_eq!((memory_limit_in(&tree.0, own), cpu_limit_in(&tree.0, own)), (Some(1 << 20), Some(2.0)));
    }

    #[test]
    fn knows_nothing_without_cgroups() {
        for own in ["", "nonsense", "0::", "::::"] {
            let root = Path::new("/nonexistent");
            assert_eq!((memory_limit_in(root, own), cpu_limit_in(root, own)), (None, None), "{own}");
        }
        let stat = "usage_usec 5\nnr_periods 40\nnr_throttled 7\n";
        assert_eq!(throttling_of(stat), Some(Throttling { periods: 40, throttled: 7 }));
        assert_eq!(throttling_of("nr_periods 0\nnr_throttled 0\n"), None);
    }
}
