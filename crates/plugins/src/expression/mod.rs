//! The language of conditions in `view` and `template`: what is true of a query, as in the language of the Go module expr.
//!
//! There are comparisons, arithmetic, texts, lists, `?:` and functions; what kinds of values go together is checked when an
//! expression is read. Closures, `let` and maps are not there. An expression has no loops, so running it ends.

mod fault;
mod lex;
mod parse;
mod run;
mod sort;
#[cfg(test)]
mod tests;

use engine::{Label, Labels, Query};

use crate::value::Value;
pub(crate) use fault::Fault;
use parse::{Node, Parser, is_function};
use run::Run;
pub(crate) use sort::Sort;

/// The names that an expression may use besides the functions of the language.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scope<'a> {
    /// Variables with the sorts of their values.
    pub(crate) variables: &'a [(&'a str, Sort)],
    /// Whether `group(NAME|INDEX)` reads the groups of a regular expression.
    pub(crate) has_groups: bool,
}

/// The values behind a [`Scope`] for one query.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    /// The value of a variable.
    pub(crate) variable: &'a dyn Fn(&str) -> Value,
    /// The text of a group, by its index or its name.
    pub(crate) group: &'a dyn Fn(&Value) -> String,
}

impl Values<'_> {
    /// The values of the empty scope.
    pub(crate) const NONE: Values<'static> = Values { variable: &|_| Value::Missing, group: &|_| String::new() };
}

/// An expression that was read.
#[derive(Debug)]
pub(crate) struct Expression {
    node: Node,
    /// The sort of its values.
    pub(crate) sort: Sort,
    /// The labels that it reads, by name.
    label_names: Vec<String>,
    labels: Vec<Label>,
}

impl Expression {
    /// Reads an expression in which the names of `scope` may stand.
    ///
    /// # Errors
    /// What is wrong with it, and at which octet.
    pub(crate) fn read(text: &str, scope: Scope<'_>) -> Result<Expression, (usize, Fault)> {
        let ((node, sort), label_names) = Parser::new(text, scope)?.read()?;
        Ok(Expression { node, sort, label_names, labels: Vec::new() })
    }

    /// Finds the labels that it reads.
    pub(crate) fn bind(&mut self, labels: &Labels) {
        self.labels = self.label_names.iter().map(|name| labels.label(name)).collect();
    }

    /// Its value for a query; nothing where it has none, such as behind the end of a list.
    pub(crate) fn value(&self, query: &Query, values: Values<'_>) -> Option<Value> {
        Run { query, labels: &self.labels, values }.value(&self.node)
    }

    /// Whether it is true of a query, and not only something that counts as true.
    pub(crate) fn holds(&self, query: &Query, values: Values<'_>) -> bool {
        self.value(query, values) == Some(Value::Flag(true))
    }
}

/// Reports whether the language has this word, so that no variable can have it. Functions of the language that are not
/// supported here are among them.
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
