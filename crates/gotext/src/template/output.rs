//! Length-limited output buffer of the text functions.

use std::borrow::Cow;

use super::error::{ExecuteError, OUTPUT_MAX};
use crate::value::Value;

/// String that cannot grow beyond [`OUTPUT_MAX`] bytes.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    /// Appends text.
    ///
    /// # Errors
    /// [`ExecuteError::TooLong`] if the result would exceed [`OUTPUT_MAX`].
    pub(super) fn push(&mut self, text: &str) -> Result<(), ExecuteError> {
        if self.0.len() + text.len() > OUTPUT_MAX {
            return Err(ExecuteError::TooLong);
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

/// Text form of a value as functions print it. A missing value is `<nil>` here.
pub(super) fn shown(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Nil => "<nil>".into(),
        Value::Text(text) => text.into(),
        _ => value.to_string().into(),
    }
}
