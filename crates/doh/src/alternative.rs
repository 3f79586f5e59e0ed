//! Alternative services (RFC 7838): where an upstream offers HTTP/3.

use core::time::Duration;

use crate::decimal::number;

/// Lifetime of an offer that states none (RFC 7838 §3.1).
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Longest lifetime that is used. Longer ones only delay the notice that the offer is gone.
const LIFETIME_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Offer of HTTP/3 at the host that has sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// UDP port.
    pub port: u16,
    /// Time for which the offer is valid.
    pub lifetime: Duration,
}

/// Returns the first offer of HTTP/3 in the header field `alt-svc`. `None` if it has none, or withdraws all offers:
/// earlier ones are invalid then.
///
/// Offers at other hosts are ignored, since their addresses would have to be looked up.
#[must_use]
pub fn alternative(value: &[u8]) -> Option<Alternative> {
    let text = core::str::from_utf8(value).ok()?;
    split(text, ',').find_map(offer)
}

/// Reads one offer, such as `h3=":443"; ma=3600`.
fn offer(text: &str) -> Option<Alternative> {
    let mut parts = split(text, ';');
    let (protocol, authority) = parts.next()?.split_once('=')?;
    if protocol != "h3" {
        return None;
    }
    let port = unquoted(authority)?.strip_prefix(':')?.parse().ok().filter(|port| *port > 0)?;
    let seconds = parts.filter_map(|part| part.split_once('=')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("ma").then(|| number(unquoted(value).unwrap_or(value).as_bytes()))
    });
    let lifetime = match seconds {
        Some(seconds) => Duration::from_secs(seconds?).min(LIFETIME_MAX),
        None => LIFETIME,
    };
    (!lifetime.is_zero()).then_some(Alternative { port, lifetime })
}

fn unquoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

/// Splits a text at a character outside quotes. The parts have no blanks around them.
fn split(text: &str, at: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |c| {
        is_quoted ^= c == '"';
        c == at && !is_quoted
    })
    .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_offers_of_http3_at_the_same_host() {
        let rows: [(&str, Option<(u16, u64)>); 16] = [
            (r#"h3=":443""#, Some((443, 86_400))),
            (r#"h3=":8443"; ma=3600; persist=1"#, Some((8443, 3600))),
            (r#"h3=":443";MA="60""#, Some((443, 60))),
            (r#"h2=":443", h3-29=":444", h3=":445" ; ma=5"#, Some((445, 5))),
            (r#"h3="other.example:443", h3=":446""#, Some((446, 86_400))),
            (r#"x="a,h3=;b", h3=":447""#, Some((447, 86_400))),
            (r#"h3=":443"; ma=99999999999"#, Some((443, 604_800))),
            (r#"h3=":443"; ma=99999999999999999999"#, Some((443, 604_800))),
            (r#"h3=":443"; ma=0"#, None),
            (r#"h3=":443"; ma=x"#, None),
            (r#"h3=":0""#, None),
            (r#"h3=":70000""#, None),
            ("h3=:443", None),
            (r#"h3=""#, None),
            ("clear", None),
            ("", None),
        ];
        for (value, expected) in rows {
            let expected = expected.map(|(port, seconds)| Alternative { port, lifetime: Duration::from_secs(seconds) });
            assert_eq!(alternative(value.as_bytes()), expected, "{value}");
        }
        assert_eq!(alternative(b"h3=\":443\"; x=\xff"), None);
    }
}
