//! Watch events in protobuf: frames with a big-endian length prefix of four bytes (`;stream=watch`).

use cluster::Kind;

use super::stream::{Step, Stream};
use super::{event, nameless};
use crate::decode::{OBJECT_MAX, OutOfSyncError, Unreadable, WatchEvent};

/// Size of the length prefix in bytes.
const HEAD: usize = 4;
/// Maximum plausible length of a frame in bytes. A larger value means that the stream is out of sync.
const FRAME_MAX: usize = 16 * OBJECT_MAX;

/// Buffer for an incomplete frame.
#[derive(Default)]
pub(in crate::decode) struct Frames(Stream);

impl Frames {
    /// Processes more bytes of the response.
    pub(in crate::decode) fn feed(
        &mut self,
        kind: Kind,
        bytes: &[u8],
        each: &mut dyn FnMut(WatchEvent<'_>),
    ) -> Result<(), OutOfSyncError> {
        self.feed_raw(bytes, &mut |frame| match frame {
            Ok(frame) => event(kind, frame, each),
            Err(unreadable) => each(WatchEvent::unreadable(unreadable)),
        })
    }

    /// Processes more bytes of the response, and hands out frames without decoding them.
    pub(super) fn feed_raw(&mut self, bytes: &[u8], each: &mut EachFrame<'_>) -> Result<(), OutOfSyncError> {
        self.0.feed(bytes, |at_hand| step(at_hand, each))
    }

    pub(in crate::decode) const fn is_within_a_frame(&self) -> bool {
        self.0.is_within_a_part()
    }
}

/// Receiver of frames.
pub(super) type EachFrame<'f> = dyn FnMut(Result<&[u8], Unreadable<'static>>) + 'f;

fn step(at_hand: &[u8], each: &mut EachFrame<'_>) -> Step {
    let Some(length) = at_hand.first_chunk::<HEAD>() else { return Step::Need(HEAD) };
    let length = u32::from_be_bytes(*length) as usize;
    if length > FRAME_MAX {
        each(Err(nameless(NO_LENGTH)));
        return Step::OutOfSync;
    }
    if length > OBJECT_MAX {
        each(Err(Unreadable::too_long()));
        return Step::Skip(HEAD + length);
    }
    let Some(frame) = at_hand.get(HEAD..HEAD + length) else { return Step::Need(HEAD + length) };
    each(Ok(frame));
    Step::Took(HEAD + length)
}

const NO_LENGTH: super::ProtobufError = super::ProtobufError::Syntax("a frame is longer than any object");
