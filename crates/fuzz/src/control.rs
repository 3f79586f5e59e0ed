//! Requests to the control API, and responses as commands print them.

use ::control::query::{Parameters, url};
use ::control::{Endpoint, cache, log, reload, requests, status};
use serde::de::DeserializeOwned;

/// Request: a query string, a line feed, and a body.
pub fn control(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (query, body) = text.split_once('\n').unwrap_or((&text, ""));
    let _ = Endpoint::find("GET", query);
    let parameters = Parameters::parse(query);
    for name in parameters.names() {
        let value = parameters.get(name).expect("a named parameter has a value");
        let encoded = url("/", &[("name", value)]);
        assert_eq!(Parameters::parse(encoded.trim_start_matches("/?")).get("name"), Some(value), "{encoded}");
    }
    let _ = serde_json::from_str::<cache::FlushRequest>(body);
    let _ = serde_json::from_str::<log::SetLevel>(body);
    print::<status::Status>(body);
    print::<cache::Cached>(body);
    print::<requests::Requests>(body);
    print::<reload::Reloaded>(body);
    print::<log::Levels>(body);
}

/// Prints a response. Its text must not change the terminal.
fn print<T: DeserializeOwned + std::fmt::Display>(body: &str) {
    if let Ok(value) = serde_json::from_str::<T>(body) {
        let text = value.to_string();
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}
