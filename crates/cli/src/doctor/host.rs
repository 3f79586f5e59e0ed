//! Facts of this machine: connection tracking and interfaces.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::path::Path;

use doctor::{Conntrack, Flow, Interface, Known, Unknown};

/// Folder with the size of the connection tracking table.
const SETTINGS: &str = "/proc/sys/net/netfilter";
/// Counters of connection tracking, one line per CPU.
const COUNTERS: &str = "/proc/net/stat/nf_conntrack";
/// Entries of connection tracking.
const ENTRIES: &str = "/proc/net/nf_conntrack";
/// Maximum number of bytes that are read of the entries: about 200,000 of them.
const ENTRIES_MAX: u64 = 32 << 20;
/// Maximum number of entries of DNS clients that are kept.
const FLOWS_MAX: usize = 10_000;

/// Reads what the kernel shows of connection tracking.
pub(super) fn conntrack() -> Known<Conntrack> {
    let number = |name: &str| fs::read_to_string(Path::new(SETTINGS).join(name)).ok()?.trim().parse().ok();
    let conntrack = Conntrack {
        entries: number("nf_conntrack_count").zip(number("nf_conntrack_max")),
        insert_failed: fs::read_to_string(COUNTERS).ok().and_then(|text| sum_of_column(&text, "insert_failed")),
        flows: File::open(ENTRIES).ok().map(|file| flows(BufReader::new(file.take(ENTRIES_MAX)))),
    };
    if conntrack == Conntrack::default() {
        return Err(Unknown::new("the kernel does not show its connection tracking here"));
    }
    Ok(conntrack)
}

/// Sums a column of a table with a heading and hexadecimal numbers.
fn sum_of_column(table: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines();
    let column = lines.next()?.split_whitespace().position(|heading| heading == name)?;
    let value = |line: &str| u64::from_str_radix(line.split_whitespace().nth(column)?, 16).ok();
    Some(lines.filter_map(value).sum())
}

fn flows(entries: impl BufRead) -> Vec<Flow> {
    let lines = entries.lines().map_while(Result::ok);
    lines.filter_map(|line| flow(&line)).take(FLOWS_MAX).collect()
}

/// Parses an entry of UDP to port 53: the addresses of the packets, and then those of their replies.
fn flow(line: &str) -> Option<Flow> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "udp").skip(1);
    let mut value = |name: &str| words.by_ref().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let (client, target) = (value("src")?, value("dst")?);
    if value("dport")? != "53" {
        return None;
    }
    let replica = value("src")?;
    let [client, target, replica] = [client, target, replica].map(|text| text.parse::<IpAddr>().ok());
    Some(Flow { client: client?, target: target?, replica: replica? })
}

/// Lists the network interfaces with their addresses.
pub(super) fn interfaces() -> Known<Vec<Interface>> {
    let listed = if_addrs::get_if_addrs();
    let listed = listed.map_err(|error| Unknown::new(format!("interfaces: {}", host::errors::describe(&error))))?;
    let mut interfaces: Vec<Interface> = Vec::new();
    for address in listed {
        let ip = address.ip();
        match interfaces.iter_mut().find(|interface| interface.name == address.name) {
            Some(interface) => interface.addresses.push(ip),
            None => interfaces.push(Interface { name: address.name, addresses: vec![ip] }),
        }
    }
    Ok(interfaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_a_column_over_all_cpus() {
        let table =
            "entries  clashres insert_failed drop\n00000010 00000000 0000000a 00000000\n00000010 0 00000006 0\n";
        assert_eq!((sum_of_column(table, "insert_failed"), sum_of_column(table, "more")), (Some(16), None));
    }

    #[test]
    fn reads_entries_of_queries() {
        let query = "ipv4     2 udp      17 29 src=10.244.1.7 dst=10.96.0.10 sport=4711 dport=53 [UNREPLIED] \
                     src=10.244.2.2 dst=10.244.1.7 sport=53 dport=4711 mark=0 use=2";
        let [client, target, replica] = ["10.244.1.7", "10.96.0.10", "10.244.2.2"].map(|ip| ip.parse().unwrap());
        assert_eq!(flow(query), Some(Flow { client, target, replica }));
        for line in ["", "udp", &query.replace("dport=53 ", "dport=123 "), &query.replace("udp", "tcp"), &query[..60]] {
            assert_eq!(flow(line), None, "{line}");
        }
    }

    #[test]
    fn lists_the_loopback_interface() {
        let interfaces = interfaces().unwrap();
        assert!(interfaces.iter().any(|interface| interface.addresses.iter().any(IpAddr::is_loopback)));
    }
}
