//! Errors in the built-in checks and objects.

use core::error::Error;
use core::fmt;

/// Placeholder without a value, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceholderError(pub(crate) String);

impl fmt::Display for PlaceholderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Error for PlaceholderError {}

/// Error in a built-in check or object. The user cannot fix it: it is a bug, or a value that the user chose (such as
/// the zone) makes a name invalid.
#[derive(Debug)]
pub enum BuiltInError {
    /// A placeholder has no value.
    Placeholder(PlaceholderError),
    /// An object is not valid YAML.
    Yaml(Box<dyn Error + Send + Sync>),
    /// Line of the list of checks that is not in its language.
    Line(String),
    /// Text that is not an expectation.
    Expectation(String),
    /// Text that is not a domain name.
    Name(String),
}

impl From<PlaceholderError> for BuiltInError {
    fn from(error: PlaceholderError) -> BuiltInError {
        BuiltInError::Placeholder(error)
    }
}

impl fmt::Display for BuiltInError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuiltInError::Placeholder(error) => error.fmt(out),
            BuiltInError::Yaml(error) => error.fmt(out),
            BuiltInError::Line(text) | BuiltInError::Expectation(text) => out.write_str(text),
            BuiltInError::Name(text) => write!(out, "`{text}` is not a valid name"),
        }
    }
}

impl Error for BuiltInError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            BuiltInError::Placeholder(error) => Some(error),
            BuiltInError::Yaml(error) => Some(&**error),
            BuiltInError::Line(_) | BuiltInError::Expectation(_) | BuiltInError::Name(_) => None,
        }
    }
}
