//! Expressions in the syntax of the Go module expr: conditions and values computed from the names of an
//! [`Environment`].
//!
//! The language has comparisons, arithmetic, texts, lists, `?:`, `;`, comments and functions.
//! `incidr(ADDRESS, NETWORK)` is an addition of CoreDNS. Types are checked when an expression is parsed. Predicates
//! (`filter(list, # > 1)`), `let`, `if` and maps are supported, times are not. Loops go over lists only, and the number
//! of steps is bounded, so every evaluation terminates soon.

mod each;
mod environment;
mod error;
mod evaluate;
mod functions;
mod indexing;
mod json;
mod lex;
mod local_names;
mod parse;
mod scopes;
#[cfg(test)]
mod scopes_tests;
mod signatures;
#[cfg(test)]
mod tests;
mod types;

use crate::ParseError;
use crate::value::Value;
pub use environment::{Environment, Function, Parameters, Scope};
pub use error::ExpressionError;
use evaluate::Evaluation;
use parse::{Parsed, is_function};
pub use types::Type;

/// Parsed expression. `F` is [`Environment::Function`].
#[derive(Debug)]
pub struct Expression<F> {
    parsed: Parsed<F>,
}

impl<F: Clone> Expression<F> {
    /// Parses an expression that may use the names in `scope`.
    ///
    /// # Errors
    /// The first error.
    pub fn parse(text: &str, scope: &Scope<'_, F>) -> Result<Expression<F>, ParseError<ExpressionError>> {
        parse::parse(text, scope).map(|parsed| Expression { parsed })
    }
}

impl<F> Expression<F> {
    /// Returns the type of the values.
    #[must_use]
    pub const fn result(&self) -> Type {
        self.parsed.result
    }

    /// Returns the functions of the environment that the expression calls.
    pub fn functions(&self) -> &[F] {
        &self.parsed.functions
    }

    /// Returns the constants that `incidr` cannot read as a network, so that no address is in them.
    pub fn bad_networks(&self) -> &[String] {
        &self.parsed.bad_networks
    }

    /// Returns the functions of the environment that the expression calls, to complete them before the evaluation.
    pub fn functions_mut(&mut self) -> &mut [F] {
        &mut self.parsed.functions
    }

    /// Evaluates the expression. Returns `None` if it has no value, for example an index after the end of a list.
    pub fn evaluate(&self, environment: &impl Environment<Function = F>) -> Option<Value> {
        Evaluation::new(environment, &self.parsed.functions).value(&self.parsed.node)
    }

    /// Returns true if the value is the boolean `true`. No other value counts as true.
    pub fn is_true(&self, environment: &impl Environment<Function = F>) -> bool {
        self.evaluate(environment) == Some(Value::Bool(true))
    }
}

/// Returns true if this is a word of the language, so that no variable can have this name. Includes functions that
/// are not supported here.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || is_function(name)
}

/// Words of the language expr: its keywords, and its functions in version 1.17.
const RESERVED: [&str; 78] = [
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
];
