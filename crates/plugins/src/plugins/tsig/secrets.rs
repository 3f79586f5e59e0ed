//! Key files in BIND's format: `key "name" { algorithm hmac-sha256; secret "base64=="; };`.

use wire::Name;

use super::Secrets;

/// Invalid key in a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: expected {expected}")]
pub(super) struct SecretsError {
    /// Line, counted from 1.
    line: usize,
    expected: &'static str,
}

/// Parses the keys of a file.
pub(super) fn read(bytes: &[u8]) -> Result<Secrets, SecretsError> {
    let text = String::from_utf8_lossy(bytes);
    let mut words = words(&text).into_iter();
    let mut secrets = Secrets::new();
    while let Some((line, word)) = words.next() {
        if word == ";" {
            continue;
        }
        let invalid = |expected| SecretsError { line, expected };
        if word != "key" {
            return Err(invalid("`key`"));
        }
        let name = words.next().and_then(|(_, name)| Name::from_text(name).ok());
        let name = name.ok_or_else(|| invalid("the name of a key after `key`"))?;
        let mut body: Vec<&str> = Vec::new();
        loop {
            match words.next() {
                Some((_, "}")) => break,
                Some((_, word)) => body.push(word),
                None => return Err(invalid("a `}` after the key")),
            }
        }
        let secret = body.windows(2).find(|pair| pair[0] == "secret").and_then(|pair| zone::text::base64(pair[1]));
        let secret = secret.ok_or_else(|| invalid("a `secret` in base64 in the key"))?;
        secrets.insert(name.into_lowercase().to_string(), secret);
    }
    Ok(secrets)
}

/// Splits a file into words with their line numbers. `{`, `}` and `;` are words, and `#` and `//` start comments.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut rest = line.split("//").next().unwrap_or_default().trim_start();
        while let Some(first) = rest.chars().next() {
            let end = match first {
                '{' | '}' | ';' => 1,
                '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
                _ => rest.find([' ', '\t', '{', '}', ';']).unwrap_or(rest.len()),
            };
            let (word, after) = rest.split_at(end);
            words.push((at + 1, word.trim_matches('"')));
            rest = after.trim_start();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_keys_and_reports_errors() {
        let text =
            "# c\nkey \"One.\" {\n  algorithm hmac-sha256; // c\n  secret \"YWJj\";\n};\nkey two { secret YQ==; };\n";
        let secrets = read(text.as_bytes()).unwrap();
        assert_eq!(secrets["one."], b"abc");
        assert_eq!(secrets["two."], b"a");
        let cases: [(&[u8], &str); 4] = [
            (b"\nzone x {};", "2: expected `key`"),
            (b"key x { secret \"?\"; };", "1: expected a `secret` in base64 in the key"),
            (b"\nkey x { secret YQ==;", "2: expected a `}` after the key"),
            (b"key", "1: expected the name of a key after `key`"),
        ];
        for (file, message) in cases {
            assert_eq!(read(file).unwrap_err().to_string(), message);
        }
    }
}
