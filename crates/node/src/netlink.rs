//! Messages to and from the kernel (netlink, RFC 3549 §2): a head, what is particular to the kind, attributes.
//!
//! A dozen kinds are needed, of two of its parts; no library has both without far more around them.

/// It is a request.
pub const REQUEST: u16 = 1;
/// The kernel says whether it did it.
pub const ACK: u16 = 4;
/// What is there is replaced.
pub const REPLACE: u16 = 0x100;
/// It is an error if it is there.
pub const EXCLUSIVE: u16 = 0x200;
/// It is made if it is not there.
pub const CREATE: u16 = 0x400;

/// Octets of a head.
const HEAD: usize = 16;
/// The kind of a message that says how it went.
const OUTCOME: u16 = 2;
/// Marks an attribute that has attributes within.
const NESTED: u16 = 0x8000;

/// A message in the making, or several, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages(Vec<u8>);

impl Messages {
    /// The octets.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.0
    }

    /// Writes one more.
    pub fn message(&mut self, kind: u16, flags: u16, number: u32, write: impl FnOnce(&mut Body<'_>)) {
        let start = self.0.len();
        self.0.extend([0; 4]);
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(flags.to_ne_bytes());
        self.0.extend(number.to_ne_bytes());
        self.0.extend([0; 4]);
        write(&mut Body(&mut self.0));
        let length = u32::try_from(self.0.len() - start).unwrap_or(u32::MAX);
        if let Some(place) = self.0.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
    }
}

/// What stands behind a head, or within an attribute.
#[derive(Debug)]
pub struct Body<'a>(&'a mut Vec<u8>);

impl Body<'_> {
    /// Writes octets as they are.
    pub fn raw(&mut self, octets: &[u8]) -> &mut Self {
        self.0.extend(octets);
        self
    }

    /// Writes an attribute.
    pub fn attribute(&mut self, kind: u16, octets: &[u8]) -> &mut Self {
        self.around(kind, |body| {
            body.raw(octets);
        })
    }

    /// Writes an attribute with a text, a zero at its end.
    pub fn text(&mut self, kind: u16, text: &str) -> &mut Self {
        self.around(kind, |body| {
            body.raw(text.as_bytes()).raw(&[0]);
        })
    }

    /// Writes an attribute with attributes within.
    pub fn nested(&mut self, kind: u16, write: impl FnOnce(&mut Body<'_>)) -> &mut Self {
        self.around(kind | NESTED, write)
    }

    fn around(&mut self, kind: u16, write: impl FnOnce(&mut Body<'_>)) -> &mut Self {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend(kind.to_ne_bytes());
        write(&mut Body(self.0));
        let length = u16::try_from(self.0.len() - start).unwrap_or(u16::MAX);
        if let Some(place) = self.0.get_mut(start..start + 2) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
        // The next one begins at a multiple of four octets.
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its kind.
    pub kind: u16,
    /// The number of the request that it is about.
    pub number: u32,
    /// What stands behind its head.
    pub body: &'a [u8],
}

impl Message<'_> {
    /// How the request went, if that is what this says: 0, or the number of an error.
    #[must_use]
    pub fn outcome(&self) -> Option<i32> {
        (self.kind == OUTCOME).then_some(())?;
        let octets = self.body.get(..4)?.try_into().ok()?;
        Some(i32::from_ne_bytes(octets).saturating_neg())
    }
}

/// The messages of a datagram, until one of them is cut off.
pub fn read(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = datagram;
    core::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(rest.get(..4)?.try_into().ok()?)).ok()?;
        let kind = u16::from_ne_bytes(rest.get(4..6)?.try_into().ok()?);
        let number = u32::from_ne_bytes(rest.get(8..12)?.try_into().ok()?);
        let body = rest.get(HEAD..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, number, body })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_padding() {
        let mut messages = Messages::default();
        messages.message(16, REQUEST | ACK, 7, |body| {
            body.raw(&[9; 4]).text(3, "abc").nested(1, |body| {
                body.attribute(2, &[5]);
            });
        });
        let octets = messages.octets();
        assert_eq!(octets.len(), HEAD + 4 + 8 + 12);
        assert_eq!(octets[..4], 40_u32.to_ne_bytes());
        assert_eq!(octets[20..24], [8_u16.to_ne_bytes(), 3_u16.to_ne_bytes()].concat());
        assert_eq!(octets[28..30], 12_u16.to_ne_bytes(), "a nested one has its contents' padding");
        let read: Vec<Message<'_>> = read(octets).collect();
        assert_eq!((read.len(), read[0].kind, read[0].number), (1, 16, 7));
        assert_eq!(read[0].outcome(), None);
    }

    #[test]
    fn outcomes_and_what_is_cut_off() {
        let mut messages = Messages::default();
        messages.message(OUTCOME, 0, 1, |body| {
            body.raw(&(-17_i32).to_ne_bytes());
        });
        messages.message(OUTCOME, 0, 2, |body| {
            body.raw(&0_i32.to_ne_bytes());
        });
        let octets = messages.octets();
        let outcomes = |octets: &[u8]| read(octets).map(|message| message.outcome()).collect::<Vec<_>>();
        assert_eq!(outcomes(octets), [Some(17), Some(0)]);
        assert_eq!(outcomes(&octets[..octets.len() - 1]), [Some(17)]);
        for end in 0..octets.len() {
            let _ = outcomes(&octets[..end]);
        }
        assert_eq!(outcomes(&[0; 64]), [] as [Option<i32>; 0], "a length of nothing ends it");
    }
}
