//! Texts that templates make: of values, and never longer than they may be.

use std::borrow::Cow;

use super::fault::{OUTPUT_MAX, RunError};
use crate::value::Value;

/// A text that does not become longer than it may.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    /// # Errors
    /// If it would be too long.
    pub(super) fn push(&mut self, text: &str) -> Result<(), RunError> {
        if self.0.len() + text.len() > OUTPUT_MAX {
            return Err(RunError::TooLong);
        }
        self.0.push_str(text);
        Ok(())
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.0
    }
}

/// A value as functions print it: nothing is `<nil>` there.
pub(super) fn shown(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Missing => "<nil>".into(),
        Value::Text(text) => text.into(),
        _ => value.to_string().into(),
    }
}
