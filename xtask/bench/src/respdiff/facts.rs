//! Facts about the names and zones of a scene. Rules use them as words, so that a rule about empty non-terminals, for
//! example, explains nothing about other names.

use std::collections::BTreeSet;

use testkit::Parsed;
use wire::{Section, Type};

use super::grammar::{Block, Scene, absolute, is_within};
use super::upstream;

/// Facts of a scene.
pub(crate) struct Facts {
    /// Empty non-terminals of all zones: names without records that have names below them.
    non_terminals: BTreeSet<String>,
}

impl Facts {
    pub(crate) fn of(scene: &Scene) -> Facts {
        let mut non_terminals = BTreeSet::new();
        for text in scene.files.values().filter(|text| text.contains("$ORIGIN ")) {
            non_terminals.extend(non_terminals_of(&owners(text)));
        }
        for line in scene.corefile.lines().map(str::trim) {
            if let Some(zone) = line.strip_prefix("secondary ").and_then(|rest| rest.split(' ').next()) {
                let lines = upstream::zone_lines(&absolute(zone));
                let owners = lines.iter().filter_map(|line| line.split(' ').next()).map(str::to_lowercase);
                non_terminals.extend(non_terminals_of(&owners.collect()));
            }
        }
        Facts { non_terminals }
    }

    /// Returns the words for a question with its responses:
    ///
    /// - `ent`: the name, or the target of an alias in a response, is an empty non-terminal.
    /// - `one-set`: the answer section of Portolan has records of one name and type. Signatures do not count, nor DNAME
    ///   records and the aliases that they lead to.
    /// - `soa-above`: the authority section of Portolan has the SOA record of a zone whose apex is above the name.
    /// - `no-file`: an *auto* line of a server block names a zone that has the name and no file, but a zone above it
    ///   has one.
    pub(crate) fn words(&self, name: &str, blocks: &[&Block], responses: &[Parsed]) -> BTreeSet<String> {
        let mut words = BTreeSet::new();
        let targets = responses.iter().flat_map(|response| response.section(Section::Answer));
        let targets = targets
            .filter(|record| record.rtype == Type::CNAME)
            .map(|record| record.to_string().rsplit(' ').next().unwrap_or_default().to_lowercase());
        if std::iter::once(name.to_owned()).chain(targets).any(|name| self.non_terminals.contains(&name)) {
            words.insert("ent".to_owned());
        }
        if let Some(portolan) = responses.last() {
            words.extend(of_response(name, portolan).map(str::to_owned));
        }
        if blocks.iter().flat_map(|block| &block.without_file).any(|zone| is_within(name, zone)) {
            words.insert("no-file".to_owned());
        }
        words
    }
}

fn of_response(name: &str, portolan: &Parsed) -> impl Iterator<Item = &'static str> {
    let answers = portolan.section(Section::Answer);
    let below_dname = answers.iter().any(|record| record.rtype == Type::DNAME);
    let is_beside = |rtype| matches!(rtype, Type::RRSIG | Type::DNAME) || below_dname && rtype == Type::CNAME;
    let sets: BTreeSet<(String, Type)> = answers
        .iter()
        .filter(|record| !is_beside(record.rtype))
        .map(|record| (record.owner.to_string().to_lowercase(), record.rtype))
        .collect();
    let zone = portolan.section(Section::Authority).iter().find(|record| record.rtype == Type::SOA);
    let zone = zone.map(|record| record.owner.to_string().to_lowercase());
    let is_above = zone.is_some_and(|zone| zone != name && is_within(name, &zone));
    let has_one = sets.len() <= 1 && !portolan.section(Section::Answer).is_empty();
    has_one.then_some("one-set").into_iter().chain(is_above.then_some("soa-above"))
}

/// Returns the owners of a zone file of the grammar, absolute and in lower case.
fn owners(text: &str) -> BTreeSet<String> {
    let mut origin = ".".to_owned();
    let mut owners = BTreeSet::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("$ORIGIN"), Some(name)) => name.clone_into(&mut origin),
            (Some("@"), _) => _ = owners.insert(origin.to_lowercase()),
            (Some(owner), Some(_)) if !owner.starts_with('$') => {
                let name = if origin == "." { absolute(owner) } else { format!("{owner}.{origin}") };
                owners.insert(name.to_lowercase());
            }
            _ => {}
        }
    }
    owners
}

/// Returns the empty non-terminals of a zone, whose apex is the shortest owner.
fn non_terminals_of(owners: &BTreeSet<String>) -> BTreeSet<String> {
    let Some(apex) = owners.iter().min_by_key(|owner| owner.len()) else { return BTreeSet::new() };
    let parents = |owner: &str| {
        let parent = |name: &String| name.split_once('.').map(|(_, parent)| parent.to_owned());
        std::iter::successors(parent(&owner.to_owned()), parent).take_while(|name| name.len() > apex.len())
    };
    owners.iter().flat_map(|owner| parents(owner).collect::<Vec<_>>()).filter(|name| !owners.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_empty_non_terminals() {
        let text = "$TTL 60\n$ORIGIN z.test.\n@ 1 IN SOA a. b. 1 1 1 1 1\nx.Y IN A 192.0.2.1\n*.p.q 1h IN A 192.0.2.1\n\
            q 5 IN TXT \"x\"\n";
        let expected = ["p.q.z.test.", "y.z.test."].map(str::to_owned);
        assert_eq!(non_terminals_of(&owners(text)), BTreeSet::from(expected));
    }

    #[test]
    fn names_are_within_their_zone() {
        assert!(is_within("a.z.test.", "z.test.") && is_within("z.test.", "z.test.") && is_within("a.", "."));
        assert!(!is_within("az.test.", "z.test.") && !is_within("test.", "z.test."));
    }
}
