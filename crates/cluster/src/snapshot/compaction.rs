//! Finds the records of a log that still count.
//!
//! It stores the offset of the last record of each object that exists, about 40 bytes for each, without the object and
//! its name.

use core::hash::BuildHasher;
use std::collections::BTreeMap;
use std::hash::RandomState;

use hashbrown::HashTable;
use host::invariant::holds;

use crate::object::Meta;
use crate::snapshot::{Entry, Progress, Record};
use crate::{Kind, Watch};

/// Part of a compacted log.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "pieces are passed on one by one and not stored")]
pub enum Piece<'a> {
    /// A new record.
    New(Record<'a>),
    /// Bytes of the old log.
    Copy {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
}

/// State after the records of a log so far.
#[derive(Default)]
pub struct Compaction {
    hasher: RandomState,
    objects: HashTable<Place>,
    watches: BTreeMap<Watch, Listed>,
    /// Number of the next watch.
    next: u32,
    /// End of the last record in the log.
    end: u64,
}

/// Last record of a live object.
#[derive(Clone, Copy)]
struct Place {
    /// Hash of kind, namespace and name. No two watches see the same object.
    key: u64,
    offset: u64,
    length: u32,
    /// Number of the watch.
    watch: u32,
    /// Number of the list that last contained the object.
    list: u32,
}

/// State of a watch after the records so far.
struct Listed {
    number: u32,
    /// Number of the newest list.
    list: u32,
    progress: Progress,
}

impl Listed {
    /// Hands out the part of the compacted log that is about this watch, which has these objects.
    fn hand_out<E>(
        &self,
        watch: &Watch,
        places: &[Place],
        each: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Progress { is_listing, is_complete, ref position, ref floor } = self.progress;
        let is_seen = |place: &&Place| is_listing && place.list == self.list;
        let copy = |place: &Place| Piece::Copy { offset: place.offset, length: place.length };
        let new = |entry| Piece::New(Record::of(watch, entry));
        each(new(Entry::Listing))?;
        places.iter().filter(|place| !is_seen(place)).try_for_each(|place| each(copy(place)))?;
        if is_complete {
            let position = if is_listing { floor } else { position };
            each(new(Entry::Listed { position: position.as_deref().unwrap_or_default() }))?;
        }
        if is_listing {
            each(new(Entry::Listing))?;
            places.iter().filter(is_seen).try_for_each(|place| each(copy(place)))?;
            // Copied records of events have positions of their own, from before the list.
            each(new(Entry::Position(position.as_deref().unwrap_or_default())))?;
        }
        Ok(())
    }
}

impl Compaction {
    /// Adds the next record of the log, which has this place in it.
    pub fn add(&mut self, record: &Record<'_>, offset: u64, length: u32) {
        holds(length > 0 && self.end <= offset, "records are added in the order of the log");
        self.end = offset + u64::from(length);
        let Record::Event { kind, namespace, entry } = record else { return };
        let watch = Watch { kind: *kind, namespace: namespace.map(Into::into) };
        match entry {
            Entry::Listing => self.begin_list(&watch),
            Entry::Closed => return self.close(&watch),
            _ => {}
        }
        let Some(listed) = self.watches.get_mut(&watch) else { return };
        listed.progress.advance(entry);
        let (number, list) = (listed.number, listed.list);
        match entry {
            // The reducer ignores an object of another kind.
            Entry::Applied { object, .. } if object.kind() == kind.of_objects() => {
                let Meta { namespace, name, .. } = object.meta();
                let key = self.key(*kind, namespace, name);
                // The last state of a pod that terminates counts, which an earlier record has.
                if object.is_terminating() {
                    self.mark(key, list);
                } else {
                    self.put(Place { key, offset, length, watch: number, list });
                }
            }
            Entry::Seen { namespace, name } => self.mark(self.key(*kind, namespace, name), list),
            Entry::Deleted { namespace, name, .. } => self.remove(self.key(*kind, namespace, name)),
            Entry::Listed { .. } => self.objects.retain(|place| place.watch != number || place.list == list),
            Entry::Applied { .. } | Entry::Position(_) | Entry::Listing | Entry::Closed => {}
        }
    }

    /// Returns the number of live objects.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Hands out the parts of the compacted log in their order.
    ///
    /// # Errors
    /// Returns the first error of `each`.
    pub fn finish<E>(self, mut each: impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut places: Vec<Place> = self.objects.into_iter().collect();
        places.sort_unstable_by_key(|place| (place.watch, place.offset));
        let of = |place: &Place| (place.watch, place.offset);
        debug_assert!(places.is_sorted_by(|one, next| of(one) < of(next)), "a record is copied once");
        let is_known = |place: &Place| self.watches.values().any(|listed| listed.number == place.watch);
        debug_assert!(places.iter().all(is_known), "the watch of an object is in the log");
        // In the order of kinds: Namespaces before what is in them.
        for (watch, listed) in &self.watches {
            let begin = places.partition_point(|place| place.watch < listed.number);
            let end = places.partition_point(|place| place.watch <= listed.number);
            listed.hand_out(watch, places.get(begin..end).unwrap_or_default(), &mut each)?;
        }
        each(Piece::New(Record::BaseEnd))
    }

    fn key(&self, kind: Kind, namespace: &str, name: &str) -> u64 {
        self.hasher.hash_one((kind, namespace, name))
    }

    fn put(&mut self, new: Place) {
        match self.objects.find_mut(new.key, |place| place.key == new.key) {
            Some(place) => *place = new,
            None => drop(self.objects.insert_unique(new.key, new, |place| place.key)),
        }
    }

    fn mark(&mut self, key: u64, list: u32) {
        if let Some(place) = self.objects.find_mut(key, |place| place.key == key) {
            place.list = list;
        }
    }

    fn remove(&mut self, key: u64) {
        if let Ok(place) = self.objects.find_entry(key, |place| place.key == key) {
            place.remove();
        }
    }

    /// Begins a list. One of all namespaces takes over the objects of the watches in single namespaces, as the reducer
    /// does.
    fn begin_list(&mut self, watch: &Watch) {
        let Compaction { watches, next, .. } = self;
        let listed = watches.entry(watch.clone()).or_insert_with(|| {
            let number = *next;
            *next += 1;
            Listed { number, list: 0, progress: Progress::default() }
        });
        listed.list = listed.list.wrapping_add(1);
        let (number, before) = (listed.number, listed.list.wrapping_sub(1));
        if watch.namespace.is_some() || watch.kind == Kind::Namespace {
            return;
        }
        let is_single = |single: &Watch| single.kind == watch.kind && single.namespace.is_some();
        let singles: Vec<u32> =
            self.watches.iter().filter(|(single, _)| is_single(single)).map(|(_, listed)| listed.number).collect();
        if singles.is_empty() {
            return;
        }
        holds(!singles.contains(&number), "a watch of all namespaces is not one of a single one");
        self.watches.retain(|single, _| !is_single(single));
        for place in self.objects.iter_mut().filter(|place| singles.contains(&place.watch)) {
            (place.watch, place.list) = (number, before);
        }
    }

    fn close(&mut self, watch: &Watch) {
        if let Some(listed) = self.watches.remove(watch) {
            self.objects.retain(|place| place.watch != listed.number);
        }
    }
}
