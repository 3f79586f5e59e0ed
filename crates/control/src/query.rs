//! Query strings of URLs (RFC 3986 §3.4): `name=www.example.org.&type=AAAA`.

use core::fmt::Write;

/// Parameters of a query string, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Parses a query string.
    ///
    /// # Errors
    /// An escape is invalid, or a parameter occurs twice.
    pub fn parse(query: &str) -> Result<Parameters, QueryError> {
        let mut parameters = Parameters::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if parameters.get(&name).is_some() {
                return Err(QueryError::Twice(name));
            }
            parameters.0.push((name, value));
        }
        Ok(parameters)
    }

    /// Returns the value of a parameter.
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

/// Reason why a query string is refused. The client must send another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A part has an escape that is not `%` and two hexadecimal digits, or its bytes are not UTF-8.
    #[error("`{0}` has an invalid escape; expected `%` and two hexadecimal digits for each byte of UTF-8")]
    Escape(String),
    /// The parameter with this name occurs twice.
    #[error("the parameter `{0}` occurs twice; send it once")]
    Twice(String),
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

fn decode(text: &str) -> Result<String, QueryError> {
    let invalid = || QueryError::Escape(text.to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'%' => {
                let (digits, after) = after.split_first_chunk::<2>().ok_or_else(invalid)?;
                (hexadecimal(*digits).ok_or_else(invalid)?, after)
            }
            b'+' => (b' ', after),
            byte => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| invalid())
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
            let parameters = Parameters::parse(url.split_once('?').expect("a query").1).expect("valid escapes");
            assert_eq!((parameters.get("name"), parameters.get("type")), (Some(value), Some("A")), "{url}");
        }
    }

    #[test]
    fn refuses_invalid_escapes_and_parameters_that_occur_twice() {
        for (query, value) in [("name=a+b", "a b"), ("name", ""), ("&&name=%41&", "A"), ("=x&name==", "=")] {
            assert_eq!(Parameters::parse(query).expect(query).get("name"), Some(value), "{query}");
        }
        for part in ["%", "%4", "%zz", "%+1", "%ff"] {
            let expected = Err(QueryError::Escape(part.to_owned()));
            assert_eq!(Parameters::parse(&format!("name={part}")), expected);
            assert_eq!(Parameters::parse(&format!("{part}=x")), expected);
        }
        assert_eq!(Parameters::parse("type=A&name=a&t%79pe=B"), Err(QueryError::Twice("type".to_owned())));
        let without = Parameters::parse("name=&type=A").expect("valid").without_empty();
        assert_eq!(Ok(without), Parameters::parse("type=A"));
    }
}
