//! Splits the JSON of a list into its items as it arrives, and buffers at most one of them.
//!
//! It only parses as much JSON as it needs to find `metadata` and the elements of `items` in the outermost object. It
//! does not validate them. Their decoder does that.

use memchr::memchr2;

/// Part of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Element of `items`, an object.
    Item(&'a [u8]),
    /// `metadata` of the list.
    Metadata(&'a [u8]),
    /// Item above the maximum length, which was dropped.
    TooLong,
}

/// State of the scanner.
#[derive(Default)]
pub(crate) struct Items {
    depth: u32,
    string: Option<StringState>,
    /// Last string at depth 1, up to the length of the longest relevant field name.
    word: Vec<u8>,
    field: Field,
    capture: Option<Capture>,
    /// Start of the captured part, if it arrived with earlier bytes.
    partial: Vec<u8>,
    begun: bool,
}

#[derive(Clone, Copy)]
struct StringState {
    escaped: bool,
}

/// Current field of the outermost object.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Field {
    #[default]
    Other,
    Metadata,
    Items,
}

/// Part that is being captured.
#[derive(Clone, Copy)]
struct Capture {
    /// Start of the part in the current bytes.
    start: usize,
    /// Nesting depth of the part.
    around: u32,
    too_long: bool,
}

/// Length of the longest relevant field name.
const WORD_MAX: usize = b"metadata".len();

impl Items {
    /// Processes more bytes of the list and calls `each` for each complete part of at most `most` bytes. A part that
    /// arrives in one chunk is not copied.
    pub(crate) fn feed(&mut self, bytes: &[u8], most: usize, mut each: impl FnMut(Part<'_>)) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at = match self.string {
                Some(state) => self.string_byte(bytes, at, state),
                None => {
                    self.byte(bytes, at, byte, most, &mut each);
                    at + 1
                }
            };
        }
        self.keep(bytes, most);
    }

    /// Returns true after a complete list.
    pub(crate) fn is_complete(&self) -> bool {
        self.begun && self.depth == 0
    }

    /// Scans within a string, up to the next quote or backslash. Returns the position after it.
    fn string_byte(&mut self, bytes: &[u8], at: usize, state: StringState) -> usize {
        if state.escaped {
            self.string = Some(StringState { escaped: false });
            return at + 1;
        }
        let rest = &bytes[at..];
        let end = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        if self.depth == 1 && self.word.len() <= WORD_MAX {
            self.word.extend_from_slice(&rest[..end.min(WORD_MAX + 1)]);
        }
        match rest.get(end) {
            Some(b'"') => self.string = None,
            Some(_) => self.string = Some(StringState { escaped: true }),
            None => {}
        }
        at + end + 1
    }

    fn byte(&mut self, bytes: &[u8], at: usize, byte: u8, most: usize, each: &mut impl FnMut(Part<'_>)) {
        match byte {
            b'"' => {
                self.string = Some(StringState { escaped: false });
                self.word.clear();
            }
            b':' if self.depth == 1 => self.field = field(&self.word),
            b',' if self.depth == 1 => self.field = Field::Other,
            b'{' | b'[' => self.open(at, byte),
            b'}' | b']' => self.close(bytes, at, most, each),
            _ => {}
        }
    }

    fn open(&mut self, at: usize, byte: u8) {
        let wanted = match self.field {
            Field::Metadata => self.depth == 1,
            Field::Items => self.depth == 2,
            Field::Other => false,
        };
        if wanted && byte == b'{' && self.capture.is_none() {
            self.capture = Some(Capture { start: at, around: self.depth, too_long: false });
        }
        self.begun = true;
        self.depth += 1;
    }

    fn close(&mut self, bytes: &[u8], at: usize, most: usize, each: &mut impl FnMut(Part<'_>)) {
        self.depth = self.depth.saturating_sub(1);
        let Some(capture) = self.capture.take_if(|capture| capture.around == self.depth) else { return };
        let rest = &bytes[capture.start..=at];
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

    fn part<'a>(&self, bytes: &'a [u8]) -> Part<'a> {
        if self.field == Field::Metadata { Part::Metadata(bytes) } else { Part::Item(bytes) }
    }

    /// Copies the incomplete part from the current bytes to the buffer.
    fn keep(&mut self, bytes: &[u8], most: usize) {
        let Some(capture) = &mut self.capture else { return };
        let rest = &bytes[capture.start..];
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

    /// Returns the parts of a list that arrives in chunks of `size` bytes.
    fn parts(list: &str, size: usize, most: usize) -> (Vec<String>, bool) {
        let (mut items, mut found) = (Items::default(), Vec::new());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        for event in list.as_bytes().chunks(size) {
            items.feed(event, most, |part| {
                found.push(match part {
                    Part::Item(bytes) => text(bytes),
                    Part::Metadata(bytes) => format!("M{}", text(bytes)),
                    Part::TooLong => "<too long>".to_owned(),
                });
            });
        }
        (found, items.is_complete())
    }

    #[test]
    fn items_are_complete_for_every_chunk_size() {
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
    fn drops_only_the_item_that_is_too_long() {
        let list = format!(r#"{{"items":[{{"a":1}},{{"b":"{}"}},{{"c":3}}]}}"#, "x".repeat(20));
        for size in 1..=list.len() {
            assert_eq!(parts(&list, size, 20).0, [r#"{"a":1}"#, "<too long>", r#"{"c":3}"#]);
        }
    }

    #[test]
    fn a_truncated_list_is_not_complete() {
        let list = r#"{"metadata":{"a":"1"},"items":[{"b":1}]}"#;
        for end in 0..list.len() {
            assert!(!parts(&list[..end], 7, 100).1, "{end}");
        }
        for garbage in ["", "null", "}", "]]", "\"", "[[[["] {
            assert!(!parts(garbage, 1, 100).1, "{garbage}");
        }
    }
}
