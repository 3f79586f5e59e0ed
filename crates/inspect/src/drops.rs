//! Datagrams that the kernel dropped because the process did not read them in time.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

/// Returns the number of datagrams that the kernel dropped because the buffer of one of our sockets was full.
pub(super) fn dropped_datagrams() -> Option<u64> {
    let own = own_sockets()?;
    let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
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

    #[test]
    fn counts_drops_of_own_sockets_only() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
            \x20 1: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 111 2 0 5\n\
            \x20 2: 00000000:0036 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 222 2 0 7\n";
        let own = HashSet::from(["111".to_owned()]);
        assert_eq!((drops_in(table, &own), drops_in("", &own)), (5, 0));
    }
}
