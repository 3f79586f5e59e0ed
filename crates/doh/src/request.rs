//! Decision about a request: path, method, parameter `dns`, content type and length.
//!
//! The status codes are those of CoreDNS, which answers most mistakes with 400. A [`Policy`] with `strict` uses the
//! codes of RFC 9110.

use wire::Header;

use crate::base64url;
use crate::{MEDIA_TYPE, PATH};

/// Maximum length of a message in bytes.
pub const BODY_MAX: usize = u16::MAX as usize;
/// Maximum length of the parameter `dns` in characters: that of the longest message. A longer one is refused before it
/// is decoded (CVE-2026-32936).
pub(crate) const PARAMETER_MAX: usize = 87_382;

/// The parts of a request that decide about it.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Method, such as `GET`.
    pub method: &'a [u8],
    /// Path and query of the request target, such as `/dns-query?dns=AAAB`.
    pub target: &'a [u8],
    /// Value of the header field `content-type`.
    pub content_type: Option<&'a [u8]>,
}

/// Choice of status codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Answers with 405, 413 and 415 where CoreDNS answers with 400, and requires the content type of a POST.
    pub strict: bool,
}

/// Request that may contain a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The message of a GET.
    Query(Vec<u8>),
    /// The message is the body of a POST, at most [`BODY_MAX`] bytes. The caller reads it, and refuses a longer one
    /// with [`Refusal::too_long`].
    Body,
}

/// Response to a request that is not answered by DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Status code.
    pub status: u16,
    /// Body, of type [`TEXT_TYPE`](crate::TEXT_TYPE).
    pub text: &'static str,
    /// Value of the header field `allow`, which status 405 requires.
    pub allow: Option<&'static str>,
}

impl Refusal {
    /// The query got no answer, for example because a plugin dropped it.
    pub const NO_ANSWER: Refusal = Refusal::new(500, "No response\n");
    /// The message is too short, or is a response.
    pub const NOT_A_QUERY: Refusal = Refusal::new(400, "invalid request: the message is not a DNS query\n");
    /// A GET has a body, to which RFC 9110 §9.3.1 gives no meaning.
    pub const GET_WITH_BODY: Refusal = Refusal::new(400, "invalid request: a GET has no body\n");
    /// The header fields are too long.
    pub const HEADERS_TOO_LONG: Refusal = Refusal::new(431, "the header fields are too long\n");
    /// The process has no memory left for the request.
    pub const NO_ROOM: Refusal = Refusal::new(503, "too many requests of this client are in progress\n");
    /// The body did not arrive in time.
    pub const TOO_SLOW: Refusal = Refusal::new(408, "the request took too long to arrive\n");

    const NOT_FOUND: Refusal = Refusal::new(404, "not found: the only path is /dns-query\n");
    const PARAMETER: Refusal = Refusal::new(
        400,
        "invalid request: expected one parameter `dns` with a message in base64url without padding\n",
    );

    const fn new(status: u16, text: &'static str) -> Refusal {
        Refusal { status, text, allow: None }
    }

    /// Refuses a body or parameter that is longer than a message can be.
    #[must_use]
    pub const fn too_long(policy: Policy) -> Refusal {
        let status = if policy.strict { 413 } else { 400 };
        Refusal::new(status, "invalid request: a DNS message has at most 65535 bytes\n")
    }

    const fn method(policy: Policy) -> Refusal {
        const TEXT: &str = "invalid request: use GET or POST\n";
        if policy.strict {
            return Refusal { allow: Some("GET, POST"), ..Refusal::new(405, TEXT) };
        }
        Refusal::new(400, TEXT)
    }

    const fn content_type() -> Refusal {
        Refusal::new(415, "the content type must be application/dns-message\n")
    }
}

/// Decides about a request by its head.
///
/// # Errors
/// The response to a request without a query.
pub fn accept(head: &Head<'_>, policy: Policy) -> Result<Accepted, Refusal> {
    let (path, query) = match head.target.iter().position(|byte| *byte == b'?') {
        Some(at) => (&head.target[..at], &head.target[at + 1..]),
        None => (head.target, &[][..]),
    };
    if path != PATH.as_bytes() {
        return Err(Refusal::NOT_FOUND);
    }
    match head.method {
        b"GET" => Ok(Accepted::Query(parameter(query)?)),
        b"POST" if policy.strict && !head.content_type.is_some_and(is_message) => Err(Refusal::content_type()),
        b"POST" => Ok(Accepted::Body),
        _ => Err(Refusal::method(policy)),
    }
}

/// Checks that the message of a request can be passed to the DNS server, which gives no answer to other messages.
///
/// # Errors
/// The response to the request.
pub fn check_message(message: &[u8]) -> Result<(), Refusal> {
    match Header::read(message) {
        Some(header) if !header.flags.is_response() => Ok(()),
        _ => Err(Refusal::NOT_A_QUERY),
    }
}

/// Decodes the only parameter `dns` of a query string.
fn parameter(query: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut values = query.split(|byte| *byte == b'&').filter_map(|pair| pair.strip_prefix(b"dns="));
    let (Some(value), None) = (values.next(), values.next()) else { return Err(Refusal::PARAMETER) };
    // An escape of three characters stands for one.
    if value.len() > 3 * PARAMETER_MAX {
        return Err(Refusal::too_long(Policy::default()));
    }
    let unescaped = unescape(value).ok_or(Refusal::PARAMETER)?;
    let value = unescaped.as_deref().unwrap_or(value);
    if value.len() > PARAMETER_MAX {
        return Err(Refusal::too_long(Policy::default()));
    }
    let message = base64url::decode(value).filter(|message| !message.is_empty()).ok_or(Refusal::PARAMETER)?;
    if message.len() > BODY_MAX { Err(Refusal::too_long(Policy::default())) } else { Ok(message) }
}

/// Decodes percent-encoding (RFC 3986 §2.1), which base64url never needs. Returns `Ok(None)` in `Some` if there is
/// none, and `None` if an escape is broken.
#[allow(clippy::option_option, reason = "the outer option is an error, the inner one saves a copy")]
fn unescape(value: &[u8]) -> Option<Option<Vec<u8>>> {
    if !value.contains(&b'%') {
        return Some(None);
    }
    let mut unescaped = Vec::with_capacity(value.len());
    let mut rest = value.iter();
    while let Some(&byte) = rest.next() {
        unescaped.push(match byte {
            b'%' => hex(*rest.next()?)? << 4 | hex(*rest.next()?)?,
            other => other,
        });
    }
    Some(Some(unescaped))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Returns true if a content type is that of DNS messages, with or without parameters.
pub(crate) fn is_message(content_type: &[u8]) -> bool {
    let bare = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    bare.trim_ascii().eq_ignore_ascii_case(MEDIA_TYPE.as_bytes())
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
