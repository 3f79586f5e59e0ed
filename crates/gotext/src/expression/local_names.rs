//! Local names of an expression, and the functions that introduce some.

use super::types::Type;

/// Function with a predicate, which it evaluates for each element of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Each {
    All,
    Any,
    One,
    None,
    Filter,
    Map,
    Count,
    Sum,
    Find,
    FindIndex,
    FindLast,
    FindLastIndex,
    GroupBy,
    SortBy,
    Reduce,
}

impl Each {
    /// Returns the function with this name.
    pub(super) fn of(name: &str) -> Option<Each> {
        Some(match name {
            "all" => Each::All,
            "any" => Each::Any,
            "one" => Each::One,
            "none" => Each::None,
            "filter" => Each::Filter,
            "map" => Each::Map,
            "count" => Each::Count,
            "sum" => Each::Sum,
            "find" => Each::Find,
            "findIndex" => Each::FindIndex,
            "findLast" => Each::FindLast,
            "findLastIndex" => Each::FindLastIndex,
            "groupBy" => Each::GroupBy,
            "sortBy" => Each::SortBy,
            "reduce" => Each::Reduce,
            _ => return None,
        })
    }

    /// Returns true if the predicate is a condition.
    pub(super) const fn is_condition(self) -> bool {
        !matches!(self, Each::Map | Each::Sum | Each::GroupBy | Each::SortBy | Each::Reduce)
    }

    pub(super) const fn result(self) -> Type {
        match self {
            Each::All | Each::Any | Each::One | Each::None => Type::Bool,
            Each::Filter | Each::Map | Each::SortBy => Type::List,
            Each::Count => Type::Integer,
            _ => Type::Any,
        }
    }
}

/// Local name and the type of its value. The values are on a stack in the same order while the expression is evaluated.
pub(super) struct Local {
    pub(super) name: String,
    pub(super) result: Type,
}
