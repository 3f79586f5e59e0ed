//! The template language of Go, as far as people use it in Corefiles: fields, functions, pipelines, variables, `if`, `with`,
//! `range`, templates in each other (`define`, `template`, `block`), comments and trimming. Complex numbers are not there, nor
//! `call`, for which there is nothing that it could call.
//!
//! Bounded in size, depth and steps: see the constants of each part.

#[cfg(test)]
mod as_in_go;
mod eval;
mod fault;
mod fields;
mod functions;
mod lex;
mod numbers;
mod parse;
mod printf;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use eval::Data;
pub(crate) use fault::{Fault, RunError};

/// A template that was read.
#[derive(Debug)]
pub(crate) struct Template {
    templates: parse::Templates,
}

impl Template {
    /// Reads a template that has this name.
    ///
    /// # Errors
    /// What is wrong with it, and at which octet.
    pub(crate) fn read(name: &str, text: &str) -> Result<Template, (usize, Fault)> {
        parse::parse(name, text).map(|templates| Template { templates })
    }

    /// Returns the names of the fields and methods that the template reads from its data, in order. Templates that it defines are
    /// left out, because they can be given other data.
    pub(crate) fn root_fields(&self) -> Vec<&str> {
        fields::of_root(&self.templates.root)
    }

    /// Its text for some data.
    ///
    /// # Errors
    /// Why it has none.
    pub(crate) fn run(&self, data: &dyn Data) -> Result<String, RunError> {
        eval::run(&self.templates, data)
    }
}
