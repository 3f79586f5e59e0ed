//! Paths of requests to the API server.

use kubeapi::percent_encode;
use relay::Kind;

/// Returns the path of a kind with these parameters, except those without a value.
pub(super) fn url(kind: Kind, parameters: &[(&str, &str)]) -> String {
    let mut url = format!("{}?", kind.path());
    let named = parameters.iter().filter(|(_, value)| !value.is_empty());
    for (at, (name, value)) in named.enumerate() {
        if at > 0 {
            url.push('&');
        }
        url.push_str(name);
        url.push('=');
        percent_encode(&mut url, value);
    }
    url
}
