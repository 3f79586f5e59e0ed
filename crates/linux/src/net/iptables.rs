//! Rules as arguments of `iptables` and `ip6tables`, with node-cache's comments, so that its scripts find them.
//!
//! A rule on the destination applies only while that address is local. If no process is left to remove the rules, they
//! lose their effect with the address, and packets take the path they would take without a cache.

use core::net::IpAddr;

use crate::net::rules::{Hook, Protocol, Rule, Side, Verdict};

/// Operation on a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Checks if the rule exists.
    Check,
    /// Inserts the rule before all others of its chain.
    Insert,
    /// Deletes the rule.
    Delete,
}

/// Returns the program and its arguments.
#[must_use]
pub fn command(action: Action, rule: &Rule) -> (&'static str, Vec<String>) {
    let (program, length) = match rule.ip {
        IpAddr::V4(_) => ("iptables", 32),
        IpAddr::V6(_) => ("ip6tables", 128),
    };
    let (table, chain) = match rule.hook {
        Hook::RawPrerouting => ("raw", "PREROUTING"),
        Hook::RawOutput => ("raw", "OUTPUT"),
        Hook::FilterInput => ("filter", "INPUT"),
        Hook::FilterOutput => ("filter", "OUTPUT"),
    };
    let action = match action {
        Action::Check => "-C",
        Action::Insert => "-I",
        Action::Delete => "-D",
    };
    let protocol = match rule.protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    };
    let (end, port) = match rule.side {
        Side::Destination => ("-d", "--dport"),
        Side::Source => ("-s", "--sport"),
    };
    let (verdict, comment) = match rule.verdict {
        Verdict::NoTrack => ("NOTRACK", "NodeLocal DNS Cache: skip conntrack"),
        Verdict::Accept => ("ACCEPT", "NodeLocal DNS Cache: allow DNS traffic"),
    };
    // `-w` waits while another program holds the lock of the tables.
    let (ip, number) = (format!("{}/{length}", rule.ip), rule.port.to_string());
    let mut words = vec!["-w", "-t", table, action, chain, "-p", protocol, end, &ip, "-m", protocol, port, &number];
    if rule.side == Side::Destination {
        words.extend(["-m", "addrtype", "--dst-type", "LOCAL"]);
    }
    words.extend(["-m", "comment", "--comment", comment, "-j", verdict]);
    (program, words.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::conntrack_bypass;

    #[test]
    fn writes_the_rules_of_an_address() {
        let written: Vec<String> = conntrack_bypass(&["169.254.20.10".parse().unwrap()], 53, 8080)
            .iter()
            .map(|rule| {
                let (program, words) = command(Action::Insert, rule);
                let (words, _) =
                    words.join(" ").split_once(" -m comment").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
                format!("{program} {words} {:?}", rule.verdict)
            })
            .collect();
        let to = "-d 169.254.20.10/32 -m";
        let from = "-s 169.254.20.10/32 -m";
        let local = "-m addrtype --dst-type LOCAL";
        assert_eq!(
            written,
            [
                format!("iptables -w -t raw -I PREROUTING -p tcp {to} tcp --dport 53 {local} NoTrack"),
                format!("iptables -w -t raw -I PREROUTING -p udp {to} udp --dport 53 {local} NoTrack"),
                format!("iptables -w -t filter -I INPUT -p tcp {to} tcp --dport 53 {local} Accept"),
                format!("iptables -w -t filter -I INPUT -p udp {to} udp --dport 53 {local} Accept"),
                format!("iptables -w -t raw -I OUTPUT -p tcp {from} tcp --sport 53 NoTrack"),
                format!("iptables -w -t raw -I OUTPUT -p udp {from} udp --sport 53 NoTrack"),
                format!("iptables -w -t filter -I OUTPUT -p tcp {from} tcp --sport 53 Accept"),
                format!("iptables -w -t filter -I OUTPUT -p udp {from} udp --sport 53 Accept"),
                format!("iptables -w -t raw -I OUTPUT -p tcp {to} tcp --dport 53 {local} NoTrack"),
                format!("iptables -w -t raw -I OUTPUT -p udp {to} udp --dport 53 {local} NoTrack"),
                format!("iptables -w -t raw -I OUTPUT -p tcp {to} tcp --dport 8080 {local} NoTrack"),
                format!("iptables -w -t raw -I OUTPUT -p tcp {from} tcp --sport 8080 NoTrack"),
            ]
        );
    }

    #[test]
    fn comments_are_one_argument_and_each_family_has_its_program() {
        let rule = Rule {
            hook: Hook::FilterInput,
            side: Side::Source,
            ip: "fd00::1".parse().unwrap(),
            port: 53,
            protocol: Protocol::Udp,
            verdict: Verdict::Accept,
        };
        let (program, words) = command(Action::Delete, &rule);
        assert_eq!(program, "ip6tables");
        assert!(words.iter().any(|word| word == "NodeLocal DNS Cache: allow DNS traffic"), "{words:?}");
        assert!(words.iter().any(|word| word == "fd00::1/128"), "{words:?}");
    }
}
