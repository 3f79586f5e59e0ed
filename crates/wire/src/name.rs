//! Domain names in uncompressed wire form: borrowed ([`NameRef`]) and on the stack ([`Name`]).
//!
//! Names compare case-insensitively (RFC 4343), but both types keep the original case, because a response repeats the
//! case of the query. Case folding works on the whole wire form: a length byte is at most 63 and letters start at 65,
//! so only letters change.

use core::fmt;

/// Maximum length of a name in bytes, including length bytes and the root label (RFC 1035 §2.3.4).
pub const NAME_MAX: usize = 255;
/// Maximum length of a label in bytes.
pub const LABEL_MAX: usize = 63;
/// Maximum number of compression pointers followed in one name: more than any real message needs, and low enough to
/// stop a decompression bomb.
const POINTERS_MAX: usize = 64;

/// Reason why bytes or a text are not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The data ends inside the name.
    Short,
    /// The name is longer than 255 bytes.
    TooLong,
    /// A label is longer than 63 bytes or, in a text, empty.
    BadLabel,
    /// A compression pointer does not point strictly backwards, or the name has too many pointers (RFC 9267 §2).
    BadPointer,
    /// A backslash in a text does not start a valid escape (RFC 1035 §5.1).
    BadEscape,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::Short => "data ends inside a name",
            NameError::TooLong => "name is longer than 255 bytes",
            NameError::BadLabel => "a label is empty or longer than 63 bytes",
            NameError::BadPointer => "a compression pointer does not point backwards, or there are too many",
            NameError::BadEscape => "a backslash must be followed by a character or by three digits up to 255",
        })
    }
}

impl core::error::Error for NameError {}

/// Borrowed name in uncompressed wire form: length-prefixed labels, ending with the root label.
#[derive(Clone, Copy)]
pub struct NameRef<'a> {
    bytes: &'a [u8],
}

impl<'a> NameRef<'a> {
    /// The root name.
    pub const ROOT: NameRef<'static> = NameRef { bytes: &[0] };

    /// Creates a name from bytes that are exactly one uncompressed name.
    ///
    /// # Errors
    /// The bytes are not one valid name.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, NameError> {
        let end = plain_name_end(bytes)?;
        if end == bytes.len() { Ok(NameRef { bytes }) } else { Err(NameError::BadLabel) }
    }

    /// Returns the wire form, including the root label.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the length in wire form: 1 to 255 bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a name is never empty: the root has one byte")]
    pub const fn len(self) -> usize {
        self.bytes.len()
    }

    /// Returns true for the root name.
    #[must_use]
    pub const fn is_root(self) -> bool {
        self.bytes.len() == 1
    }

    /// Returns the labels from left to right, without the root label.
    #[must_use]
    pub const fn labels(self) -> Labels<'a> {
        Labels { rest: self.bytes }
    }

    /// Returns the name without its leftmost label, or `None` for the root.
    #[must_use]
    pub fn parent(self) -> Option<NameRef<'a>> {
        let (&length, _) = self.bytes.split_first()?;
        debug_assert!((length == 0) == self.is_root(), "a name ends with the root");
        (length != 0).then(|| NameRef { bytes: &self.bytes[1 + usize::from(length)..] })
    }

    /// Returns this name and all its ancestors, ending with the root.
    pub fn ancestors(self) -> impl Iterator<Item = NameRef<'a>> {
        core::iter::successors(Some(self), |name| name.parent())
    }

    /// Returns the number of bytes before `zone` in this name, or `None` if this name is not at or below `zone`.
    /// Ignores case.
    #[must_use]
    pub fn prefix_len(self, zone: NameRef<'_>) -> Option<usize> {
        let at = self.bytes.len().checked_sub(zone.bytes.len())?;
        if !self.bytes[at..].eq_ignore_ascii_case(zone.bytes) {
            return None;
        }
        // The bytes match, but they are a suffix of labels only if a label starts at this offset.
        let mut label = 0;
        while label < at {
            label += 1 + usize::from(self.bytes[label]);
        }
        (label == at).then_some(at)
    }

    /// Returns true if this name is at or below `zone`. Ignores case.
    #[must_use]
    pub fn is_within(self, zone: NameRef<'_>) -> bool {
        self.prefix_len(zone).is_some()
    }

    /// Returns true if both names are equal. Ignores case.
    #[must_use]
    pub fn same(self, other: NameRef<'_>) -> bool {
        self.bytes.eq_ignore_ascii_case(other.bytes)
    }

    /// Copies the name to the stack.
    #[must_use]
    pub fn to_name(self) -> Name {
        let mut name = Name::root();
        name.set(self);
        name
    }
}

impl PartialEq for NameRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.same(*other)
    }
}

impl Eq for NameRef<'_> {}

impl fmt::Display for NameRef<'_> {
    /// Writes the absolute name in presentation format, with the escapes of RFC 1035 §5.1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        if self.is_root() {
            return f.write_char('.');
        }
        for label in self.labels() {
            let mut rest = label;
            while let Some(at) = rest.iter().position(|byte| is_escaped(*byte)) {
                f.write_str(plain(&rest[..at]))?;
                match rest[at] {
                    byte @ 0x21..=0x7e => write!(f, "\\{}", char::from(byte))?,
                    byte => write!(f, "\\{byte:03}")?,
                }
                rest = &rest[at + 1..];
            }
            f.write_str(plain(rest))?;
            f.write_char('.')?;
        }
        Ok(())
    }
}

/// Returns true for bytes of a label that have another form in text.
const fn is_escaped(byte: u8) -> bool {
    matches!(byte, b'.' | b'\\' | b'"' | b'(' | b')' | b';' | b'@' | b'$' | 0..=0x20 | 0x7f..)
}

/// Returns bytes that are not escaped, which are ASCII, as text.
fn plain(bytes: &[u8]) -> &str {
    debug_assert!(bytes.is_ascii(), "bytes that are not ASCII are escaped");
    core::str::from_utf8(bytes).unwrap_or_default()
}

impl fmt::Debug for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Iterator over the labels of a name, from left to right.
#[derive(Clone)]
pub struct Labels<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Labels<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (&length, rest) = self.rest.split_first()?;
        if length == 0 {
            return None;
        }
        let (label, rest) = rest.split_at_checked(usize::from(length))?;
        self.rest = rest;
        Some(label)
    }
}

/// Name in uncompressed wire form, on the stack.
#[derive(Clone)]
pub struct Name {
    len: u8,
    bytes: [u8; NAME_MAX],
}

impl Name {
    /// Returns the root name.
    #[must_use]
    pub const fn root() -> Name {
        Name { len: 1, bytes: [0; NAME_MAX] }
    }

    /// Reads the name at offset `at` of `packet`, following compression pointers. Returns the name and the offset after
    /// it.
    ///
    /// # Errors
    /// The bytes are not a valid name. A pointer that does not point strictly backwards is an error.
    pub fn read(packet: &[u8], at: usize) -> Result<(Name, usize), NameError> {
        let mut name = Name::root();
        let end = name.read_from(packet, at)?;
        Ok((name, end))
    }

    /// Reads a name like [`Name::read`] into this name. On error, this name becomes the root.
    ///
    /// # Errors
    /// The same as for [`Name::read`].
    pub fn read_from(&mut self, packet: &[u8], at: usize) -> Result<usize, NameError> {
        match self.try_read_from(packet, at) {
            Ok(end) => Ok(end),
            Err(error) => {
                *self = Name::root();
                Err(error)
            }
        }
    }

    fn try_read_from(&mut self, packet: &[u8], mut at: usize) -> Result<usize, NameError> {
        let (mut len, mut end, mut pointers) = (0usize, None, 0);
        loop {
            let length = *packet.get(at).ok_or(NameError::Short)?;
            match length {
                0 => break,
                1..=0x3f => {
                    let next = at + 1 + usize::from(length);
                    let label = packet.get(at..next).ok_or(NameError::Short)?;
                    // Leaves one byte for the root label.
                    if len + label.len() >= NAME_MAX {
                        return Err(NameError::TooLong);
                    }
                    self.bytes[len..len + label.len()].copy_from_slice(label);
                    len += label.len();
                    at = next;
                }
                0xc0.. => {
                    let low = *packet.get(at + 1).ok_or(NameError::Short)?;
                    let target = usize::from(length & 0x3f) << 8 | usize::from(low);
                    end.get_or_insert(at + 2);
                    pointers += 1;
                    if target >= at || pointers > POINTERS_MAX {
                        return Err(NameError::BadPointer);
                    }
                    at = target;
                }
                _ => return Err(NameError::BadLabel),
            }
        }
        debug_assert!(len < NAME_MAX, "a name has room for the root label");
        self.bytes[len] = 0;
        self.len = length_byte(len + 1);
        Ok(end.unwrap_or(at + 1))
    }

    /// Parses presentation format. A name without a final dot is also absolute.
    ///
    /// # Errors
    /// The text is not a valid name.
    pub fn from_text(text: &str) -> Result<Name, NameError> {
        let mut name = Name::root();
        if text == "." {
            return Ok(name);
        }
        let (mut label, mut filled) = ([0u8; LABEL_MAX], 0);
        let mut bytes = text.bytes();
        let mut ended = false;
        while let Some(byte) = bytes.next() {
            let (byte, escaped) = if byte == b'\\' { (unescape(&mut bytes)?, true) } else { (byte, false) };
            ended = byte == b'.' && !escaped;
            if ended {
                name.push_label(&label[..filled])?;
                filled = 0;
            } else {
                *label.get_mut(filled).ok_or(NameError::BadLabel)? = byte;
                filled += 1;
            }
        }
        if !ended {
            name.push_label(&label[..filled])?;
        }
        Ok(name)
    }

    /// Appends a label, directly before the root label.
    ///
    /// # Errors
    /// The label is empty or longer than 63 bytes, or the name would exceed 255 bytes.
    pub fn push_label(&mut self, label: &[u8]) -> Result<(), NameError> {
        if label.is_empty() || label.len() > LABEL_MAX {
            return Err(NameError::BadLabel);
        }
        let start = usize::from(self.len) - 1;
        let end = start + 1 + label.len();
        if end >= NAME_MAX {
            return Err(NameError::TooLong);
        }
        self.bytes[start] = length_byte(label.len());
        self.bytes[start + 1..end].copy_from_slice(label);
        self.bytes[end] = 0;
        self.len = length_byte(end + 1);
        debug_assert!(self.is_whole(), "a name is its labels and the root");
        Ok(())
    }

    /// Appends `suffix` in place of the root label.
    ///
    /// # Errors
    /// The name would exceed 255 bytes.
    pub fn append(&mut self, suffix: NameRef<'_>) -> Result<(), NameError> {
        let start = usize::from(self.len) - 1;
        let end = start + suffix.len();
        let room = self.bytes.get_mut(start..end).ok_or(NameError::TooLong)?;
        room.copy_from_slice(suffix.bytes);
        self.len = length_byte(end);
        debug_assert!(self.is_whole(), "a name is its labels and the root");
        Ok(())
    }

    /// Returns true if the bytes are exactly one name.
    fn is_whole(&self) -> bool {
        plain_name_end(self.as_bytes()) == Ok(usize::from(self.len))
    }

    /// Replaces this name by `other`.
    pub fn set(&mut self, other: NameRef<'_>) {
        self.bytes[..other.len()].copy_from_slice(other.bytes);
        self.len = length_byte(other.len());
    }

    /// Replaces this name by `other` in lower case.
    pub fn set_lowercase(&mut self, other: NameRef<'_>) {
        self.set(other);
        self.bytes[..usize::from(self.len)].make_ascii_lowercase();
    }

    /// Converts this name to lower case.
    #[must_use]
    pub fn into_lowercase(mut self) -> Name {
        self.bytes[..usize::from(self.len)].make_ascii_lowercase();
        self
    }

    /// Borrows the name.
    #[must_use]
    pub fn as_ref(&self) -> NameRef<'_> {
        NameRef { bytes: &self.bytes[..usize::from(self.len)] }
    }

    /// Returns the wire form, including the root label.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Default for Name {
    fn default() -> Self {
        Name::root()
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref().same(other.as_ref())
    }
}

impl Eq for Name {}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_ref(), f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the length of the uncompressed name at the start of `bytes`.
fn plain_name_end(bytes: &[u8]) -> Result<usize, NameError> {
    let mut end = 0;
    loop {
        let length = *bytes.get(end).ok_or(NameError::Short)?;
        if usize::from(length) > LABEL_MAX {
            return Err(NameError::BadLabel);
        }
        end += 1 + usize::from(length);
        if end > NAME_MAX {
            return Err(NameError::TooLong);
        }
        if length == 0 {
            return Ok(end);
        }
    }
}

/// Returns the offset after the name at `at` of `packet`, compressed or not. Does not follow pointers.
pub(crate) fn skip_name(packet: &[u8], mut at: usize) -> Result<usize, NameError> {
    let start = at;
    loop {
        let length = *packet.get(at).ok_or(NameError::Short)?;
        match length {
            0 => return Ok(at + 1),
            1..=0x3f => at += 1 + usize::from(length),
            0xc0.. => return if at + 1 < packet.len() { Ok(at + 2) } else { Err(NameError::Short) },
            _ => return Err(NameError::BadLabel),
        }
        if at - start >= NAME_MAX {
            return Err(NameError::TooLong);
        }
    }
}

/// Decodes the rest of an escape after its backslash: three decimal digits or a character (RFC 1035 §5.1).
fn unescape(bytes: &mut core::str::Bytes<'_>) -> Result<u8, NameError> {
    let first = bytes.next().ok_or(NameError::BadEscape)?;
    if !first.is_ascii_digit() {
        return Ok(first);
    }
    let mut value = u16::from(first - b'0');
    for _ in 0..2 {
        let digit = bytes.next().filter(u8::is_ascii_digit).ok_or(NameError::BadEscape)?;
        value = value * 10 + u16::from(digit - b'0');
    }
    u8::try_from(value).map_err(|_| NameError::BadEscape)
}

/// Converts a length that the caller has bounded by [`NAME_MAX`].
#[allow(clippy::cast_possible_truncation, reason = "names and labels are at most 255 bytes")]
const fn length_byte(length: usize) -> u8 {
    length as u8
}

#[cfg(test)]
#[path = "name_exhaustive_tests.rs"]
mod exhaustive_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::from_text(text).unwrap()
    }

    #[test]
    fn round_trips_presentation_format() {
        for text in [".", "a.", "web.Prod.svc.cluster.local.", "\\000\\255.x.", "a\\.b.c.", "_http._tcp.x."] {
            assert_eq!(name(text).to_string(), text);
        }
        assert_eq!(name("no.final.dot").to_string(), "no.final.dot.");
    }

    #[test]
    fn rejects_texts_that_are_not_names() {
        let long_label = "a".repeat(64);
        let long_name = "a.".repeat(128);
        let cases = [
            ("", NameError::BadLabel),
            ("a..b", NameError::BadLabel),
            (".a", NameError::BadLabel),
            (&long_label, NameError::BadLabel),
            (&long_name, NameError::TooLong),
            ("a\\25", NameError::BadEscape),
            ("a\\999", NameError::BadEscape),
            ("a\\", NameError::BadEscape),
        ];
        for (text, error) in cases {
            assert_eq!(Name::from_text(text).err(), Some(error), "{text}");
        }
        assert_eq!(name(&"a.".repeat(127)).as_ref().len(), 255);
    }

    #[test]
    fn zones_match_at_label_boundaries_only() {
        let zone = name("Cluster.Local.");
        assert_eq!(name("web.cluster.local.").as_ref().prefix_len(zone.as_ref()), Some(4));
        assert_eq!(name("CLUSTER.local.").as_ref().prefix_len(zone.as_ref()), Some(0));
        assert_eq!(name("mycluster.local.").as_ref().prefix_len(zone.as_ref()), None);
        assert_eq!(name("local.").as_ref().prefix_len(zone.as_ref()), None);
        assert_eq!(name("a.b.").as_ref().prefix_len(NameRef::ROOT), Some(4));
        // The byte `\007` and `cluster` inside a label look like a label boundary but are not one.
        let mut tricky = Name::root();
        tricky.push_label(b"x\x07cluster").unwrap();
        tricky.push_label(b"local").unwrap();
        assert_eq!(tricky.as_ref().prefix_len(zone.as_ref()), None);
    }

    #[test]
    fn follows_pointers_backwards_only() {
        //           0  1    2  3    4  5  6     7   8     9
        let packet = [1, b'a', 1, b'b', 0, 1, b'c', 0xc0, 2, 0xc0, 9];
        let (read, end) = Name::read(&packet, 5).unwrap();
        assert_eq!((read.to_string().as_str(), end), ("c.b.", 9));
        assert_eq!(Name::read(&packet, 9).err(), Some(NameError::BadPointer));
        assert_eq!(Name::read(&[0xc0, 2, 0xc0, 0], 2).err(), Some(NameError::BadPointer));
        assert_eq!(Name::read(&[3, b'a'], 0).err(), Some(NameError::Short));
        assert_eq!(Name::read(&[0x80, 0], 0).err(), Some(NameError::BadLabel));
        assert_eq!(skip_name(&packet, 5), Ok(9));
    }

    #[test]
    fn bounds_chains_of_pointers() {
        // Each pointer leads to the previous one: each is legal, but the chain is too long.
        let mut packet = vec![0u8; 2];
        for at in (0..2000u16).step_by(2) {
            packet.extend_from_slice(&(0xc000 | at).to_be_bytes());
        }
        assert_eq!(Name::read(&packet, packet.len() - 2).err(), Some(NameError::BadPointer));
        // The pointer at byte 2 leads to the root, so the pointer at byte 2 * N is a chain of N.
        assert!(Name::read(&packet, 2 * POINTERS_MAX).is_ok());
        assert!(Name::read(&packet, 2 * (POINTERS_MAX + 1)).is_err());
    }

    #[test]
    fn labels_have_1_to_63_bytes() {
        for (length, expected) in [(0, false), (1, true), (63, true), (64, false), (255, false)] {
            assert_eq!(name("a.").push_label(&vec![b'x'; length]).is_ok(), expected, "{length}");
        }
    }

    #[test]
    fn appends_a_name_up_to_the_longest() {
        let mut whole = name("a.");
        whole.append(name("b.c.").as_ref()).unwrap();
        assert_eq!(whole.to_string(), "a.b.c.");
        let long = name(&"a.".repeat(125));
        assert!(name("b.c.").append(long.as_ref()).is_ok());
        let longer = name(&"a.".repeat(126));
        assert_eq!(name("b.c.").append(longer.as_ref()), Err(NameError::TooLong));
    }

    #[test]
    fn lists_ancestors_up_to_the_root() {
        let texts: Vec<String> = name("a.b.").as_ref().ancestors().map(|n| n.to_string()).collect();
        assert_eq!(texts, ["a.b.", "b.", "."]);
    }

    #[test]
    fn compares_without_regard_to_case() {
        let (upper, lower) = (name("WEB[.Test."), name("web[.test."));
        assert_eq!(upper.as_ref(), lower.as_ref());
        assert_eq!(upper.into_lowercase().as_bytes(), lower.as_bytes());
        // `{` is `[` with the bit that makes a letter lower case, and is another character.
        assert_ne!(name("web{.test.").as_ref(), lower.as_ref());
        assert_ne!(name("web[.test.test.").as_ref(), lower.as_ref());
        assert!(name("a.") == name("A.") && name("a.") != name("b.") && name("a.") != name("a.a."));
    }
}
