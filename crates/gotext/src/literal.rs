//! Literals that templates and expressions have in common: named constants and strings.
//!
//! Numbers are not among them: `010` is 8 in a template and 10 in an expression.

use core::fmt;

use crate::cursor::Cursor;
use crate::value::Value;

/// Returns the value of a word that is a constant.
pub(crate) fn named_constant(word: &str) -> Option<Value> {
    match word {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        "nil" => Some(Value::Nil),
        _ => None,
    }
}

/// Rules for strings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StringSyntax {
    /// Go: all escape sequences, but of the quotes only the own one. A string ends on its line.
    Go,
    /// Expressions: `\n`, `\t`, `\r`, a backslash and both quotes. A string can contain line ends.
    Expression,
}

/// Reason why a text is not a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StringError {
    /// The closing quote is missing.
    Unclosed,
    /// An escape sequence is invalid.
    BadEscape,
}

impl fmt::Display for StringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StringError::Unclosed => "the string has no closing quote",
            StringError::BadEscape => "invalid escape sequence after a backslash",
        })
    }
}

impl core::error::Error for StringError {}

/// Takes a string with its quotes. Between backquotes, a backslash is literal.
///
/// # Errors
/// The string has no end, or an escape sequence is invalid. The cursor is then after the opening quote.
pub(crate) fn string(cursor: &mut Cursor<'_>, syntax: StringSyntax) -> Result<String, StringError> {
    let quote = cursor.next().ok_or(StringError::Unclosed)?;
    let is_raw = quote == '`';
    let mut inner = Cursor::new(cursor.rest());
    let mut text = Vec::new();
    loop {
        match inner.next().ok_or(StringError::Unclosed)? {
            next if next == quote => break,
            '\n' if !is_raw && syntax == StringSyntax::Go => return Err(StringError::Unclosed),
            '\\' if !is_raw => unescape(&mut inner, quote, syntax, &mut text).ok_or(StringError::BadEscape)?,
            next => push(next, &mut text),
        }
    }
    // Values are UTF-8, so a string of other bytes is rejected. Go accepts it.
    let text = String::from_utf8(text).map_err(|_| StringError::BadEscape)?;
    cursor.take_bytes(inner.at());
    Ok(text)
}

fn push(character: char, text: &mut Vec<u8>) {
    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Decodes the escape sequence after a backslash and appends its value.
fn unescape(cursor: &mut Cursor<'_>, quote: char, syntax: StringSyntax, text: &mut Vec<u8>) -> Option<()> {
    let escaped = cursor.next()?;
    let plain = match escaped {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '\\' => '\\',
        '\'' | '"' if escaped == quote || syntax == StringSyntax::Expression => escaped,
        _ if syntax == StringSyntax::Expression => return None,
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'u' => char::from_u32(digits(cursor, 4, 16, 0)?)?,
        'U' => char::from_u32(digits(cursor, 8, 16, 0)?)?,
        // Escapes of single bytes.
        'x' | '0'..='7' => {
            let byte =
                if escaped == 'x' { digits(cursor, 2, 16, 0) } else { digits(cursor, 2, 8, escaped.to_digit(8)?) };
            text.push(u8::try_from(byte?).ok()?);
            return Some(());
        }
        _ => return None,
    };
    push(plain, text);
    Some(())
}

/// Takes `count` digits and appends them to `number`.
fn digits(cursor: &mut Cursor<'_>, count: usize, radix: u32, mut number: u32) -> Option<u32> {
    for _ in 0..count {
        number = number.checked_mul(radix)?.checked_add(cursor.next()?.to_digit(radix)?)?;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_strings_by_the_rules_of_each_language() {
        use StringError::{BadEscape, Unclosed};
        type Outcome = Result<&'static str, StringError>;
        // The literal, and its value in a template and in an expression.
        let cases: &[(&str, Outcome, Outcome)] = &[
            ("'a' b", Ok("a"), Ok("a")),
            (r#""\n\t\r\\\"""#, Ok("\n\t\r\\\""), Ok("\n\t\r\\\"")),
            (r#""\'""#, Err(BadEscape), Ok("'")),
            (r#"'\''"#, Ok("'"), Ok("'")),
            (r"'\x41\u00e4\101\a'", Ok("A\u{e4}A\u{7}"), Err(BadEscape)),
            (r"'\xff'", Err(BadEscape), Err(BadEscape)),
            (r"'\ud800'", Err(BadEscape), Err(BadEscape)),
            (r"'\400'", Err(BadEscape), Err(BadEscape)),
            ("'a\nb'", Err(Unclosed), Ok("a\nb")),
            ("`a\n\\n`", Ok("a\n\\n"), Ok("a\n\\n")),
            ("'a", Err(Unclosed), Err(Unclosed)),
            ("'a\\", Err(BadEscape), Err(BadEscape)),
        ];
        for (literal, in_template, in_expression) in cases {
            for (syntax, value) in [(StringSyntax::Go, in_template), (StringSyntax::Expression, in_expression)] {
                let mut cursor = Cursor::new(literal);
                assert_eq!(string(&mut cursor, syntax).as_deref(), value.as_ref().copied(), "{literal}");
                let end = if value.is_ok() { literal.trim_end_matches(" b").len() } else { 1 };
                assert_eq!(cursor.at(), end, "{literal}");
            }
        }
    }
}
