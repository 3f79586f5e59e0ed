//! Cuts the JSON of a list into its items while it comes, so that never more than one of them is held.
//!
//! It looks at no more of the JSON than it needs to find `metadata` and the elements of `items` in the outermost object;
//! whether these are JSON themselves is for those to find out who read them.

use memchr::memchr2;

/// A part of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// An element of `items`, an object.
    Item(&'a [u8]),
    /// `metadata` of the list.
    Metadata(&'a [u8]),
    /// An item is longer than it may be, and was dropped.
    TooLong,
}

/// Where in the list we are.
#[derive(Default)]
pub(crate) struct Items {
    depth: u32,
    string: Option<InString>,
    /// The last string in the outermost object, as far as it matters.
    word: Vec<u8>,
    field: Field,
    capture: Option<Capture>,
    /// The beginning of what is captured, if that came with earlier octets.
    partial: Vec<u8>,
    begun: bool,
}

#[derive(Clone, Copy)]
struct InString {
    escaped: bool,
}

/// The field of the outermost object that we are in.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Field {
    #[default]
    Other,
    Metadata,
    Items,
}

/// What is being gathered.
#[derive(Clone, Copy)]
struct Capture {
    /// Where it began in the octets at hand.
    start: usize,
    /// The depth around it.
    around: u32,
    too_long: bool,
}

/// The longest name of a field that matters.
const WORD_MAX: usize = b"metadata".len();

impl Items {
    /// Takes more of the list and hands out the parts that are complete by it, none longer than `most`. A part that came
    /// in one piece is not copied.
    pub(crate) fn feed(&mut self, octets: &[u8], most: usize, mut each: impl FnMut(Part<'_>)) {
        let mut at = 0;
        while let Some(&octet) = octets.get(at) {
            at = match self.string {
                Some(state) => self.string_octet(octets, at, state),
                None => {
                    self.octet(octets, at, octet, most, &mut each);
                    at + 1
                }
            };
        }
        self.keep(octets, most);
    }

    /// Whether a whole list was there.
    pub(crate) fn is_complete(&self) -> bool {
        self.begun && self.depth == 0
    }

    /// Goes on within a string, from `at` to behind the octet that is next to matter.
    fn string_octet(&mut self, octets: &[u8], at: usize, state: InString) -> usize {
        if state.escaped {
            self.string = Some(InString { escaped: false });
            return at + 1;
        }
        let rest = &octets[at..];
        let end = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        if self.depth == 1 && self.word.len() <= WORD_MAX {
            self.word.extend_from_slice(&rest[..end.min(WORD_MAX + 1)]);
        }
        match rest.get(end) {
            Some(b'"') => self.string = None,
            Some(_) => self.string = Some(InString { escaped: true }),
            None => {}
        }
        at + end + 1
    }

    fn octet(&mut self, octets: &[u8], at: usize, octet: u8, most: usize, each: &mut impl FnMut(Part<'_>)) {
        match octet {
            b'"' => {
                self.string = Some(InString { escaped: false });
                self.word.clear();
            }
            b':' if self.depth == 1 => self.field = field(&self.word),
            b',' if self.depth == 1 => self.field = Field::Other,
            b'{' | b'[' => self.open(at, octet),
            b'}' | b']' => self.close(octets, at, most, each),
            _ => {}
        }
    }

    fn open(&mut self, at: usize, octet: u8) {
        let wanted = match self.field {
            Field::Metadata => self.depth == 1,
            Field::Items => self.depth == 2,
            Field::Other => false,
        };
        if wanted && octet == b'{' && self.capture.is_none() {
            self.capture = Some(Capture { start: at, around: self.depth, too_long: false });
        }
        self.begun = true;
        self.depth += 1;
    }

    fn close(&mut self, octets: &[u8], at: usize, most: usize, each: &mut impl FnMut(Part<'_>)) {
        self.depth = self.depth.saturating_sub(1);
        let Some(capture) = self.capture.take_if(|capture| capture.around == self.depth) else { return };
        let rest = &octets[capture.start..=at];
        if capture.too_long || self.partial.len() + rest.len() > most {
            each(Part::TooLong);
        } else if self.partial.is_empty() {
            each(self.part(rest));
        } else {
            self.partial.extend_from_slice(rest);
            each(self.part(&self.partial));
        }
        self.partial.clear();
    }

    fn part<'a>(&self, octets: &'a [u8]) -> Part<'a> {
        if self.field == Field::Metadata { Part::Metadata(octets) } else { Part::Item(octets) }
    }

    /// Keeps what is captured and not complete beyond the octets at hand.
    fn keep(&mut self, octets: &[u8], most: usize) {
        let Some(capture) = &mut self.capture else { return };
        let rest = &octets[capture.start..];
        capture.start = 0;
        capture.too_long = capture.too_long || self.partial.len() + rest.len() > most;
        if capture.too_long {
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(rest);
        }
    }
}

fn field(word: &[u8]) -> Field {
    match word {
        b"metadata" => Field::Metadata,
        b"items" => Field::Items,
        _ => Field::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a list that comes in pieces of `size` octets.
    fn parts(list: &str, size: usize, most: usize) -> (Vec<String>, bool) {
        let (mut items, mut found) = (Items::default(), Vec::new());
        let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
        for piece in list.as_bytes().chunks(size) {
            items.feed(piece, most, |part| {
                found.push(match part {
                    Part::Item(octets) => text(octets),
                    Part::Metadata(octets) => format!("M{}", text(octets)),
                    Part::TooLong => "<too long>".to_owned(),
                });
            });
        }
        (found, items.is_complete())
    }

    #[test]
    fn items_are_whole_however_they_come() {
        for (list, expected) in [
            (
                r#"{"kind":"L","metadata":{"a":"1"},"items":[{"b":1},{"c":{"d":[{}]}}]}"#,
                &[r#"M{"a":"1"}"#, r#"{"b":1}"#, r#"{"c":{"d":[{}]}}"#][..],
            ),
            (
                r#"{ "items" : [ {"metadata":{"x":"}\"{\\"}} ], "metadata" : {"a":"]"} }"#,
                &[r#"{"metadata":{"x":"}\"{\\"}}"#, r#"M{"a":"]"}"#],
            ),
            (r#"{"items":[],"metadata":{}}"#, &["M{}"]),
            (r#"{"items":null,"metadata":{}}"#, &["M{}"]),
            (r#"{"x":{"items":[{"a":1}],"metadata":{}},"y":["items",{"b":2}],"z":"items"}"#, &[]),
            (
                r#"{"x":"metadata","items":[{"a":"items"},[{"b":1}],3,"{",{"c":2}]}"#,
                &[r#"{"a":"items"}"#, r#"{"c":2}"#],
            ),
            (r#"{"metadatas":{"a":1},"items":[{}]}"#, &["{}"]),
        ] {
            for size in 1..=list.len() {
                let (found, complete) = parts(list, size, 100);
                assert_eq!((found.iter().map(String::as_str).collect::<Vec<_>>(), complete), (expected.to_vec(), true));
            }
        }
    }

    #[test]
    fn a_long_item_is_dropped_and_the_rest_is_not() {
        let list = format!(r#"{{"items":[{{"a":1}},{{"b":"{}"}},{{"c":3}}]}}"#, "x".repeat(20));
        for size in 1..=list.len() {
            assert_eq!(parts(&list, size, 20).0, [r#"{"a":1}"#, "<too long>", r#"{"c":3}"#]);
        }
    }

    #[test]
    fn a_list_that_is_cut_is_not_complete() {
        let list = r#"{"metadata":{"a":"1"},"items":[{"b":1}]}"#;
        for end in 0..list.len() {
            assert!(!parts(&list[..end], 7, 100).1, "{end}");
        }
        for garbage in ["", "null", "}", "]]", "\"", "[[[["] {
            assert!(!parts(garbage, 1, 100).1, "{garbage}");
        }
    }
}
