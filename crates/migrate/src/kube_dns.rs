//! The kube-dns pod: its ConfigMap and the command lines of its containers.

use core::fmt;
use std::collections::BTreeMap;

use kubedns::{Dynamic, FlagError, Hosts, Program, Refused, Settings, Words};

use crate::{Migration, Note, What, rules};

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
    let words = Words::read(one_command_line(containers), Program::Pod.flags()).map_err(NotTranslated::Flags)?;
    let read = Settings::read(Program::Pod, &words, &|_| None);
    let (settings, said) = read.map_err(NotTranslated::Flags)?;
    let dynamic = Dynamic::read(data).map_err(NotTranslated::ConfigMap)?;
    let look = |text| Note { what: What::Look, place: String::new(), text, directive: None, since: None };
    let mesh = dynamic.stub_domains.contains_key("global").then(|| rules::MESH.to_owned());
    let notes = said.into_iter().chain(mesh).map(look).collect();
    Ok(Migration { text: kubedns::corefile(&settings, &dynamic, Hosts::AsWritten), notes })
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
