//! Names as Kubernetes defines them (RFC 1123 §2.1, lower case).

/// Maximum length of a label in bytes (RFC 1035 §2.3.4).
const LABEL_MAX: usize = 63;
/// Maximum length of a name as text in bytes.
const NAME_MAX: usize = 253;

/// Returns true if a text is a label: lower-case letters, digits and dashes, with no dash at the start or end.
pub(crate) fn is_label(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LABEL_MAX).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with('-') && !text.ends_with('-')
}

/// Returns true if a text consists of labels separated by dots. A final dot is allowed.
pub(crate) fn is_domain(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    text.len() <= NAME_MAX && text.split('.').all(is_label)
}

/// Returns true for a domain that may also contain upper case and underscores, as in service names.
pub(crate) fn is_loose_domain(text: &str) -> bool {
    !text.contains(['{', '}', '"', '\\', '#']) && is_domain(&text.to_ascii_lowercase().replace('_', "x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_valid_labels_and_domains_and_refuses_others() {
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
