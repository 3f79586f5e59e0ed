//! Go's template language, as far as Corefiles need it: fields, functions, pipelines, variables, `if`, `with`, `range`,
//! nested templates (`define`, `template`, `block`), comments and trimming. Complex numbers are missing, and so is
//! `call`, because no value here is callable.
//!
//! Size, depth and number of steps are limited. `fault` has the limits.

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

/// Parsed template.
#[derive(Debug)]
pub(crate) struct Template {
    templates: parse::Templates,
}

impl Template {
    /// Parses a template called `name`.
    ///
    /// # Errors
    /// The first error, with its byte offset.
    pub(crate) fn read(name: &str, text: &str) -> Result<Template, (usize, Fault)> {
        parse::parse(name, text).map(|templates| Template { templates })
    }

    /// Returns the names of the fields and methods that the template reads from its data, in order. Templates that it
    /// defines are left out, because they can be given other data.
    pub(crate) fn root_fields(&self) -> Vec<&str> {
        fields::of_root(&self.templates.root)
    }

    /// Executes the template on `data` and returns its output.
    ///
    /// # Errors
    /// The error that stopped the execution.
    pub(crate) fn run(&self, data: &dyn Data) -> Result<String, RunError> {
        eval::run(&self.templates, data)
    }
}
