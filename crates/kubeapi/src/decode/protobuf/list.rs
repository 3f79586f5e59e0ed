//! A list in protobuf: magic octets, an envelope, in it the list, and in that its items, of which never more than one is
//! held.

use cluster::Kind;

use super::fields::{Key, Varint, Wire};
use super::stream::{Step, Stream};
use super::{ENVELOPE_RAW, MAGIC, Wrong, list_metadata, nameless, object};
use crate::decode::{Lost, OBJECT_MAX, Piece};

/// Fields of a list: `metadata` and `items`.
const METADATA: u64 = 1;
const ITEMS: u64 = 2;

/// Where in the response we are.
#[derive(Default)]
pub(in crate::decode) struct List {
    stream: Stream,
    place: Place,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Before the magic octets.
    #[default]
    Start,
    /// In the envelope; whether the list was in what is behind us.
    Envelope { is_complete: bool },
    /// In the list, of which so many octets are still to come.
    List { left: usize },
}

impl List {
    /// Takes more of the response.
    pub(in crate::decode) fn feed(
        &mut self,
        kind: Kind,
        octets: &[u8],
        each: &mut dyn FnMut(Piece<'_>),
    ) -> Result<(), Lost> {
        let place = &mut self.place;
        self.stream.feed(octets, |at_hand| {
            place.step(kind, at_hand, each).unwrap_or_else(|wrong| {
                each(nameless(wrong));
                Step::Lost
            })
        })
    }

    /// Whether a whole list was there. The envelope has no end that could be told.
    pub(in crate::decode) fn is_complete(&self) -> bool {
        self.place == Place::Envelope { is_complete: true } && !self.stream.is_within_a_part()
    }
}

impl Place {
    fn step(&mut self, kind: Kind, at_hand: &[u8], each: &mut dyn FnMut(Piece<'_>)) -> Result<Step, Wrong> {
        match *self {
            Place::Start => self.magic(at_hand),
            Place::Envelope { .. } => self.envelope(at_hand),
            Place::List { left } => {
                let in_list = at_hand.get(..left).unwrap_or(at_hand);
                let step = next_field(kind, in_list, left, each)?;
                self.advance(left, &step)?;
                Ok(step)
            }
        }
    }

    fn magic(&mut self, at_hand: &[u8]) -> Result<Step, Wrong> {
        let Some(begin) = at_hand.get(..MAGIC.len()) else { return Ok(Step::Need(MAGIC.len())) };
        if begin != MAGIC {
            return Err(super::NO_MAGIC);
        }
        *self = Place::Envelope { is_complete: false };
        Ok(Step::Took(MAGIC.len()))
    }

    fn envelope(&mut self, at_hand: &[u8]) -> Result<Step, Wrong> {
        let Some(head) = Head::read(at_hand)? else { return Ok(Step::Need(at_hand.len() + 1)) };
        if head.number != ENVELOPE_RAW {
            return Ok(Step::Skip(head.octets.saturating_add(head.length)));
        }
        *self = Place::list(head.length);
        Ok(Step::Took(head.octets))
    }

    /// Goes on in the list, of which so many octets were still to come.
    fn advance(&mut self, left: usize, step: &Step) -> Result<(), Wrong> {
        match step {
            Step::Took(length) | Step::Skip(length) => {
                *self = Place::list(left.checked_sub(*length).ok_or(BEYOND)?);
                Ok(())
            }
            Step::Need(length) if *length > left => Err(BEYOND),
            Step::Need(_) | Step::Lost => Ok(()),
        }
    }

    const fn list(left: usize) -> Place {
        if left == 0 { Place::Envelope { is_complete: true } } else { Place::List { left } }
    }
}

/// The next field of the list.
fn next_field(kind: Kind, at_hand: &[u8], left: usize, each: &mut dyn FnMut(Piece<'_>)) -> Result<Step, Wrong> {
    let Some(head) = Head::read(at_hand)? else { return Ok(Step::Need(at_hand.len() + 1)) };
    let whole = head.octets.checked_add(head.length).filter(|whole| *whole <= left).ok_or(BEYOND)?;
    if !(head.is_delimited && matches!(head.number, METADATA | ITEMS)) {
        return Ok(Step::Skip(whole));
    }
    if head.length > OBJECT_MAX {
        each(Piece::too_long());
        return Ok(Step::Skip(whole));
    }
    let Some(part) = at_hand.get(head.octets..whole) else { return Ok(Step::Need(whole)) };
    if head.number == ITEMS {
        object(kind, part, each);
    } else {
        list_metadata(part, each);
    }
    Ok(Step::Took(whole))
}

const BEYOND: Wrong = Wrong::Syntax("an item is longer than the list");

/// What stands before the octets of a field.
struct Head {
    number: u64,
    is_delimited: bool,
    /// Its own octets.
    octets: usize,
    /// Those behind it.
    length: usize,
}

impl Head {
    /// `None` if it is not there in whole.
    fn read(at_hand: &[u8]) -> Result<Option<Head>, Wrong> {
        let Some((key, octets)) = varint(at_hand)? else { return Ok(None) };
        let key = Key::of(key).ok_or(Wrong::Syntax("a field has no number, or no type"))?;
        let rest = at_hand.get(octets..).unwrap_or_default();
        let (more, length) = match key.wire {
            Wire::Fixed(length) => (0, length),
            Wire::Varint | Wire::Delimited => {
                let Some((value, more)) = varint(rest)? else { return Ok(None) };
                let length = if key.wire == Wire::Varint { 0 } else { usize::try_from(value).map_err(|_| BEYOND)? };
                (more, length)
            }
        };
        let is_delimited = key.wire == Wire::Delimited;
        Ok(Some(Head { number: key.number, is_delimited, octets: octets + more, length }))
    }
}

fn varint(octets: &[u8]) -> Result<Option<(u64, usize)>, Wrong> {
    match Varint::read(octets) {
        Varint::Whole(value, length) => Ok(Some((value, length))),
        Varint::Cut => Ok(None),
        Varint::Endless => Err(Wrong::Syntax("a number has no end")),
    }
}
