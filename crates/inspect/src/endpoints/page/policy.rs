//! Content security policy of the page: its own style and script, and requests to the server itself.

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderValue, InvalidHeaderValue};

use super::{SCRIPT, STYLE};

/// Text of the policy.
pub(super) static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, text.as_bytes())));
    format!(
        "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; img-src data:; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
});

/// Returns the policy as a header.
///
/// # Errors
/// The text is not a header, which no style and no script can cause.
pub(super) fn header() -> Result<HeaderValue, InvalidHeaderValue> {
    HeaderValue::from_str(&POLICY)
}
