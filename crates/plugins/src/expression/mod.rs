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
use parse::{Node, Parser};
use run::Run;

/// An expression that was read.
#[derive(Debug)]
pub(crate) struct Expression {
    node: Node,
    /// The labels that it reads, by name.
    label_names: Vec<String>,
    labels: Vec<Label>,
}

impl Expression {
    /// Reads an expression in which these variables may stand.
    ///
    /// # Errors
    /// What is wrong with it, and at which octet.
    pub(crate) fn read(text: &str, variables: &[&str]) -> Result<Expression, (usize, Fault)> {
        let (node, label_names) = Parser::new(text, variables)?.read()?;
        Ok(Expression { node, label_names, labels: Vec::new() })
    }

    /// Finds the labels that it reads.
    pub(crate) fn bind(&mut self, labels: &Labels) {
        self.labels = self.label_names.iter().map(|name| labels.label(name)).collect();
    }

    /// Its value for a query; nothing where it has none, such as behind the end of a list.
    pub(crate) fn value(&self, query: &Query, variables: &dyn Fn(&str) -> Value) -> Option<Value> {
        Run { query, labels: &self.labels, variables }.value(&self.node)
    }

    /// Whether it is true of a query, and not only something that counts as true.
    pub(crate) fn holds(&self, query: &Query, variables: &dyn Fn(&str) -> Value) -> bool {
        self.value(query, variables) == Some(Value::Flag(true))
    }
}
