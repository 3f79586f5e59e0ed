//! Migration of the kube-dns pod: its ConfigMap and the command lines of its containers.

use std::collections::BTreeMap;

use crate::kube_dns::{
    CommandLine, ConfigMapError, ConfigMapSettings, FlagError, HostNames, Program, Settings, Warning,
};

use crate::migrate::{Migration, Note, NoteKind, rules};

/// dnsmasq arguments that do not affect answers: process management, source ports, logging, and exceptions from
/// features that do not exist here.
const WITHOUT_EFFECT_ON_ANSWERS: &[&str] = &[
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

/// Reason why a pod cannot be migrated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PodError {
    /// Invalid command line.
    #[error("{0}")]
    Flags(#[source] FlagError),
    /// Invalid ConfigMap. kube-dns would continue with the previous one.
    #[error("invalid ConfigMap: {0}")]
    ConfigMap(#[source] ConfigMapError),
}

/// Returns the Corefile for the `data` of the ConfigMap and the arguments of each container.
///
/// # Errors
/// Fails if the ConfigMap or a command line is invalid.
pub fn migrate_pod(data: &BTreeMap<String, String>, containers: &[Vec<String>]) -> Result<Migration, PodError> {
    let line = one_command_line(containers);
    let program = if is_without_cluster(data, &line) { Program::Nanny } else { Program::Pod };
    let words = CommandLine::parse(line, program.flags()).map_err(PodError::Flags)?;
    let read = Settings::read(program, &words, &|_| None);
    let (settings, said) = read.map_err(PodError::Flags)?;
    let config_map = ConfigMapSettings::parse(data).map_err(PodError::ConfigMap)?;
    let note = |kind, text| Note { kind, place: String::new(), text, directive: None, since: None };
    let mesh = config_map.stub_domains.contains_key("global").then(|| note(NoteKind::Review, rules::MESH.to_owned()));
    let notes = said.iter().map(|warning| note(kind_of(warning), warning.to_string())).chain(mesh).collect();
    Ok(Migration { text: crate::kube_dns::corefile(&settings, &config_map, HostNames::Unresolved), notes })
}

/// Returns true if the pod is a dnsmasq without kube-dns.
fn is_without_cluster(data: &BTreeMap<String, String>, line: &[String]) -> bool {
    let is_behind = |word: &String| word.contains(BEHIND_DNSMASQ);
    data.is_empty() && line.first().is_some_and(|word| word == "--") && !line.iter().any(is_behind)
}

/// Server argument with which dnsmasq forwards to kube-dns in the stock pod.
const BEHIND_DNSMASQ: &str = "127.0.0.1#10053";

/// Classifies a warning. Flags of the pod without effect have a replacement, so they are dropped. An argument of
/// dnsmasq is lost if it affected answers.
fn kind_of(warning: &Warning) -> NoteKind {
    match warning {
        Warning::Differs(..) => NoteKind::Review,
        Warning::IgnoredFlags(..) => NoteKind::Dropped,
        Warning::IgnoredArgument(name, _) | Warning::UnknownArgument(name) => {
            if WITHOUT_EFFECT_ON_ANSWERS.contains(&name.as_str()) { NoteKind::Dropped } else { NoteKind::Lost }
        }
    }
}

/// Joins the flags of all containers, followed by `--` and the arguments of dnsmasq.
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

    /// Returns the notes for a command line.
    fn notes(words: &str) -> Vec<String> {
        let words = words.split_whitespace().map(str::to_owned).collect();
        let notes = migrate_pod(&BTreeMap::new(), &[words]).expect("a command line").notes;
        notes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arguments_that_affected_answers_are_lost_and_others_dropped() {
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
    fn the_second_of_two_hosts_files_is_lost() {
        let notes = notes("-- --addn-hosts=/a --addn-hosts=/b --cache-size=9");
        let words: Vec<&str> = notes.iter().filter_map(|note| note.split(':').next()).collect();
        assert_eq!(words, ["look", "lost"], "{notes:?}");
    }
}
