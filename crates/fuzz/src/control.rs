//! Requests to the control API, and responses as commands print them.

use ::control::query::{Parameters, url};
use ::control::{Endpoint, cache, log, reload, requests, status};
use engine::tap::Filter;
use serde::de::DeserializeOwned;

/// Request: a query string, a line feed, and a body.
pub fn control(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (query, body) = text.split_once('\n').unwrap_or((&text, ""));
    let _ = Endpoint::find("GET", query);
    let parameters = Parameters::parse(query).unwrap_or_default();
    for name in parameters.names() {
        let value = parameters.get(name).expect("a named parameter has a value");
        let encoded = url("/", &[("name", value)]);
        let parsed = Parameters::parse(encoded.trim_start_matches("/?")).expect("escapes of its own");
        assert_eq!(parsed.get("name"), Some(value), "{encoded}");
    }
    filter(&parameters);
    let _ = serde_json::from_str::<cache::FlushRequest>(body);
    let _ = serde_json::from_str::<log::SetLevel>(body);
    print::<status::Status>(body);
    print::<cache::Cached>(body);
    print::<requests::Requests>(body);
    print::<reload::Reloaded>(body);
    print::<log::Levels>(body);
}

/// Conditions of `tail`. Only those on names make the filter one that privacy forbids.
fn filter(parameters: &Parameters) {
    let mut filter = Filter::default();
    for name in parameters.names() {
        let had_names = filter.has_names();
        match filter.set(name, parameters.get(name).unwrap_or_default()) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(()) => assert_eq!(filter.has_names(), had_names || ["name", "zone"].contains(&name)),
        }
    }
    assert!(filter.every() >= 1);
}

/// Prints a response. Its text must not change the terminal.
fn print<T: DeserializeOwned + std::fmt::Display>(body: &str) {
    if let Ok(value) = serde_json::from_str::<T>(body) {
        let text = value.to_string();
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}
