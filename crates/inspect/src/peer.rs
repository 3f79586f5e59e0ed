//! Access control: which peers of a Unix socket and which requests over TCP are served.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::{Method, StatusCode};

use super::refusal::Refusal;
use control::socket::refusal_of_user;

/// Header in which a browser states the relation of a request to the site that caused it.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Checks the user of a peer: the same user as this process, or root.
pub(super) fn check_user(peer: u32, own: u32) -> Result<(), Refusal> {
    match refusal_of_user(peer, own) {
        Some(message) => Err(Refusal::new(StatusCode::FORBIDDEN, message)),
        None => Ok(()),
    }
}

/// Checks the head of any request: programs in between may read another `Host` than this one (RFC 9112 §3.2).
pub(super) fn check_head(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get_all(HOST).iter().count() {
        0 | 1 => Ok(()),
        _ => Err(Refusal::invalid("the request has several headers `Host`; send one")),
    }
}

/// Checks a request over TCP: it may only read, and no web page of another site may have caused it. With TLS,
/// `checks_host` is false, because the client has compared the name of the server with its certificate.
///
/// A page can make a browser send a request to 127.0.0.1. The browser says so in `Sec-Fetch-Site`, and older browsers
/// send `Origin` with some of these requests. With DNS rebinding, the page has its own name for 127.0.0.1, which is
/// then in `Host`.
pub(super) fn check_request(method: &Method, headers: &HeaderMap, checks_host: bool) -> Result<(), Refusal> {
    let refuse = |status, message: &str| Err(Refusal::new(status, message));
    if !matches!(*method, Method::GET | Method::HEAD) {
        let message = "this listener is read-only; use the Unix socket for changes";
        return refuse(StatusCode::METHOD_NOT_ALLOWED, message);
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if checks_host && !is_local_name(host) {
        let message = "the header `Host` must be `localhost` or an IP address";
        return refuse(StatusCode::MISDIRECTED_REQUEST, message);
    }
    let site = headers.get(SEC_FETCH_SITE).map_or("none", |site| site.to_str().unwrap_or_default());
    if !matches!(site, "none" | "same-origin") {
        return refuse(StatusCode::FORBIDDEN, "a page of another site caused this request");
    }
    let origin = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
    if origin.is_some_and(|origin| !is_origin_of(origin, host)) {
        return refuse(
            StatusCode::FORBIDDEN,
            "a page of another site caused this request: `Origin` is not this listener",
        );
    }
    Ok(())
}

/// Returns true for the origin of pages that this listener serves (RFC 6454 §6.2).
fn is_origin_of(origin: &str, host: &str) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| !host.is_empty() && authority.eq_ignore_ascii_case(host))
}

/// Returns true for `localhost` or an IP address, with or without a port.
fn is_local_name(host: &str) -> bool {
    let port = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    let name = port.map_or(host, |(name, _)| name);
    let address = host.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || host.parse::<SocketAddr>().is_ok() || address.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_the_same_user_and_root() {
        for (peer, own, served) in [(65532, 65532, true), (0, 65532, true), (1000, 65532, false), (65532, 0, false)] {
            assert_eq!(check_user(peer, own).is_ok(), served, "{peer} {own}");
        }
    }

    #[test]
    fn refuses_requests_over_tcp_that_another_site_may_have_caused() {
        let status = |method: Method, host: &str, site: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect("a header"));
            if let Some(site) = site {
                headers.insert(SEC_FETCH_SITE, site.parse().expect("a header"));
            }
            check_request(&method, &headers, true).err().map(|refusal| refusal.status.as_u16())
        };
        for host in ["localhost", "LocalHost:9154", "127.0.0.1:9154", "[::1]:9154", "::1", "10.0.0.1"] {
            assert_eq!(status(Method::GET, host, None), None, "{host}");
        }
        for host in ["", "evil.example", "evil.example:9154", "127.0.0.1.evil.example", "localhost.evil.example:1"] {
            assert_eq!(status(Method::GET, host, None), Some(421), "{host}");
        }
        for (site, refused) in [
            ("none", None),
            ("same-origin", None),
            ("same-site", Some(403)),
            ("cross-site", Some(403)),
            ("", Some(403)),
        ] {
            assert_eq!(status(Method::GET, "localhost", Some(site)), refused, "{site}");
        }
        assert_eq!(status(Method::POST, "localhost", None), Some(405));
    }

    #[test]
    fn refuses_the_origin_of_another_site() {
        let status = |origin: &str, checks_host: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "localhost:9154".parse().expect("a header"));
            headers.insert(ORIGIN, origin.parse().expect("a header"));
            check_request(&Method::GET, &headers, checks_host).err().map(|refusal| refusal.status.as_u16())
        };
        for checks_host in [true, false] {
            for origin in ["http://localhost:9154", "https://LOCALHOST:9154"] {
                assert_eq!(status(origin, checks_host), None, "{origin}");
            }
            for origin in
                ["null", "", "http://evil.example", "http://localhost:80", "http://localhost:9154.evil.example"]
            {
                assert_eq!(status(origin, checks_host), Some(403), "{origin}");
            }
        }
    }

    #[test]
    fn refuses_several_names_of_the_host() {
        let mut headers = HeaderMap::new();
        assert!(check_head(&headers).is_ok());
        headers.append(HOST, "localhost".parse().expect("a header"));
        assert!(check_head(&headers).is_ok());
        headers.append(HOST, "localhost".parse().expect("a header"));
        assert_eq!(check_head(&headers).err().map(|refusal| refusal.status.as_u16()), Some(400));
    }

    #[test]
    fn with_tls_only_the_name_of_the_server_is_not_checked() {
        let status = |method: Method, site: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "dns.example".parse().expect("a header"));
            headers.insert(SEC_FETCH_SITE, site.parse().expect("a header"));
            check_request(&method, &headers, false).err().map(|refusal| refusal.status.as_u16())
        };
        assert_eq!(status(Method::GET, "same-origin"), None);
        assert_eq!(status(Method::GET, "cross-site"), Some(403));
        assert_eq!(status(Method::POST, "none"), Some(405));
    }
}
