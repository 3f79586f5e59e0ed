//! Parts of Go that configurations contain: regular expressions, templates, expressions and durations.
//!
//! Each follows its Go package: it accepts and rejects the same texts and yields the same results. The modules list the
//! deviations. The crate knows no DNS and does no I/O. Every text and every evaluation has a limit on size, nesting and
//! steps.
//!
//! # Regular expressions
//!
//! [`regexp::Regexp`] has the syntax of Go's package `regexp`.
//!
//! ```
//! use gotext::regexp::Regexp;
//!
//! let regexp = Regexp::compile(r"^(?P<pod>[a-z]+)-(\d+)\.").unwrap();
//! assert!(regexp.is_match("web-7.example.org."));
//! assert_eq!(&regexp.captures("web-7.example.org.").unwrap()[2], "7");
//!
//! let error = Regexp::compile("(a").unwrap_err();
//! assert_eq!(error.to_string(), "missing closing )");
//! ```
//!
//! # Templates
//!
//! [`template::Template`] has the syntax of Go's package `text/template`. It runs on [`template::Data`].
//!
//! ```
//! use gotext::Value;
//! use gotext::template::{Data, Template};
//!
//! struct Host;
//!
//! impl Data for Host {
//!     fn field(&self, name: &str) -> Option<Value> {
//!         (name == "Name").then(|| Value::text("web-7"))
//!     }
//!
//!     fn method(&self, _name: &str, _args: &[Value]) -> Option<Value> {
//!         None
//!     }
//! }
//!
//! let template = Template::parse("greeting", r#"{{ printf "%q has %d letters" .Name (len .Name) }}"#).unwrap();
//! assert_eq!(template.execute(&Host).unwrap(), r#""web-7" has 5 letters"#);
//! ```
//!
//! # Expressions
//!
//! [`expression::Expression`] has the syntax of the Go module expr. An [`expression::Environment`] supplies the values
//! of its names; a [`expression::Scope`] declares them, so that the parser can check types.
//!
//! ```
//! use gotext::Value;
//! use gotext::expression::{Environment, Expression, Function, Parameters, Scope, Type};
//!
//! /// Function of the environment. An enum, if there are several.
//! #[derive(Clone, Debug)]
//! struct Port;
//!
//! struct Connection {
//!     port: u16,
//! }
//!
//! impl Environment for Connection {
//!     type Function = Port;
//!
//!     fn variable(&self, _name: &str) -> Value {
//!         Value::Integer(1024)
//!     }
//!
//!     fn call(&self, _function: &Port, _args: &[Value]) -> Option<Value> {
//!         Some(Value::Integer(self.port.into()))
//!     }
//! }
//!
//! let port = Function { name: "port", parameters: Parameters::Values(&[], Port), result: Type::Integer };
//! let scope = Scope { variables: &[("first", Type::Integer)], functions: &[&port] };
//! let expression = Expression::parse("port() >= first || port() in [53, 853]", &scope).unwrap();
//! assert!(expression.is_true(&Connection { port: 53 }));
//! assert!(!expression.is_true(&Connection { port: 80 }));
//!
//! let error = Expression::parse("port() == '53'", &scope).unwrap_err();
//! assert_eq!(error.to_string(), "at byte 7: `==` cannot be applied to int and string");
//! ```
//!
//! # Durations
//!
//! ```
//! use core::time::Duration;
//! use gotext::{format_duration, parse_duration};
//!
//! assert_eq!(parse_duration("1h20m"), Ok(Duration::from_secs(4800)));
//! assert_eq!(format_duration(Duration::from_secs(4800)), "1h20m0s");
//! ```

mod cursor;
mod duration;
pub mod expression;
mod literal;
mod parse_error;
pub mod regexp;
pub mod template;
mod value;

pub use duration::{DurationError, format_duration, parse_duration};
pub use parse_error::ParseError;
pub use value::Value;
