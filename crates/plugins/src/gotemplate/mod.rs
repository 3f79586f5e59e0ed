//! The template language of Go, as far as people use it in Corefiles: fields, functions, pipelines, variables, `if`, `with`,
//! `range`, comments and trimming. Templates that call each other (`define`, `template`, `block`) are not there.
//!
//! Bounded in size, depth and steps: see the constants of each part.

mod eval;
mod functions;
mod lex;
mod parse;
#[cfg(test)]
mod tests;

pub(crate) use eval::{Data, RunError};
pub(crate) use parse::Fault;

/// A template that was read.
#[derive(Debug)]
pub(crate) struct Template {
    nodes: Vec<parse::Node>,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it, and at which octet.
    pub(crate) fn read(text: &str) -> Result<Template, (usize, Fault)> {
        parse::parse(text).map(|nodes| Template { nodes })
    }

    /// Its text for some data.
    ///
    /// # Errors
    /// Why it has none.
    pub(crate) fn run(&self, data: &dyn Data) -> Result<String, RunError> {
        eval::run(&self.nodes, data)
    }
}
