//! Role of a line in its chain, as far as the Corefile shows it: the basis of warnings about a whole Corefile.
//!
//! A directive without a declared role is a passive observer. Roles have no effect on queries.

use core::net::SocketAddr;

use corefile::Span;
use wire::Name;

use crate::zone_set::ZoneSet;

use super::values::zone_names;
use engine::Scheme;

/// Effect of a line on the queries that reach it.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// Zones in which it acts; empty for all zones of its block.
    pub zones: Vec<Name>,
    /// Effect.
    pub effect: Effect,
    /// Names in its zones that it ignores, including all subdomains.
    pub except: Vec<Name>,
    /// Zones in which names that it denies continue with the next step.
    pub fallthrough: Vec<Name>,
    /// Upstreams that it queries.
    pub asks: Vec<QueriedUpstream>,
    /// True if the lines of the directive are one set of zones, of which the longest match answers. Then a line for a
    /// zone does not hide another one for a zone below.
    pub longest_zone: bool,
    /// Directive of the same block whose data it uses, even for queries that reach another block.
    pub uses: Option<&'static str>,
}

/// Effect on queries and responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// Observes only, or changes little.
    #[default]
    Aside,
    /// Processes the responses of the steps below, and has no effect without them.
    OnAnswers,
    /// Changes the name for the steps below.
    Renames,
    /// Answers some names or types of its zones, and passes the others on.
    AnswersSome,
    /// Answers or denies all names of its zones, except for those that fall through.
    AnswersAll,
}

/// Upstream that a line forwards queries to.
#[derive(Clone, Debug)]
pub struct QueriedUpstream {
    /// Transport.
    pub scheme: Scheme,
    /// Address.
    pub address: SocketAddr,
    /// Position of the word that names it.
    pub span: Span,
}

impl Role {
    /// Returns the role of a line with this effect in these zones.
    #[must_use]
    pub fn new(effect: Effect, zones: &[Name]) -> Role {
        Role { effect, zones: zones.to_vec(), ..Role::default() }
    }

    /// Returns the role of a line that answers all names of its zones, except for those that fall through.
    #[must_use]
    pub fn answers(zones: &[Name], fallthrough: &[Name]) -> Role {
        Role { fallthrough: fallthrough.to_vec(), ..Role::new(Effect::AnswersAll, zones) }
    }
}

/// Role with the source positions for warnings.
#[derive(Clone, Debug)]
pub struct PlacedRole {
    /// Role.
    pub role: Role,
    /// Position of the directive's name.
    pub name: Span,
    /// Position of the property `fallthrough`; that of the name if absent.
    pub fallthrough: Span,
    /// Positions of the arguments that name zones in which it acts, with these zones.
    pub named: Vec<(Span, Vec<Name>)>,
}

impl PlacedRole {
    pub(crate) fn new(role: Role, written: &corefile::Directive) -> PlacedRole {
        let mut words = written.lines().iter().filter_map(|line| line.words.first());
        let name = written.name.span;
        let fallthrough = words.find(|word| word.text == "fallthrough").map_or(name, |word| word.span);
        let zones = written.args.iter().map(|word| (word.span, zone_names(&word.text)));
        let acts_in: ZoneSet = role.zones.iter().cloned().collect();
        let named = zones.filter(|(_, zones)| zones.iter().any(|zone| acts_in.has(zone))).collect();
        PlacedRole { role, name, fallthrough, named }
    }
}
