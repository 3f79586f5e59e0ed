//! Templates in the syntax of Go's package `text/template`: fields, functions, pipelines, variables, `if`, `with`,
//! `range`, nested templates (`define`, `template`, `block`), comments and trimming.
//!
//! Complex numbers are missing, and so is `call`, because no value here is callable. `parseInt` is an addition of
//! CoreDNS. Size, depth and number of steps are limited; `error` has the limits.

mod error;
mod execute;
mod fields;
mod functions;
#[cfg(test)]
mod go_results;
mod lex;
mod numbers;
mod output;
mod parse;
mod printf;
#[cfg(test)]
mod tests;

use crate::ParseError;
pub use error::{ExecuteError, TemplateError};
pub use execute::Data;

/// Parsed template.
#[derive(Debug)]
pub struct Template {
    templates: parse::Templates,
}

impl Template {
    /// Parses a template called `name`.
    ///
    /// # Errors
    /// The first error.
    pub fn parse(name: &str, text: &str) -> Result<Template, ParseError<TemplateError>> {
        parse::parse(name, text).map(|templates| Template { templates })
    }

    /// Returns the names of the fields and methods that the template reads from its data, in order. Templates that it
    /// defines are left out, because they can be given other data.
    #[must_use]
    pub fn root_fields(&self) -> Vec<&str> {
        fields::of_root(&self.templates.root)
    }

    /// Executes the template on `data` and returns its output.
    ///
    /// # Errors
    /// The error that stopped the execution.
    pub fn execute(&self, data: &dyn Data) -> Result<String, ExecuteError> {
        execute::run(&self.templates, data)
    }
}
