//! HTTP semantics of DNS over HTTPS (RFC 8484), the same for HTTP/1.1, HTTP/2 and HTTP/3.
//!
//! A server passes the head of each request to [`accept`], which returns the query of a GET, asks for the body of a
//! POST, or refuses the request. [`lifetime`] and the constants describe the response to an answered query. A client
//! builds a GET with [`get_target`], and decides about each response with [`check_response`] and [`subtract_age`].
//! [`alternative`] tells where an upstream offers HTTP/3. The crate knows no HTTP library and does no I/O.
//!
//! ```
//! use doh::{Accepted, Head, Policy, accept};
//!
//! let head = Head { method: b"GET", target: b"/dns-query?dns=AAABAAABAAAAAAAAAAABAAE", content_type: None };
//! let Ok(Accepted::Query(query)) = accept(&head, Policy::default()) else { panic!("a query") };
//! assert_eq!(query.len(), 17);
//! ```

mod alternative;
mod asking;
mod base64url;
mod decimal;
mod lifetime;
mod request;

pub use alternative::{Alternative, alternative};
pub use asking::{ResponseError, ResponseHead, check_response, get_target, subtract_age};
pub use lifetime::lifetime;
pub use request::{Accepted, BODY_MAX, Head, Policy, Refusal, accept, check_message};

/// Media type of DNS messages in requests and responses (RFC 8484 §6).
pub const MEDIA_TYPE: &str = "application/dns-message";
/// Media type of the text of a refusal.
pub const TEXT_TYPE: &str = "text/plain; charset=utf-8";
/// The only path that is served.
pub const PATH: &str = "/dns-query";
