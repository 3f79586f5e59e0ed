//! What Kubernetes takes for a name (RFC 1123 §2.1, in lower case).

/// Octets of the longest label (RFC 1035 §2.3.4).
const LABEL_MAX: usize = 63;
/// Octets of the longest name as text.
const NAME_MAX: usize = 253;

/// Whether a text is one label: lower-case letters, digits and dashes, neither first nor last a dash.
pub(crate) fn is_label(text: &str) -> bool {
    let fits = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-';
    (1..=LABEL_MAX).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether a text is labels with dots between them, a last dot aside.
pub(crate) fn is_domain(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    text.len() <= NAME_MAX && text.split('.').all(is_label)
}

/// As [`is_domain`], also with the underscores that services, and people, put into names.
pub(crate) fn is_loose_domain(text: &str) -> bool {
    !text.contains(['{', '}', '"', '\\', '#']) && is_domain(&text.to_ascii_lowercase().replace('_', "x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, is_one) in [
            ("a", true),
            ("cluster.local", true),
            ("cluster.local.", true),
            ("1.in-addr.arpa", true),
            ("", false),
            (".", false),
            ("a..b", false),
            ("-a", false),
            ("A", false),
            ("a_b", false),
        ] {
            assert_eq!(is_domain(text), is_one, "{text}");
        }
        assert!(is_label(&"a".repeat(63)) && !is_label(&"a".repeat(64)));
        assert!(is_loose_domain("_http._tcp.Example.org") && !is_loose_domain("a b"));
    }
}
