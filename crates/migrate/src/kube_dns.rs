//! The kube-dns pod: its ConfigMap and the command lines of its containers.

use core::fmt;
use std::collections::BTreeMap;

use kubedns::{Dynamic, FlagError, Hosts, Program, Refused, Settings, Words};

use crate::{Migration, Note, What, rules};

/// Arguments of dnsmasq without which answers are the same: how its process runs, by which ports it asks, what it writes,
/// and exceptions from what is not there.
const NOT_MISSED: &[&str] = &[
    "bind-dynamic",
    "bind-interfaces",
    "conntrack",
    "dhcp-leasefile",
    "dumpfile",
    "dumpmask",
    "enable-dbus",
    "enable-ubus",
    "fast-dns-retry",
    "filterwin2k",
    "group",
    "leasefile-ro",
    "log-async",
    "log-debug",
    "log-dhcp",
    "log-facility",
    "max-port",
    "max-tcp-connections",
    "min-port",
    "no-dhcp-interface",
    "no-poll",
    "pid-file",
    "port-limit",
    "query-port",
    "quiet-dhcp",
    "quiet-dhcp6",
    "quiet-ra",
    "rebind-domain-ok",
    "rebind-localhost-ok",
    "user",
];

/// Why a pod cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTranslated {
    /// A command line cannot be read.
    Flags(FlagError),
    /// The ConfigMap cannot be read; kube-dns goes on with what it had.
    ConfigMap(Refused),
}

impl fmt::Display for NotTranslated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotTranslated::Flags(error) => write!(f, "{error}"),
            NotTranslated::ConfigMap(refused) => write!(f, "the ConfigMap is refused: {refused}"),
        }
    }
}

/// The Corefile for what the ConfigMap (its `data`) and the containers (the arguments of each) say.
///
/// # Errors
/// If one of them cannot be read.
pub fn kube_dns(data: &BTreeMap<String, String>, containers: &[Vec<String>]) -> Result<Migration, NotTranslated> {
    let line = one_command_line(containers);
    let program = if is_without_cluster(data, &line) { Program::Nanny } else { Program::Pod };
    let words = Words::read(line, program.flags()).map_err(NotTranslated::Flags)?;
    let read = Settings::read(program, &words, &|_| None);
    let (settings, said) = read.map_err(NotTranslated::Flags)?;
    let dynamic = Dynamic::read(data).map_err(NotTranslated::ConfigMap)?;
    let note = |what, text| Note { what, place: String::new(), text, directive: None, since: None };
    let mesh = dynamic.stub_domains.contains_key("global").then(|| note(What::Look, rules::MESH.to_owned()));
    let notes = said.into_iter().map(|text| note(became(&text), text)).chain(mesh).collect();
    Ok(Migration { text: kubedns::corefile(&settings, &dynamic, Hosts::AsWritten), notes })
}

/// Whether it is a dnsmasq that has no kube-dns behind it.
fn is_without_cluster(data: &BTreeMap<String, String>, line: &[String]) -> bool {
    let is_behind = |word: &String| word.contains(BEHIND_DNSMASQ);
    data.is_empty() && line.first().is_some_and(|word| word == "--") && !line.iter().any(is_behind)
}

/// Where dnsmasq asks kube-dns, in the stock pod.
const BEHIND_DNSMASQ: &str = "127.0.0.1#10053";

/// What became of a flag, by what is said of it. Those of the pod that do nothing have something in their place; what
/// dnsmasq was told is lost if it did something for those who ask.
fn became(said: &str) -> What {
    let words = said.split(':').next().unwrap_or_default();
    if !words.contains("does nothing") {
        return What::Look;
    }
    let of_dnsmasq = words.strip_prefix("dnsmasq's --").and_then(|rest| rest.split(' ').next());
    match of_dnsmasq {
        Some(name) if !NOT_MISSED.contains(&name) => What::Lost,
        _ => What::Dropped,
    }
}

/// The flags of all containers, and behind them the arguments of dnsmasq.
fn one_command_line(containers: &[Vec<String>]) -> Vec<String> {
    let behind = |words: &[String]| words.iter().position(|word| word == "--");
    let (mut flags, mut dnsmasq) = (Vec::new(), Vec::new());
    for words in containers {
        let at = behind(words).unwrap_or(words.len());
        flags.extend_from_slice(&words[..at]);
        dnsmasq.extend_from_slice(words.get(at + 1..).unwrap_or_default());
    }
    if !dnsmasq.is_empty() {
        flags.push("--".to_owned());
        flags.extend(dnsmasq);
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of arguments of dnsmasq, and of flags before them.
    fn notes(words: &str) -> Vec<String> {
        let words = words.split_whitespace().map(str::to_owned).collect();
        let notes = kube_dns(&BTreeMap::new(), &[words]).expect("a command line").notes;
        notes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_did_something_is_lost_and_what_did_nothing_is_dropped() {
        for (word, wanted) in [
            ("-- --conf-file=/etc/dnsmasq.conf", "lost: dnsmasq's --conf-file "),
            ("-- --stop-dns-rebind", "lost: dnsmasq's --stop-dns-rebind "),
            ("-- -B 192.0.2.1", "lost: dnsmasq's --bogus-nxdomain "),
            ("-- --dhcp-range=10.0.0.2,10.0.0.9", "lost: dnsmasq's --dhcp-range is not known here"),
            ("-- --rev-server=10.0.0.0/9,10.0.0.1", "lost: dnsmasq's --rev-server "),
            ("-- --log-facility=/var/log/dns", "dropped: dnsmasq's --log-facility "),
            ("-- -u nobody", "dropped: dnsmasq's --user "),
            ("-- --pid-file=/x", "dropped: dnsmasq's --pid-file "),
            ("-- --min-port=1024", "dropped: dnsmasq's --min-port "),
            ("-v=2 --logtostderr", "dropped: --v, --logtostderr does nothing here"),
            ("-restartDnsmasq=true", "dropped: --restartDnsmasq "),
            ("--probe=a,127.0.0.1:53,a.example,5,ANY", "look: --probe a: "),
        ] {
            let notes = notes(word);
            assert!(notes.len() == 1 && notes[0].starts_with(wanted), "{word}: {notes:?}");
        }
    }

    #[test]
    fn of_two_files_of_hosts_the_second_one_is_lost() {
        let notes = notes("-- --addn-hosts=/a --addn-hosts=/b --cache-size=9");
        let words: Vec<&str> = notes.iter().filter_map(|note| note.split(':').next()).collect();
        assert_eq!(words, ["look", "lost"], "{notes:?}");
    }
}
