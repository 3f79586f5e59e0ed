//! Secrets in texts for people: configuration, command lines, URLs and messages. Everything that prints one of them to
//! a log, a page or a report goes through [`masked`], [`masked_urls`] or [`masked_arguments`].

/// Text in place of a secret.
pub const REMOVED: &str = "[removed]";
/// Parts of the names of properties and options whose values may be secret, without `-` and `_`.
const SECRET_NAMES: [&str; 10] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "credential",
    "accesskey",
    "apikey",
    "bearer",
    "authorization",
];
/// Parts of names that are too common to remove the words after them, such as `key` in `tls cert key`. They count in
/// `name=value`, in `name: value` and in options.
const SECRET_PARTS: [&str; 7] = ["key", "pwd", "pass", "auth", "sig", "signature", "psk"];
/// Returns a line of configuration, a command line or a message without what may be secret in it.
#[must_use]
pub fn masked(line: &str) -> String {
    without_values(&masked_urls(line))
}

/// Returns a text of several lines without what may be secret in them.
#[must_use]
pub fn masked_lines(text: &str) -> String {
    text.split_inclusive('\n').map(masked).collect()
}

/// Returns the arguments of a program without what may be secret in them: the value of `--token=VALUE`, the argument
/// after `--token`, and parts of URLs.
#[must_use]
pub fn masked_arguments<T: AsRef<str>>(arguments: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut is_secret = false;
    let mask = |argument: T| {
        let argument = argument.as_ref();
        let is_value = std::mem::replace(&mut is_secret, argument.starts_with('-') && names_next_words(argument));
        if is_value && !argument.starts_with('-') { REMOVED.to_owned() } else { masked(argument) }
    };
    arguments.into_iter().map(mask).collect()
}

/// Returns true for a word that names a secret, such as `password`.
#[must_use]
pub fn names_secret(word: &str) -> bool {
    let plain: String = word.to_lowercase().chars().filter(|c| !matches!(c, '-' | '_')).collect();
    SECRET_NAMES.iter().any(|part| plain.contains(part))
}

/// Returns true if the value that is attached to this name may be secret: `name=value`, `name: value`, `--name value`.
fn names_attached_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    names_secret(name) || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| SECRET_PARTS.contains(&part))
}

/// Removes the words after one that names a secret, and the values of `name=value`. This covers text that is not
/// parsed: comments, and snippets that nothing imports.
fn without_values(line: &str) -> String {
    let (mut out, mut is_secret, mut last) = (String::with_capacity(line.len()), false, "");
    for word in line.split_inclusive(char::is_whitespace) {
        let text = word.trim_end();
        match text {
            "" | "{" | "}" => out.push_str(word),
            "=" | ":" => {
                is_secret |= names_attached_secret(last);
                out.push_str(word);
            }
            _ if is_secret => {
                out.push_str(REMOVED);
                out.push_str(&word[text.len()..]);
            }
            _ => {
                let value = attached_value(text);
                // Without a value, or with one that is quoted and goes on, the next words belong to it.
                is_secret = value.map_or_else(|| names_next_words(text), |start| is_open(&text[start..]));
                out.push_str(&text[..value.unwrap_or(text.len())]);
                out.push_str(value.map_or("", |_| REMOVED));
                out.push_str(&word[text.len()..]);
            }
        }
        last = if text.is_empty() { last } else { text };
    }
    out
}

/// Returns true if the words after this one may be secret.
fn names_next_words(word: &str) -> bool {
    let is_option = word.starts_with('-') || word.ends_with([':', '=']);
    names_secret(word) || is_option && names_attached_secret(word)
}

/// Returns true if a value starts with a quote that is not closed.
fn is_open(value: &str) -> bool {
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    quote.is_some_and(|quote| value.len() == 1 || !value.ends_with(quote))
}

/// Returns where the first value in `name=value` or `name:value` starts whose name is that of a secret.
fn attached_value(word: &str) -> Option<usize> {
    let mut start = 0;
    for (at, separator) in word.match_indices(['=', ':', '&', '?', ';', ',']) {
        let value = at + separator.len();
        let is_assignment = matches!(separator, "=" | ":") && value < word.len();
        if is_assignment && !word[value..].starts_with("//") && names_attached_secret(&word[start..at]) {
            return Some(value);
        }
        start = if separator == ":" { start } else { value };
    }
    None
}

/// Removes the user information, the query and the fragment of URLs: `http://user:password@host/path?query`.
#[must_use]
pub fn masked_urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`')).unwrap_or(after.len());
        // Punctuation after the URL belongs to the text around it.
        let end = after[..end].trim_end_matches([':', ',', ';', ')']).len();
        let (url, next) = after.split_at(end);
        let host = user_info_end(url).unwrap_or(0);
        // The template of DNS over HTTPS (RFC 8484 §4.1) has no value.
        let query = url[host..].find(['?', '#']).map(|at| host + at).filter(|_| !url.ends_with("{?dns}"));
        out.push_str(if host == 0 { "" } else { REMOVED });
        out.push_str(&url[host..query.map_or(url.len(), |at| at + 1)]);
        out.push_str(query.map_or("", |_| REMOVED));
        rest = next;
    }
    without_user_info(&(out + rest))
}

/// Returns where the user information of a URL without its scheme ends.
fn user_info_end(url: &str) -> Option<usize> {
    let authority = &url[..url.find(['/', '?', '#']).unwrap_or(url.len())];
    // A password may contain the characters that end an authority. What follows the colon is not a port then.
    let is_port = |port: &str| port.ends_with(']') || port.bytes().all(|byte| byte.is_ascii_digit());
    let has_password = authority.rsplit_once(':').is_some_and(|(_, port)| !is_port(port));
    authority.rfind('@').or_else(|| if has_password { url.rfind('@') } else { None })
}

/// Removes the user information of hosts without a scheme: `user:password@host`.
fn without_user_info(text: &str) -> String {
    let without = |word: &str| {
        let user = word.rfind('@').filter(|at| word[..*at].contains(':') && !word[..*at].contains("://"));
        user.map_or_else(|| word.to_owned(), |at| format!("{REMOVED}{}", &word[at..]))
    };
    text.split_inclusive(char::is_whitespace).map(without).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_the_arguments_of_a_program() {
        let arguments =
            ["/portolan", "-conf", "Corefile", "--token=S", "--password", "S", "--key", "-q", "http://u:S@h?S"];
        let expected = [
            "/portolan",
            "-conf",
            "Corefile",
            "--token=[removed]",
            "--password",
            "[removed]",
            "--key",
            "-q",
            "http://[removed]@h?[removed]",
        ];
        assert_eq!(masked_arguments(arguments), expected);
    }

    #[test]
    fn hides_what_may_be_secret_in_a_line() {
        for (line, expected) in [
            ("trace zipkin http://h/api?apikey=S", "trace zipkin http://h/api?[removed]"),
            ("trace zipkin \"http://h/api?a=1&x=S#S\" b", "trace zipkin \"http://h/api?[removed]\" b"),
            ("forward . https://h/dns-query#S", "forward . https://h/dns-query#[removed]"),
            ("HTTPS://user:S@h:1/a https://S@h", "HTTPS://[removed]@h:1/a https://[removed]@h"),
            ("https://u:S/S?S#S@h/a@b http://h:1/a@b?S", "https://[removed]@b http://h:1/a@b?[removed]"),
            ("http://[::1]/a@b http://h:/a@b", "http://[::1]/a@b http://h:/a@b"),
            ("forward . https://h/dns-query{?dns}", "forward . https://h/dns-query{?dns}"),
            ("(http://h?S): no (http://h/): no", "(http://h?[removed]): no (http://h/): no"),
            ("lookup u:S@h: no such host", "lookup [removed]@h: no such host"),
            ("http://u:S@h?q", "http://[removed]@h?[removed]"),
            ("run --token=S --port=5", "run --token=[removed] --port=5"),
            ("run --API-KEY S", "run --API-KEY [removed]"),
            ("run -pwd 'S S'", "run -pwd [removed] [removed]"),
            ("run --auth=\"S S\"", "run --auth=[removed] [removed]"),
            ("Password = S", "Password = [removed]"),
            ("key: S", "key: [removed]"),
            ("AWS_SECRET_ACCESS_KEY=S X_SIG=S", "AWS_SECRET_ACCESS_KEY=[removed] X_SIG=[removed]"),
            ("h/api?a=1&token=S", "h/api?a=1&token=[removed]"),
            ("Authorization: Bearer S", "Authorization: [removed] [removed]"),
            ("tls cert.pem key.pem ca.pem", "tls cert.pem key.pem ca.pem"),
            ("forward . 10.0.0.1:53 [::1]:53", "forward . 10.0.0.1:53 [::1]:53"),
        ] {
            assert_eq!(masked(line), expected);
        }
    }
}
