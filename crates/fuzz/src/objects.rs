//! Fuzz target for responses of an API server: lists and watches, in JSON and in protobuf.

use cluster::object::{Event, Object};
use cluster::{Kind, Reducer, Request, Source};
use kubeapi::decode::{Encoding, EventDecoder, ListDecoder, ListItem, OutOfSyncError, Unreadable, WatchEvent};

const KINDS: [Kind; 6] =
    [Kind::Namespace, Kind::Service, Kind::EndpointSlice, Kind::Pod, Kind::ServiceImport, Kind::ImportedSlice];
/// Chunk size in bytes of the second run.
const SIZE: usize = 7;

/// Response of the API server. The first byte minus `0` selects the format: bit 0 is set for protobuf, bit 1 for a
/// list, and the other bits are the object kind.
///
/// The result must not depend on the size of the chunks, and a reducer must accept it.
pub fn decode(input: &[u8]) {
    let Some((head, body)) = input.split_first() else { return };
    let head = head.wrapping_sub(b'0');
    let encoding = if head & 1 == 0 { Encoding::Json } else { Encoding::Protobuf };
    let kind = KINDS[usize::from(head >> 2) % KINDS.len()];
    let read =
        |size: usize| if head & 2 == 0 { watch(encoding, kind, body, size) } else { list(encoding, kind, body, size) };
    assert_eq!(read(body.len().max(1)), read(SIZE));
}

/// Decoded events, and whether the response ended at a valid point.
type Said = (Vec<String>, bool);

fn watch(encoding: Encoding, kind: Kind, body: &[u8], size: usize) -> Said {
    let (mut decoder, mut reader) = (EventDecoder::new(encoding, kind), Reader::new(kind));
    let lost =
        body.chunks(size).any(|bytes| decoder.feed(bytes, &mut |event| reader.take(&event)) == Err(OutOfSyncError));
    (reader.said, !lost && !decoder.is_within_an_event())
}

fn list(encoding: Encoding, kind: Kind, body: &[u8], size: usize) -> Said {
    let (mut decoder, mut reader) = (ListDecoder::new(encoding, kind), Reader::new(kind));
    let lost =
        body.chunks(size).any(|bytes| decoder.feed(bytes, &mut |item| reader.apply_item(&item)) == Err(OutOfSyncError));
    assert!(!(lost && decoder.is_complete()), "a list is both lost and complete");
    (reader.said, decoder.is_complete())
}

/// Records the decoded events and applies them to a reducer.
struct Reader {
    said: Vec<String>,
    reducer: Reducer,
    watch: usize,
}

impl Reader {
    fn new(kind: Kind) -> Reader {
        let source = Source::Endpoint { url: String::new(), tls: None };
        let spec = Request { pods: true, multicluster: true, endpoint_zones: true, ..Request::new(source) }.watches();
        let watch = spec.watches.iter().position(|watch| watch.kind == kind);
        Reader { said: Vec::new(), reducer: Reducer::new(&spec).0, watch: watch.expect("all kinds are watched") }
    }

    fn take(&mut self, event: &WatchEvent<'_>) {
        self.said.push(format!("{event:?}"));
        match event {
            WatchEvent::Applied { object, .. } => self.apply_object(object),
            WatchEvent::Deleted { namespace, name, .. } => self.apply(&Event::Deleted { namespace, name }),
            WatchEvent::Unreadable { unreadable, .. } => self.apply_unreadable(unreadable),
            WatchEvent::Bookmark { .. } | WatchEvent::Refused { .. } => {}
        }
    }

    fn apply_item(&mut self, item: &ListItem<'_>) {
        self.said.push(format!("{item:?}"));
        match item {
            ListItem::Object(object) => self.apply_object(object),
            ListItem::Unreadable(unreadable) => self.apply_unreadable(unreadable),
            ListItem::Metadata { .. } => {}
        }
    }

    fn apply_object(&mut self, object: &Object<'_>) {
        assert!(!object.meta().name.is_empty(), "an object without a name");
        self.apply(&Event::Applied(object.clone()));
    }

    fn apply_unreadable(&mut self, Unreadable { namespace, name, .. }: &Unreadable<'_>) {
        self.apply(&Event::Unreadable { namespace, name });
    }

    fn apply(&mut self, event: &Event<'_>) {
        self.reducer.apply(self.watch, event, 0);
    }
}
