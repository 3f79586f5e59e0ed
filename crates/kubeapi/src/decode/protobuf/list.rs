//! Decoder for a list in protobuf: magic bytes, an envelope, and the list message in it. The decoder buffers at most
//! one item of the list.

use cluster::Kind;

use super::fields::{Key, Varint, Wire};
use super::stream::{Step, Stream};
use super::{ENVELOPE_RAW, MAGIC, ProtobufError, list_metadata, nameless, object};
use crate::decode::{ListItem, OBJECT_MAX, OutOfSyncError, Unreadable};

/// Field numbers of a list.
const METADATA: u64 = 1;
const ITEMS: u64 = 2;

/// Part of a list.
pub(super) enum ListPart<'a> {
    Item(&'a [u8]),
    Metadata(&'a [u8]),
    Unreadable(Unreadable<'static>),
}

/// State of the decoder.
#[derive(Default)]
pub(in crate::decode) struct List {
    stream: Stream,
    position: Position,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Position {
    /// Expects the magic bytes.
    #[default]
    Start,
    /// Expects a field of the envelope. `is_complete` is true after the list.
    Envelope { is_complete: bool },
    /// Expects a field of the list. `left` is the number of bytes up to the end of the list.
    List { left: usize },
}

impl List {
    /// Processes more bytes of the response.
    pub(in crate::decode) fn feed(
        &mut self,
        kind: Kind,
        bytes: &[u8],
        each: &mut dyn FnMut(ListItem<'_>),
    ) -> Result<(), OutOfSyncError> {
        self.feed_raw(bytes, &mut |part| {
            each(match part {
                ListPart::Item(item) => object(kind, item).into(),
                ListPart::Metadata(metadata) => list_metadata(metadata),
                ListPart::Unreadable(unreadable) => ListItem::Unreadable(unreadable),
            });
        })
    }

    /// Processes more bytes of the response, and hands out its parts without decoding them.
    pub(super) fn feed_raw(&mut self, bytes: &[u8], each: &mut dyn FnMut(ListPart<'_>)) -> Result<(), OutOfSyncError> {
        let position = &mut self.position;
        self.stream.feed(bytes, |at_hand| {
            position.step(at_hand, each).unwrap_or_else(|error| {
                each(ListPart::Unreadable(nameless(error)));
                Step::OutOfSync
            })
        })
    }

    /// Returns true after a whole list. The end of the envelope is not visible in the encoding.
    pub(in crate::decode) fn is_complete(&self) -> bool {
        self.position == Position::Envelope { is_complete: true } && !self.stream.is_within_a_part()
    }
}

impl Position {
    fn step(&mut self, at_hand: &[u8], each: &mut dyn FnMut(ListPart<'_>)) -> Result<Step, ProtobufError> {
        match *self {
            Position::Start => self.magic(at_hand),
            Position::Envelope { .. } => self.envelope(at_hand),
            Position::List { left } => {
                let in_list = at_hand.get(..left).unwrap_or(at_hand);
                let step = next_field(in_list, left, each)?;
                self.advance(left, &step)?;
                Ok(step)
            }
        }
    }

    fn magic(&mut self, at_hand: &[u8]) -> Result<Step, ProtobufError> {
        let Some(begin) = at_hand.get(..MAGIC.len()) else { return Ok(Step::Need(MAGIC.len())) };
        if begin != MAGIC {
            return Err(super::NO_MAGIC);
        }
        *self = Position::Envelope { is_complete: false };
        Ok(Step::Took(MAGIC.len()))
    }

    fn envelope(&mut self, at_hand: &[u8]) -> Result<Step, ProtobufError> {
        let Some(head) = Head::read(at_hand)? else { return Ok(Step::Need(at_hand.len() + 1)) };
        if head.number != ENVELOPE_RAW {
            return Ok(Step::Skip(head.bytes.saturating_add(head.length)));
        }
        *self = Position::list(head.length);
        Ok(Step::Took(head.bytes))
    }

    /// Advances in a list that had `left` bytes up to its end.
    fn advance(&mut self, left: usize, step: &Step) -> Result<(), ProtobufError> {
        match step {
            Step::Took(length) | Step::Skip(length) => {
                *self = Position::list(left.checked_sub(*length).ok_or(BEYOND)?);
                Ok(())
            }
            Step::Need(length) if *length > left => Err(BEYOND),
            Step::Need(_) | Step::OutOfSync => Ok(()),
        }
    }

    const fn list(left: usize) -> Position {
        if left == 0 { Position::Envelope { is_complete: true } } else { Position::List { left } }
    }
}

/// Processes the next field of the list.
fn next_field(at_hand: &[u8], left: usize, each: &mut dyn FnMut(ListPart<'_>)) -> Result<Step, ProtobufError> {
    let Some(head) = Head::read(at_hand)? else { return Ok(Step::Need(at_hand.len() + 1)) };
    let whole = head.bytes.checked_add(head.length).filter(|whole| *whole <= left).ok_or(BEYOND)?;
    if !(head.is_delimited && matches!(head.number, METADATA | ITEMS)) {
        return Ok(Step::Skip(whole));
    }
    if head.length > OBJECT_MAX {
        each(ListPart::Unreadable(Unreadable::too_long()));
        return Ok(Step::Skip(whole));
    }
    let Some(part) = at_hand.get(head.bytes..whole) else { return Ok(Step::Need(whole)) };
    each(if head.number == ITEMS { ListPart::Item(part) } else { ListPart::Metadata(part) });
    Ok(Step::Took(whole))
}

const BEYOND: ProtobufError = ProtobufError::Syntax("an item is longer than the list");

/// Tag of a field, with its length prefix if it has one.
struct Head {
    number: u64,
    is_delimited: bool,
    /// Size of the head itself in bytes.
    bytes: usize,
    /// Size of the value after it in bytes.
    length: usize,
}

impl Head {
    /// Decodes a head, or returns `None` if more bytes are needed.
    fn read(at_hand: &[u8]) -> Result<Option<Head>, ProtobufError> {
        let Some((key, bytes)) = varint(at_hand)? else { return Ok(None) };
        let key = Key::of(key).ok_or(ProtobufError::Syntax("a field has no number, or no type"))?;
        let rest = &at_hand[bytes..];
        let (more, length) = match key.wire {
            Wire::Fixed(length) => (0, length),
            Wire::Varint | Wire::Delimited => {
                let Some((value, more)) = varint(rest)? else { return Ok(None) };
                let length = if key.wire == Wire::Varint { 0 } else { usize::try_from(value).map_err(|_| BEYOND)? };
                (more, length)
            }
        };
        let is_delimited = key.wire == Wire::Delimited;
        Ok(Some(Head { number: key.number, is_delimited, bytes: bytes + more, length }))
    }
}

fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, ProtobufError> {
    match Varint::read(bytes) {
        Varint::Whole(value, length) => Ok(Some((value, length))),
        Varint::Cut => Ok(None),
        Varint::Endless => Err(ProtobufError::Syntax("varint is longer than 10 bytes")),
    }
}
