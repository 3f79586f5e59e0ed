//! Initial events of a watch, encoded in parts when the first subscriber reads them. Encoding ten thousand objects at
//! once would delay the changes for all others.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::encode::{EventType, Form, put_bookmark, put_event};
use crate::history::{Frame, Variant};
use crate::object::Stored;
use crate::table::Kind;

/// Size of the encoded objects from which a part is complete, in bytes: about a millisecond of compression. Tests have
/// small objects and need several parts.
const PART: usize = if cfg!(test) { 200 } else { 64 << 10 };

/// Initial events that subscribers share.
pub(crate) type SharedEvents = Rc<RefCell<Events>>;

/// Initial events of one version and variant.
#[derive(Default)]
pub(crate) struct Events {
    /// Settings of the encoding, or `None` if there is nothing to encode.
    kind: Option<(Kind, Form)>,
    gzip: bool,
    objects: Vec<Arc<Stored>>,
    /// Number of the objects that are encoded.
    encoded: usize,
    /// Version for the bookmark at the end, until it is encoded.
    end: Option<u64>,
    parts: Vec<Frame>,
}

impl Events {
    /// Prepares events for these objects, with a bookmark at the end if there is a version for it.
    pub(crate) fn new(kind: Kind, variant: &Variant, objects: Vec<Arc<Stored>>, end: Option<u64>) -> SharedEvents {
        let kind = Some((kind, variant.form));
        Rc::new(RefCell::new(Events { kind, gzip: variant.gzip, objects, encoded: 0, end, parts: Vec::new() }))
    }

    /// Returns a part, which is encoded if it is the next one, or `None` after the last one.
    fn part(&mut self, number: usize) -> Option<Frame> {
        if number == self.parts.len()
            && let Some(part) = self.encode()
        {
            self.parts.push(part);
        }
        self.parts.get(number).cloned()
    }

    fn encode(&mut self) -> Option<Frame> {
        let (kind, form) = self.kind?;
        let mut out = Vec::with_capacity(2 * PART);
        while out.len() < PART
            && let Some(object) = self.objects.get(self.encoded)
        {
            put_event(&mut out, kind, form, EventType::Added, object);
            self.encoded += 1;
        }
        if self.encoded == self.objects.len() {
            // Nothing needs the objects any more.
            (self.objects, self.encoded) = (Vec::new(), 0);
            if let Some(version) = self.end.take() {
                put_bookmark(&mut out, kind, form, version, true);
            }
        }
        (!out.is_empty()).then(|| Frame::of_list(&out, self.gzip))
    }
}

/// Position of a subscriber in initial events.
pub(crate) struct Initial {
    events: SharedEvents,
    next: usize,
}

impl Initial {
    pub(crate) const fn new(events: SharedEvents) -> Initial {
        Initial { events, next: 0 }
    }

    /// Returns the next part, or `None` after the last one.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let part = self.events.borrow_mut().part(self.next)?;
        self.next += 1;
        Some(part)
    }
}
