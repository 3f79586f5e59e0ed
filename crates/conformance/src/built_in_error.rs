//! Errors in the built-in checks and objects.

use core::error::Error;

/// Placeholder without a value, by its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlaceholderError(pub(crate) String);

/// Error in a built-in check or object. The user cannot fix it: it is a bug, or a value that the user chose (such as
/// the zone) makes a name invalid.
#[derive(Debug, thiserror::Error)]
pub enum BuiltInError {
    /// A placeholder has no value.
    #[error("{0}")]
    Placeholder(#[source] PlaceholderError),
    /// An object is not valid YAML.
    #[error("{0}")]
    Yaml(#[source] Box<dyn Error + Send + Sync>),
    /// Line of the list of checks that is not in its language.
    #[error("{0}")]
    Line(String),
    /// Text that is not an expectation.
    #[error("{0}")]
    Expectation(String),
    /// Text that is not a domain name.
    #[error("`{0}` is not a valid name")]
    Name(String),
}

impl From<PlaceholderError> for BuiltInError {
    fn from(error: PlaceholderError) -> BuiltInError {
        BuiltInError::Placeholder(error)
    }
}
