//! Label selectors in the API's syntax
//! (<https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors>).
//!
//! Supported: `a=b`, `a==b`, `a!=b`, `a in (b, c)`, `a notin (b, c)`, `a` and `!a`, joined by commas. `a>1` and `a<1`
//! exist in the API for node affinity only; lists and watches of the objects used here reject them.

/// Maximum length in bytes of a label value, and of a label name without its prefix.
const TEXT_MAX: usize = 63;
/// Maximum length in bytes of the prefix of a label name.
const PREFIX_MAX: usize = 253;

/// Requirements on the labels of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    condition: Condition,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
}

/// Error in the text of a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Invalid label name.
    #[error("'{0}' is not the name of a label")]
    Key(String),
    /// Invalid label value.
    #[error("'{0}' is not the value of a label")]
    Value(String),
    /// Found this text where `=`, `==`, `!=`, `in`, `notin` or a comma was expected.
    #[error("found '{0}', expected one of '=', '==', '!=', 'in', 'notin', ','")]
    Operator(String),
    /// `>` or `<`, which these objects do not support.
    #[error("the operators '<' and '>' are not supported")]
    Order,
    /// A list of values does not begin with `(` or does not end with `)`.
    #[error("the values of 'in' and 'notin' must be in parentheses")]
    Parenthesis,
}

impl Selector {
    /// Parses a selector. An empty text selects everything.
    ///
    /// # Errors
    /// Returns the first error in the text.
    pub fn parse(text: &str) -> Result<Selector, SelectorError> {
        let mut tokens = Tokens { rest: text };
        let mut requirements = Vec::new();
        while !tokens.peek().is_empty() {
            requirements.push(requirement(&mut tokens)?);
            match tokens.next() {
                "" => break,
                "," if !tokens.peek().is_empty() => {}
                "," => return Err(SelectorError::Key(String::new())),
                other => return Err(SelectorError::Operator(other.to_owned())),
            }
        }
        Ok(Selector { requirements })
    }

    /// Returns true if the selector matches an object. `label` returns the value of the object's label with this
    /// name.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|Requirement { key, condition }| match (condition, label(key)) {
            (Condition::Exists, value) => value.is_some(),
            (Condition::Absent, value) => value.is_none(),
            (Condition::In(values), value) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            (Condition::NotIn(values), value) => value.is_none_or(|value| values.iter().all(|one| one != value)),
        })
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, SelectorError> {
    if tokens.peek() == "!" {
        tokens.next();
        return Ok(Requirement { key: key(tokens.next())?, condition: Condition::Absent });
    }
    let key = key(tokens.next())?;
    let condition = match tokens.peek() {
        "" | "," => return Ok(Requirement { key, condition: Condition::Exists }),
        _ => tokens.next(),
    };
    let condition = match condition {
        "=" | "==" => Condition::In(vec![one_value(tokens)?]),
        "!=" => Condition::NotIn(vec![one_value(tokens)?]),
        "in" => Condition::In(values(tokens)?),
        "notin" => Condition::NotIn(values(tokens)?),
        "<" | ">" => return Err(SelectorError::Order),
        other => return Err(SelectorError::Operator(other.to_owned())),
    };
    Ok(Requirement { key, condition })
}

/// Parses the value after `=`, which may be empty.
fn one_value(tokens: &mut Tokens<'_>) -> Result<String, SelectorError> {
    if matches!(tokens.peek(), "" | ",") { Ok(String::new()) } else { value(tokens.next()) }
}

/// Parses the values after `in` or `notin`: `(a, b)`.
fn values(tokens: &mut Tokens<'_>) -> Result<Vec<String>, SelectorError> {
    if tokens.next() != "(" {
        return Err(SelectorError::Parenthesis);
    }
    let mut values = Vec::new();
    loop {
        values.push(if matches!(tokens.peek(), "," | ")") { String::new() } else { value(tokens.next())? });
        match tokens.next() {
            "," => {}
            ")" => return Ok(values),
            _ => return Err(SelectorError::Parenthesis),
        }
    }
}

fn key(text: &str) -> Result<String, SelectorError> {
    let (prefix, name) = text.rsplit_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let prefix_is_good = prefix.is_none_or(|prefix| {
        prefix.len() <= PREFIX_MAX && prefix.split('.').all(|label| is_word(label, |byte| byte == b'-'))
    });
    if !name.is_empty() && is_text(name) && prefix_is_good {
        Ok(text.to_owned())
    } else {
        Err(SelectorError::Key(text.to_owned()))
    }
}

fn value(text: &str) -> Result<String, SelectorError> {
    if is_text(text) { Ok(text.to_owned()) } else { Err(SelectorError::Value(text.to_owned())) }
}

/// Returns true if `text` is a valid label value; if not empty, it is also a valid label name.
fn is_text(text: &str) -> bool {
    text.is_empty() || text.len() <= TEXT_MAX && is_word(text, |byte| matches!(byte, b'-' | b'_' | b'.'))
}

/// Returns true if `text` consists of letters, digits and `also`, and starts and ends with a letter or digit.
fn is_word(text: &str, also: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || also(*byte))
}

/// Tokenizer of selectors. The empty token is the end.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn peek(&self) -> &'a str {
        let text = self.rest.trim_start();
        let signs = text.bytes().take_while(|byte| matches!(byte, b'=' | b'!')).count();
        match text.as_bytes().first() {
            None => "",
            Some(b'(' | b')' | b',' | b'<' | b'>') => &text[..1],
            // `!` alone is a token; `!=` is a single one.
            Some(b'=' | b'!') => &text[..signs.min(2)],
            Some(_) => text.split(|sign: char| "=!(),<>".contains(sign) || sign.is_whitespace()).next().unwrap_or(""),
        }
    }

    fn next(&mut self) -> &'a str {
        let token = self.peek();
        self.rest = self.rest.trim_start().strip_prefix(token).unwrap_or("");
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_labels_as_the_api_does() {
        let labels = [("app", "web"), ("tier", ""), ("example.com/team", "a.b_c-d")];
        let label = |key: &str| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        for (text, selects) in [
            ("", true),
            ("app", true),
            ("nosuch", false),
            ("!nosuch", true),
            ("!app", false),
            ("! app", false),
            ("app=web", true),
            ("app==web", true),
            (" app  =  web ", true),
            ("app=api", false),
            ("tier=", true),
            ("app=", false),
            ("tier=,app=web", true),
            ("app!=web", false),
            ("app != api", true),
            ("nosuch!=web", true),
            ("app in (api, web)", true),
            ("app in (api)", false),
            ("app in(web)", true),
            ("tier in ()", true),
            ("tier in (x,)", true),
            ("nosuch in (web)", false),
            ("app notin (api, web)", false),
            ("app notin (api)", true),
            ("nosuch notin (api)", true),
            ("example.com/team=a.b_c-d,app", true),
            ("example.com/team=a.b_c-d,!app", false),
        ] {
            let selector = Selector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(selector.matches(label), selects, "{text}");
        }
    }

    #[test]
    fn refuses_malformed_selectors() {
        let long = "x".repeat(TEXT_MAX + 1);
        for (text, error) in [
            ("app>1", SelectorError::Order),
            ("app < 1", SelectorError::Order),
            ("app web", SelectorError::Operator("web".into())),
            ("app=web tier", SelectorError::Operator("tier".into())),
            ("app===web", SelectorError::Value("=".into())),
            ("app in web", SelectorError::Parenthesis),
            ("app in (web", SelectorError::Parenthesis),
            ("app in (web api)", SelectorError::Parenthesis),
            ("app,", SelectorError::Key(String::new())),
            (",app", SelectorError::Key(",".into())),
            ("!", SelectorError::Key(String::new())),
            ("=web", SelectorError::Key("=".into())),
            ("-app=web", SelectorError::Key("-app".into())),
            ("a/b/c", SelectorError::Key("a/b/c".into())),
            ("/b", SelectorError::Key("/b".into())),
            ("exa_mple/b", SelectorError::Key("exa_mple/b".into())),
            ("app=we*b", SelectorError::Value("we*b".into())),
            ("app=web-", SelectorError::Value("web-".into())),
            ("é=ü", SelectorError::Key("é".into())),
            (&long, SelectorError::Key(long.clone())),
            (&format!("a={long}"), SelectorError::Value(long.clone())),
        ] {
            assert_eq!(Selector::parse(text), Err(error), "{text}");
        }
    }
}
