//! What a line does in its chain, as far as its text shows it: what warnings about a whole Corefile are made from.
//!
//! A directive that says nothing about itself is one that looks on. Nothing here is asked while queries are answered.

use core::net::SocketAddr;

use corefile::Span;
use wire::Name;

use super::values::zone_names;
use crate::keys::Scheme;

/// What a line does with the queries that come to it.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// The zones in which it acts; none for all that its block serves.
    pub zones: Vec<Name>,
    /// How it acts.
    pub acts: Acts,
    /// Names in its zones that it leaves alone, with all below them.
    pub except: Vec<Name>,
    /// Zones in which the names that it does not have go on.
    pub fallthrough: Vec<Name>,
    /// Whom it asks.
    pub asks: Vec<Asked>,
    /// A directive of its block whose data it uses, wherever their queries come to.
    pub uses: Option<&'static str>,
}

/// How a line acts on queries and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acts {
    /// It looks on, or changes little.
    #[default]
    Aside,
    /// It works on the answers of those below it, and is idle without any.
    OnAnswers,
    /// It gives the query another name, for those below it.
    Renames,
    /// It answers some names or types of its zones, and passes the others on.
    AnswersSome,
    /// It answers or denies all names of its zones, but those that fall through.
    AnswersAll,
}

/// A server that a line passes queries on to.
#[derive(Clone, Debug)]
pub struct Asked {
    /// How.
    pub scheme: Scheme,
    /// Where.
    pub address: SocketAddr,
    /// The word that names it.
    pub span: Span,
}

impl Role {
    /// Of a line that acts so in these zones.
    #[must_use]
    pub fn new(acts: Acts, zones: &[Name]) -> Role {
        Role { acts, zones: zones.to_vec(), ..Role::default() }
    }

    /// Of a line that answers all of its zones, but for what falls through.
    #[must_use]
    pub fn answers(zones: &[Name], fallthrough: &[Name]) -> Role {
        Role { fallthrough: fallthrough.to_vec(), ..Role::new(Acts::AnswersAll, zones) }
    }
}

/// A role, with the places that a warning may point at.
#[derive(Clone, Debug)]
pub struct PlacedRole {
    /// What the line does.
    pub role: Role,
    /// The directive.
    pub name: Span,
    /// Its property `fallthrough`, or the directive.
    pub fallthrough: Span,
    /// The words among its arguments that name zones in which it acts.
    pub named: Vec<(Span, Vec<Name>)>,
}

impl PlacedRole {
    pub(crate) fn new(role: Role, written: &corefile::Directive) -> PlacedRole {
        let mut words = written.lines().iter().filter_map(|line| line.words.first());
        let name = written.name.span;
        let fallthrough = words.find(|word| word.text == "fallthrough").map_or(name, |word| word.span);
        let zones = written.args.iter().map(|word| (word.span, zone_names(&word.text)));
        let named = zones.filter(|(_, zones)| zones.iter().any(|zone| role.zones.contains(zone))).collect();
        PlacedRole { role, name, fallthrough, named }
    }
}
