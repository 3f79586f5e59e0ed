//! Names that an expression can use in addition to the functions of the language: their types, which the parser checks,
//! and their values, which an [`Environment`] supplies during the evaluation.

use core::net::IpAddr;

use super::types::Type;
use crate::value::Value;

/// Names that an expression may use. `F` is [`Environment::Function`].
pub struct Scope<'a, F> {
    /// Variables with the types of their values.
    pub variables: &'a [(&'a str, Type)],
    /// Functions. They take precedence over those of the language with the same name.
    pub functions: &'a [&'a Function<F>],
}

/// Function that an environment adds to the language.
#[derive(Debug)]
pub struct Function<F> {
    /// Name in expressions.
    pub name: &'static str,
    /// Parameters.
    pub parameters: Parameters<F>,
    /// Type of its values.
    pub result: Type,
}

/// Parameters of a [`Function`], and the identity of the function for [`Environment::call`].
#[derive(Debug)]
pub enum Parameters<F> {
    /// Values of these types.
    Values(&'static [Type], F),
    /// One text that is a constant. The parser passes it to `bind`, so that it is not looked up in every evaluation.
    Constant {
        /// Description of the text in error messages, such as `a label name`.
        description: &'static str,
        /// Returns the function for this text.
        bind: fn(&str) -> F,
    },
}

/// Values of the names in a [`Scope`], for one evaluation.
pub trait Environment {
    /// Identity of a function in the scope.
    type Function;

    /// Returns the value of a variable in the scope.
    fn variable(&self, name: &str) -> Value;

    /// Calls a function in the scope. Returns `None` if the expression has no value.
    fn call(&self, function: &Self::Function, args: &[Value]) -> Option<Value>;

    /// Returns the result of a function without parameters as an IP address, if it is one. `incidr` uses it to test an
    /// address without formatting and parsing it.
    fn address(&self, function: &Self::Function) -> Option<IpAddr> {
        let _ = function;
        None
    }
}

/// Environment without names.
impl Environment for () {
    type Function = core::convert::Infallible;

    fn variable(&self, _name: &str) -> Value {
        Value::Nil
    }

    fn call(&self, function: &Self::Function, _args: &[Value]) -> Option<Value> {
        match *function {}
    }
}
