//! Metrics of the process, with the names, types and help texts of Prometheus's Go client, so that CPU and memory
//! panels of dashboards for CoreDNS work, and the limits of its cgroup. The values are read from `/proc/self` and from
//! the cgroup on each scrape. Unavailable values are left out.

use std::fs;

use config::setup::MemoryUse;
use metrics::{Kind, Metric, Registry};

use crate::cgroup;

macro_rules! metric {
    ($name:ident, $kind:ident, $text:literal, $help:literal) => {
        static $name: Metric = Metric { name: $text, help: $help, kind: Kind::$kind, labels: &[] };
    };
}

metric!(CPU, Counter, "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.");
metric!(OPEN_FDS, Gauge, "process_open_fds", "Number of open file descriptors.");
metric!(MAX_FDS, Gauge, "process_max_fds", "Maximum number of open file descriptors.");
metric!(VIRTUAL, Gauge, "process_virtual_memory_bytes", "Virtual memory size in bytes.");
metric!(VIRTUAL_MAX, Gauge, "process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes.");
metric!(RESIDENT, Gauge, "process_resident_memory_bytes", "Resident memory size in bytes.");
metric!(START, Gauge, "process_start_time_seconds", "Start time of the process since unix epoch in seconds.");
metric!(
    RECEIVED,
    Counter,
    "process_network_receive_bytes_total",
    "Number of bytes received by the process over the network."
);
metric!(SENT, Counter, "process_network_transmit_bytes_total", "Number of bytes sent by the process over the network.");
metric!(
    MEMORY_LIMIT,
    Gauge,
    "portolan_memory_limit_bytes",
    "Memory limit of the process's cgroup; omitted without one."
);
metric!(
    CPU_PERIODS,
    Counter,
    "portolan_cpu_periods_total",
    "Periods of the CPU limit in which the process wanted to run; omitted without a limit."
);
metric!(
    CPU_THROTTLED,
    Counter,
    "portolan_cpu_throttled_periods_total",
    "Periods of the CPU limit in which the process was throttled; omitted without a limit."
);

/// Metrics of the process, for the documentation.
pub static PROCESS_METRICS: [&Metric; 12] = [
    &CPU,
    &OPEN_FDS,
    &MAX_FDS,
    &VIRTUAL,
    &VIRTUAL_MAX,
    &RESIDENT,
    &START,
    &RECEIVED,
    &SENT,
    &MEMORY_LIMIT,
    &CPU_PERIODS,
    &CPU_THROTTLED,
];

/// Clock ticks per second in `/proc`: `USER_HZ`, which is fixed in user space on Linux.
const TICKS: f64 = 100.0;

/// Adds the metrics of this process to a registry.
pub fn publish(registry: &Registry) {
    registry.gauge(&CPU, &[], cpu_time);
    registry.gauge(&OPEN_FDS, &[], || number(u64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok()?));
    registry.gauge(&MAX_FDS, &[], || limit(&read("/proc/self/limits")?, "Max open files"));
    registry.gauge(&VIRTUAL, &[], || kibibytes(&read("/proc/self/status")?, "VmSize"));
    registry.gauge(&VIRTUAL_MAX, &[], || limit(&read("/proc/self/limits")?, "Max address space"));
    registry.gauge(&RESIDENT, &[], || kibibytes(&read("/proc/self/status")?, "VmRSS"));
    let start = read("/proc/self/stat").zip(read("/proc/stat")).and_then(|(own, all)| start_time(&own, &all));
    registry.gauge(&START, &[], move || start);
    registry.gauge(&RECEIVED, &[], || ip_bytes(&read("/proc/self/net/netstat")?, "InOctets"));
    registry.gauge(&SENT, &[], || ip_bytes(&read("/proc/self/net/netstat")?, "OutOctets"));
    registry.gauge(&MEMORY_LIMIT, &[], || number(cgroup::memory_limit()?));
    registry.gauge(&CPU_PERIODS, &[], || number(cgroup::throttling()?.periods));
    registry.gauge(&CPU_THROTTLED, &[], || number(cgroup::throttling()?.throttled));
}

/// Returns the CPU time of this process in seconds.
pub fn cpu_time() -> Option<f64> {
    cpu_seconds(&read("/proc/self/stat")?)
}

/// Returns the resident memory of this process and its memory limit; `None` without a limit.
pub(crate) fn memory_use() -> Option<MemoryUse> {
    Some(MemoryUse { used: resident_bytes()?, limit: cgroup::memory_limit()? })
}

/// Returns the resident memory of this process in bytes.
pub fn resident_bytes() -> Option<u64> {
    let bytes = kibibytes(&read("/proc/self/status")?, "VmRSS")?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number of at most 52 bits")]
    let bytes = bytes as u64;
    Some(bytes)
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn number(count: u64) -> Option<f64> {
    count.to_string().parse().ok()
}

/// Returns a field of `/proc/self/stat` by its number in proc(5). The program name can contain spaces and parentheses.
fn field(stat: &str, number: usize) -> Option<f64> {
    stat.rsplit_once(") ")?.1.split(' ').nth(number.checked_sub(3)?)?.trim().parse().ok()
}

/// Returns the CPU time in user and system mode, in seconds: `utime` plus `stime`.
fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, 14)? + field(stat, 15)?) / TICKS)
}

/// Returns the start time of the process in seconds since 1970: the boot time plus `starttime`.
fn start_time(own: &str, all: &str) -> Option<f64> {
    let boot: f64 = all.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(boot + field(own, 22)? / TICKS)
}

/// Returns the value of a line such as `VmRSS:     1234 kB`, in bytes.
fn kibibytes(status: &str, name: &str) -> Option<f64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
}

/// Returns a soft limit. For `unlimited`, returns the largest 64-bit number, as the Go client does.
fn limit(limits: &str, name: &str) -> Option<f64> {
    let soft = limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?;
    if soft == "unlimited" { u64::MAX.to_string().parse().ok() } else { soft.parse().ok() }
}

/// Returns a counter of the table `IpExt`, which has its names in one line and its values in the next.
fn ip_bytes(netstat: &str, name: &str) -> Option<f64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|known| known == name)?;
    values.split(' ').nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_proc_files() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 1 2 3 4 150 50 0 0 20 0 4 0 12345 1000 200 18446744073709551615 1\n";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(start_time(stat, "cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_123.45));
        assert_eq!(kibibytes("VmRSSx:\t1 kB\nVmRSS:\t   12 kB\n", "VmRSS"), Some(12_288.0));
        let limits = "Max open files            1024                 4096                 files     \n\
            Max address space         unlimited            unlimited            bytes     \n";
        assert_eq!(limit(limits, "Max open files"), Some(1024.0));
        assert_eq!(limit(limits, "Max address space"), Some(1.844_674_407_370_955_2e19));
        let netstat = "TcpExt: A B\nTcpExt: 1 2\nIpExt: InNo InOctets OutOctets\nIpExt: 5 6 7\n";
        assert_eq!((ip_bytes(netstat, "InOctets"), ip_bytes(netstat, "OutOctets")), (Some(6.0), Some(7.0)));
        for nonsense in ["", "x", "IpExt: InOctets\n", "VmRSS: 1\n"] {
            assert_eq!((cpu_seconds(nonsense), kibibytes(nonsense, "VmRSS")), (None, None));
            assert_eq!((limit(nonsense, "Max open files"), ip_bytes(nonsense, "InOctets")), (None, None));
        }
    }
}
