//! Largest groups of queries.

use control::query::Parameters;
use control::top::{By, ROWS_DEFAULT, ROWS_MAX, Top, Window};

use super::super::context::Context;
use super::super::refusal::Refusal;

/// Returns the largest groups.
pub(super) fn top(context: &Context, parameters: &Parameters) -> Result<Top, Refusal> {
    let by = choice(parameters, "by", &By::ALL, By::name)?;
    let window = choice(parameters, "window", &Window::ALL, Window::name)?;
    let rows = match parameters.get("rows") {
        None => ROWS_DEFAULT,
        Some(text) => text
            .parse()
            .ok()
            .filter(|rows| (1..=ROWS_MAX).contains(rows))
            .ok_or_else(|| Refusal::invalid(format!("`rows`: `{text}` is not a number from 1 to {ROWS_MAX}")))?,
    };
    Ok(context.watch.top(&context.view.loaded(), by, window, rows))
}

fn choice<T: Copy + Default>(
    parameters: &Parameters,
    name: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<T, Refusal> {
    let Some(text) = parameters.get(name) else { return Ok(T::default()) };
    all.iter().copied().find(|one| name_of(*one) == text).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| name_of(*one)).collect();
        Refusal::invalid(format!("`{name}`: `{text}` is not one of {}", names.join(", ")))
    })
}
