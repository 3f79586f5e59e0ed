//! Environment variables in a word: `{%NAME%}` and `{$NAME}`.
//!
//! All references of the first form are substituted first, then all of the second. Values are scanned again, so a
//! variable may refer to other variables. A value is never split into words, even if it has white space. An unset
//! variable has an empty value. An empty name (`{$}`) ends the substitution of its form: Corefiles may contain it, but
//! it serves no purpose.

use crate::Loader;

/// Maximum number of substitutions in a word. Real words need one or two, a self-referencing variable never ends.
const REPLACEMENTS_MAX: usize = 100;
/// Maximum length of a word in bytes after substitution. Kernels allow values of 128 KiB, and no directive takes more
/// than a few lines.
const GROWN_MAX: usize = 1 << 20;

/// Error if a word exceeds the limits. Contains the name of the next variable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Endless(pub(crate) String);

/// A word after substitution.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Substituted {
    pub(crate) text: String,
    /// First variable that is not set.
    pub(crate) unset: Option<String>,
}

/// Substitutes the variables in a word.
pub(crate) fn substitute(text: String, loader: &dyn Loader) -> Result<Substituted, Endless> {
    let (mut left, mut unset) = (REPLACEMENTS_MAX, None);
    let text = replace(text, ("{%", "%}"), loader, &mut left, &mut unset)?;
    let text = replace(text, ("{$", "}"), loader, &mut left, &mut unset)?;
    Ok(Substituted { text, unset })
}

fn replace(
    mut text: String,
    marks: (&str, &str),
    loader: &dyn Loader,
    left: &mut usize,
    unset: &mut Option<String>,
) -> Result<String, Endless> {
    while let Some((start, name)) = first_reference(&text, marks) {
        if *left == 0 || text.len() > GROWN_MAX {
            return Err(Endless(name.to_owned()));
        }
        *left -= 1;
        let value = loader.variable(name);
        if value.is_none() {
            unset.get_or_insert_with(|| name.to_owned());
        }
        let end = start + marks.0.len() + name.len() + marks.1.len();
        text.replace_range(start..end, value.as_deref().unwrap_or_default());
    }
    Ok(text)
}

/// Finds the first reference. Returns its offset and the variable's name, or `None` if it is unterminated or has no
/// name.
fn first_reference<'a>(text: &'a str, (open, close): (&str, &str)) -> Option<(usize, &'a str)> {
    let (before, rest) = text.split_once(open)?;
    let (name, _) = rest.split_once(close)?;
    (!name.is_empty()).then_some((before.len(), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::World;

    fn world() -> World {
        let pairs = [("A", "1"), ("B", "2"), ("A$", "3"), ("A{$B", "4"), ("A}", "5"), ("BRACE", "{"), ("OPEN", "{$")];
        let world = pairs.iter().fold(World::default(), |world, (name, value)| world.variable(name, value));
        let pairs = [("TO_B", "{$B}"), ("TO_PERCENT", "{%B%}"), ("SPACED", "a b\nc"), ("SELF", "x{$SELF}"), ("", "no")];
        pairs.iter().fold(world, |world, (name, value)| world.variable(name, value))
    }

    #[test]
    fn substitutes_references() {
        for (text, expected) in [
            ("x", "x"),
            ("x{$A}y", "x1y"),
            ("{%A%}{$B}{%B%}", "122"),
            ("x{$UNSET}y", "xy"),
            ("{$SPACED}", "a b\nc"),
            ("{$A$}", "3"),
            ("{$A{$B}", "4"),
            ("{%A}%}", "5"),
            ("}{$A}", "}1"),
        ] {
            assert_eq!(substitute(text.to_owned(), &world()).unwrap().text, expected, "{text}");
        }
    }

    #[test]
    fn scans_values_again() {
        for (text, expected) in [
            ("{$TO_B}", "2"),
            ("{%TO_B%}", "2"),
            ("{$TO_PERCENT}", "{%B%}"),
            ("{$BRACE}$B}", "2"),
            ("{$OPEN}B}", "2"),
            ("{{$A}}", "{1}"),
        ] {
            assert_eq!(substitute(text.to_owned(), &world()).unwrap().text, expected, "{text}");
        }
    }

    #[test]
    fn keeps_text_that_is_not_a_reference() {
        for text in ["{$}", "{%%}", "{$A", "{%A", "{1}", "{args}", "$A", "{ $A }", "{$}{$A}", "{%%}{%A%}"] {
            assert_eq!(substitute(text.to_owned(), &world()).unwrap().text, text);
        }
        assert_eq!(substitute("{%A{$B}".to_owned(), &world()).unwrap().text, "{%A2");
        assert_eq!(substitute("{%$B%}{$}{$B}".to_owned(), &world()).unwrap().text, "{$}{$B}");
    }

    #[test]
    fn stops_at_self_referencing_variables() {
        assert_eq!(substitute("{$SELF}".to_owned(), &world()), Err(Endless("SELF".into())));
        let doubling = World::default().variable("D", &"{$D}".repeat(20_000));
        assert_eq!(substitute("{$D}".to_owned(), &doubling), Err(Endless("D".into())));
    }
}
