//! Memory, CPU and sockets of the process, and the limits of its cgroup (versions 1 and 2).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Mount point of cgroups.
const CGROUPS: &str = "/sys/fs/cgroup";
/// Memory limits from here on mean no limit: version 1 writes a number in the range of 64 bits then.
const NO_LIMIT: u64 = 1 << 60;

/// Limits of the cgroup and those above it: the lowest counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CgroupLimits {
    /// Memory in bytes.
    pub(super) memory: Option<u64>,
    /// CPUs.
    pub(super) cpus: Option<f64>,
}

/// Periods of the CPU limit so far, and those in which the process was throttled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Throttling {
    pub(super) periods: u64,
    pub(super) throttled: u64,
}

/// Returns the limits of this process.
pub(super) fn limits() -> CgroupLimits {
    let own = read("/proc/self/cgroup").unwrap_or_default();
    limits_in(Path::new(CGROUPS), &own)
}

/// Returns how often this process was throttled; `None` without a CPU limit.
pub(super) fn throttling() -> Option<Throttling> {
    let own = read("/proc/self/cgroup")?;
    let folders = folders(Path::new(CGROUPS), &own, "cpu");
    folders.iter().find_map(|folder| throttling_of(&read(folder.join("cpu.stat"))?))
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
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

fn limits_in(root: &Path, own: &str) -> CgroupLimits {
    let memory = folders(root, own, "memory").into_iter().filter_map(|folder| {
        let text = read(folder.join("memory.max")).or_else(|| read(folder.join("memory.limit_in_bytes")))?;
        text.trim().parse().ok().filter(|limit| *limit < NO_LIMIT)
    });
    let cpus = folders(root, own, "cpu").into_iter().filter_map(|folder| {
        let text = read(folder.join("cpu.max")).or_else(|| {
            let quota = read(folder.join("cpu.cfs_quota_us"))?;
            Some(format!("{} {}", quota.trim(), read(folder.join("cpu.cfs_period_us"))?.trim()))
        })?;
        cpus_of(&text)
    });
    CgroupLimits { memory: memory.min(), cpus: cpus.min_by(f64::total_cmp) }
}

/// Parses `QUOTA PERIOD`, where the quota is `max` or negative without a limit.
fn cpus_of(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn throttling_of(stat: &str) -> Option<Throttling> {
    let value = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    let found = Throttling { periods: value("nr_periods ")?, throttled: value("nr_throttled ")? };
    (found.periods > 0).then_some(found)
}

/// Returns the number of datagrams that the kernel dropped because the buffer of one of our sockets was full.
pub(super) fn dropped_datagrams() -> Option<u64> {
    let own = own_sockets()?;
    let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"].map(|path| read(path).unwrap_or_default());
    Some(tables.iter().map(|table| drops_in(table, &own)).sum())
}

/// Inode numbers of the sockets of this process.
fn own_sockets() -> Option<HashSet<String>> {
    let links = fs::read_dir("/proc/self/fd").ok()?.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let inode = |link: PathBuf| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned());
    Some(links.filter_map(inode).collect())
}

/// Sums the last column of the lines of our sockets; column 10 has the inode.
fn drops_in(table: &str, own: &HashSet<String>) -> u64 {
    let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let ours = lines.filter(|words| words.get(9).is_some_and(|inode| own.contains(*inode)));
    ours.filter_map(|words| words.last()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
    }

    fn root(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("portolan-cgroup-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        root
    }

    #[test]
    fn reads_the_lowest_limit_of_version_2() {
        let root = root("two");
        write(
            &root,
            &[
                ("pods/one/memory.max", "max\n"),
                ("pods/memory.max", "178257920\n"),
                ("pods/one/cpu.max", "50000 100000\n"),
            ],
        );
        let limits = limits_in(&root, "0::/pods/one\n");
        assert_eq!(limits, CgroupLimits { memory: Some(170 << 20), cpus: Some(0.5) });
        // In a container, the path of the host does not exist, and the root has the limits.
        write(&root, &[("memory.max", "1048576\n"), ("cpu.max", "max 100000\n")]);
        assert_eq!(limits_in(&root, "0::/of/the/host\n"), CgroupLimits { memory: Some(1 << 20), cpus: None });
        fs::remove_dir_all(root).expect("a folder");
    }

    #[test]
    fn reads_the_limits_of_version_1() {
        let root = root("one");
        let files = [
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/pod/memory.limit_in_bytes", "1048576\n"),
            ("cpu/pod/cpu.cfs_quota_us", "-1\n"),
            ("cpu/pod/cpu.cfs_period_us", "100000\n"),
            ("cpu/cpu.cfs_quota_us", "200000\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
        ];
        write(&root, &files);
        let limits = limits_in(&root, "4:memory:/pod\n3:cpu,cpuacct:/pod\n");
        assert_eq!(limits, CgroupLimits { memory: Some(1 << 20), cpus: Some(2.0) });
        fs::remove_dir_all(root).expect("a folder");
    }

    #[test]
    fn knows_nothing_without_cgroups() {
        for own in ["", "nonsense", "0::", "::::"] {
            assert_eq!(limits_in(Path::new("/nonexistent"), own), CgroupLimits::default(), "{own}");
        }
        let stat = "usage_usec 5\nnr_periods 40\nnr_throttled 7\n";
        assert_eq!(throttling_of(stat), Some(Throttling { periods: 40, throttled: 7 }));
        assert_eq!(throttling_of("nr_periods 0\nnr_throttled 0\n"), None);
    }

    #[test]
    fn counts_drops_of_own_sockets_only() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
            \x20 1: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 111 2 0 5\n\
            \x20 2: 00000000:0036 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 222 2 0 7\n";
        let own = HashSet::from(["111".to_owned()]);
        assert_eq!((drops_in(table, &own), drops_in("", &own)), (5, 0));
    }
}
