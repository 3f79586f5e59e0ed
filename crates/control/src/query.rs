//! Query strings of URLs (RFC 3986 §3.4): `name=www.example.org.&type=AAAA`.

use core::fmt::Write;

/// Parameters of a query string, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Parses a query string. Invalid escapes stay as they are.
    #[must_use]
    pub fn parse(query: &str) -> Parameters {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let split = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        };
        Parameters(pairs.map(split).collect())
    }

    /// Returns the first value of a parameter.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Removes parameters without a value, such as empty fields of a form.
    #[must_use]
    pub fn without_empty(mut self) -> Parameters {
        self.0.retain(|(_, value)| !value.is_empty());
        self
    }

    /// Names of the parameters.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

/// Returns a path with a query string.
#[must_use]
pub fn url(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut url = path.to_owned();
    for (at, (name, value)) in parameters.iter().enumerate() {
        url.push(if at == 0 { '?' } else { '&' });
        let _ = write!(url, "{name}={}", encode(value));
    }
    url
}

fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
    out
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped =
            (*first == b'%').then(|| after.first_chunk::<2>().and_then(|digits| hexadecimal(*digits))).flatten();
        bytes.push(escaped.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hexadecimal(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_values_that_were_encoded() {
        for value in ["www.example.org.", "a&b=c d%+", "Ünïcode\n", ""] {
            let url = url("/v1/cache", &[("name", value), ("type", "A")]);
            let parameters = Parameters::parse(url.split_once('?').expect("a query").1);
            assert_eq!((parameters.get("name"), parameters.get("type")), (Some(value), Some("A")), "{url}");
        }
    }

    #[test]
    fn accepts_any_query_string() {
        for (query, value) in
            [("name=%", "%"), ("name=%4", "%4"), ("name=%zz", "%zz"), ("name=a+b", "a b"), ("name", "")]
        {
            assert_eq!(Parameters::parse(query).get("name"), Some(value), "{query}");
        }
        assert_eq!(Parameters::parse("name=&type=A").without_empty(), Parameters::parse("type=A"));
        assert_eq!(Parameters::parse("&&=").get("name"), None);
        assert_eq!(Parameters::parse("a=%ff").get("a"), Some("\u{fffd}"));
    }
}
