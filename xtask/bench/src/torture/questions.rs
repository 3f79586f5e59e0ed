//! Questions of the clients.

use std::sync::LazyLock;

use specification::record::{Question, Type};

use super::cluster::{PLACES, Place};
use super::zone;
use crate::random::Random;

/// Names of each place for a Service.
static NAMES: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| Place::all().map(Place::names).collect());
/// Names in the zone of the upstream.
static OUTSIDE: LazyLock<Vec<String>> = LazyLock::new(zone::names);

/// Source of the data in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Objects of these places.
    Cluster(Vec<Place>),
    Upstream,
}

/// Question, with the source of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) source: Source,
}

/// Returns a random question.
pub(crate) fn random(random: &mut Random) -> Asked {
    if random.percent(30) {
        let name = OUTSIDE[random.below(OUTSIDE.len())].clone();
        let qtype = random.pick(&[Type::A, Type::A, Type::Aaaa, Type::Txt]);
        return Asked { question: Question { name, qtype }, source: Source::Upstream };
    }
    let place = Place(random.below(PLACES));
    let names = &NAMES[place.0];
    let name = names[random.below(names.len())].clone();
    let qtype = if name.ends_with(".arpa.") {
        random.pick(&[Type::Ptr, Type::Ptr, Type::Ptr, Type::Ptr, Type::Txt])
    } else {
        random.pick(&[Type::A, Type::A, Type::A, Type::Aaaa, Type::Aaaa, Type::Srv, Type::Srv, Type::Txt])
    };
    of_place(place, name, qtype)
}

/// Returns all questions of the usual types for all names of the cluster.
pub(crate) fn all_of_cluster() -> Vec<Asked> {
    let mut all = Vec::new();
    for place in Place::all() {
        let mut names = place.names();
        names.sort();
        names.dedup();
        for name in names {
            let types: &[Type] =
                if name.ends_with(".arpa.") { &[Type::Ptr] } else { &[Type::A, Type::Aaaa, Type::Srv] };
            all.extend(types.iter().map(|qtype| of_place(place, name.clone(), *qtype)));
        }
    }
    all
}

fn of_place(place: Place, name: String, qtype: Type) -> Asked {
    let places = std::iter::once(place).chain(place.target()).collect();
    Asked { question: Question { name, qtype }, source: Source::Cluster(places) }
}
