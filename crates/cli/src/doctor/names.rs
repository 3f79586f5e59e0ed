//! Domain names of probes.

use doctor::{Known, Unknown};
use wire::Name;

/// Parses an absolute name, with or without its final dot.
pub(super) fn name(text: &str) -> Known<Name> {
    let text = format!("{}.", text.trim_end_matches('.'));
    Name::from_text(&text).map_err(|error| Unknown::new(format!("`{text}` is not a domain name: {error}")))
}
