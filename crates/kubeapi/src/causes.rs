//! Texts of errors with their causes.

/// Formats an error and its sources on one line. A source that the text already ends with is left out.
#[must_use]
pub fn causes(error: &(dyn core::error::Error + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return host::errors::describe(error);
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    host::errors::without_numbers(&text.replace('\n', " "))
}
