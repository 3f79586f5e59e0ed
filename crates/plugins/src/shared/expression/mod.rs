//! Expression language of `view` and `template`: conditions and values computed from a query, in the syntax of the Go
//! module expr.
//!
//! The language has comparisons, arithmetic, texts, lists, `?:` and functions. Types are checked when an expression is
//! parsed. Closures, `let` and maps are not supported. There are no loops, so every evaluation terminates.

mod fault;
mod lex;
mod parse;
mod run;
mod sort;
#[cfg(test)]
mod tests;

use engine::{Label, Labels, Query};

use crate::shared::value::Value;
pub(crate) use fault::Fault;
use parse::{Node, Parser, is_function};
use run::Run;
pub(crate) use sort::Sort;

/// Names that an expression may use in addition to the functions of the language.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scope<'a> {
    /// Variables with the types of their values.
    pub(crate) variables: &'a [(&'a str, Sort)],
    /// True if `group(NAME|INDEX)` reads the capture groups of a regular expression.
    pub(crate) has_groups: bool,
}

/// Values of the names in a [`Scope`] for one query.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    /// Returns the value of a variable.
    pub(crate) variable: &'a dyn Fn(&str) -> Value,
    /// Returns the text of a capture group, by index or name.
    pub(crate) group: &'a dyn Fn(&Value) -> String,
}

impl Values<'_> {
    /// Values for the empty scope.
    pub(crate) const NONE: Values<'static> = Values { variable: &|_| Value::Missing, group: &|_| String::new() };
}

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct Expression {
    node: Node,
    /// Type of its values.
    pub(crate) sort: Sort,
    /// Names of the labels that it reads.
    label_names: Vec<String>,
    labels: Vec<Label>,
}

impl Expression {
    /// Parses an expression that may use the names in `scope`.
    ///
    /// # Errors
    /// The byte offset of the error and its description.
    pub(crate) fn read(text: &str, scope: Scope<'_>) -> Result<Expression, (usize, Fault)> {
        let ((node, sort), label_names) = Parser::new(text, scope)?.read()?;
        Ok(Expression { node, sort, label_names, labels: Vec::new() })
    }

    /// Resolves the labels that the expression reads.
    pub(crate) fn bind(&mut self, labels: &Labels) {
        self.labels = self.label_names.iter().map(|name| labels.label(name)).collect();
    }

    /// Evaluates the expression for a query. Returns `None` if it has no value, for example an index after the end of a
    /// list.
    pub(crate) fn value(&self, query: &Query, values: Values<'_>) -> Option<Value> {
        Run { query, labels: &self.labels, values }.value(&self.node)
    }

    /// Returns true if the value for a query is the boolean `true`. No other value counts as true.
    pub(crate) fn holds(&self, query: &Query, values: Values<'_>) -> bool {
        self.value(query, values) == Some(Value::Flag(true))
    }
}

/// Returns true if this is a word of the language, so that no variable can have this name. Functions that are not
/// supported here are included.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || is_function(name)
}

/// Words of the language expr: its keywords, and its functions in version 1.17.
const RESERVED: [&str; 81] = [
    "abs",
    "all",
    "and",
    "any",
    "bitnot",
    "ceil",
    "concat",
    "contains",
    "count",
    "date",
    "duration",
    "else",
    "endsWith",
    "false",
    "filter",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "first",
    "flatten",
    "float",
    "floor",
    "fromBase64",
    "fromJSON",
    "fromPairs",
    "get",
    "group",
    "groupBy",
    "hasPrefix",
    "hasSuffix",
    "if",
    "in",
    "indexOf",
    "int",
    "join",
    "keys",
    "last",
    "lastIndexOf",
    "len",
    "let",
    "lower",
    "map",
    "matches",
    "max",
    "mean",
    "median",
    "min",
    "nil",
    "none",
    "not",
    "now",
    "one",
    "or",
    "reduce",
    "repeat",
    "replace",
    "reverse",
    "round",
    "sort",
    "sortBy",
    "split",
    "splitAfter",
    "startsWith",
    "string",
    "sum",
    "take",
    "timezone",
    "toBase64",
    "toJSON",
    "toPairs",
    "trim",
    "trimPrefix",
    "trimSuffix",
    "true",
    "type",
    "uniq",
    "upper",
    "values",
    "incidr",
    "metadata",
];
