//! Variables in a word: `{%NAME%}` and `{$NAME}`.
//!
//! All of the first spelling are replaced, then all of the second. A value is scanned again, so it may refer to other
//! variables; it is never cut into words, whatever it holds. An unset variable is empty. An empty name (`{$}`) ends the
//! replacing of its spelling, which Corefiles cannot rely on but may contain.

use crate::Loader;

/// Replacements in one word: real words hold one or two, a variable that refers to itself any number.
const REPLACEMENTS_MAX: usize = 100;
/// Octets that one word may grow to: kernels allow values of 128 KiB, and no directive takes more than a few lines.
const GROWN_MAX: usize = 1 << 20;

/// The variables in a word did not come to an end within the bounds; holds the name that was to be replaced next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Endless(pub(crate) String);

/// Fills in the variables of one word.
pub(crate) fn substitute(text: String, loader: &dyn Loader) -> Result<String, Endless> {
    let mut left = REPLACEMENTS_MAX;
    let text = replace(text, ("{%", "%}"), loader, &mut left)?;
    replace(text, ("{$", "}"), loader, &mut left)
}

fn replace(mut text: String, marks: (&str, &str), loader: &dyn Loader, left: &mut usize) -> Result<String, Endless> {
    while let Some((start, name)) = first_reference(&text, marks) {
        if *left == 0 || text.len() > GROWN_MAX {
            return Err(Endless(name.to_owned()));
        }
        *left -= 1;
        let value = loader.variable(name).unwrap_or_default();
        let end = start + marks.0.len() + name.len() + marks.1.len();
        text.replace_range(start..end, &value);
    }
    Ok(text)
}

/// Where the first reference begins, and its name; none if it has no end or no name.
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
    fn references_are_replaced() {
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
            assert_eq!(substitute(text.to_owned(), &world()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn values_are_scanned_again() {
        for (text, expected) in [
            ("{$TO_B}", "2"),
            ("{%TO_B%}", "2"),
            ("{$TO_PERCENT}", "{%B%}"),
            ("{$BRACE}$B}", "2"),
            ("{$OPEN}B}", "2"),
            ("{{$A}}", "{1}"),
        ] {
            assert_eq!(substitute(text.to_owned(), &world()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_reference_stays() {
        for text in ["{$}", "{%%}", "{$A", "{%A", "{1}", "{args}", "$A", "{ $A }", "{$}{$A}", "{%%}{%A%}"] {
            assert_eq!(substitute(text.to_owned(), &world()).unwrap(), text);
        }
        assert_eq!(substitute("{%A{$B}".to_owned(), &world()).unwrap(), "{%A2");
        assert_eq!(substitute("{%$B%}{$}{$B}".to_owned(), &world()).unwrap(), "{$}{$B}");
    }

    #[test]
    fn a_variable_that_refers_to_itself_ends() {
        assert_eq!(substitute("{$SELF}".to_owned(), &world()), Err(Endless("SELF".into())));
        let doubling = World::default().variable("D", &"{$D}".repeat(20_000));
        assert_eq!(substitute("{$D}".to_owned(), &doubling), Err(Endless("D".into())));
    }
}
