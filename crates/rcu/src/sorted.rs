//! Ordered table with byte-string keys: lock-free readers, one writer at a time, lookups by key, prefix and range.
//!
//! The table is a copy-on-write B-tree of fixed height: the root lists chapters, a chapter lists pages, and a page
//! holds entries. Pages and chapters have up to [`PAGE_MAX`] elements. A reader loads the root and sees one consistent
//! state of the whole table for as long as it holds it. A lookup is three binary searches, each in contiguous memory. A
//! writer copies the root and every chapter and page that it changes, and then publishes all changes at once. Batches
//! of changes are therefore much cheaper than single ones.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};

/// Maximum number of entries in a page, and of pages in a chapter. A write copies one of each.
const PAGE_MAX: usize = 64;
/// A page or chapter with fewer elements is merged with the next one, if the result fits in [`PAGE_MAX`].
const PAGE_MIN: usize = 16;

/// Maximum number of entries of a table that is checked before it is published.
const CHECKED_MAX: usize = 1024;

/// Ordered table with lock-free readers and serialized writers.
pub struct Sorted<V> {
    shown: ArcSwap<Pages<V>>,
    writing: Mutex<()>,
}

impl<V> Default for Sorted<V> {
    fn default() -> Self {
        let pages = Pages { chapters: Page::default(), len: 0 };
        Sorted { shown: ArcSwap::from_pointee(pages), writing: Mutex::default() }
    }
}

impl<V: Clone> Sorted<V> {
    /// Returns the current state of the table. It does not change while the caller holds it. Meant for a short lookup
    /// on one thread.
    #[must_use]
    pub fn read(&self) -> Reading<V> {
        Reading(self.shown.load())
    }

    /// Starts an edit, after waiting for the current writer to finish.
    pub fn edit(&self) -> Edit<'_, V> {
        let turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = Pages::clone(&self.shown.load());
        Edit { table: self, pages, _turn: turn }
    }
}

/// State of a table, held by a reader.
pub struct Reading<V>(Guard<Arc<Pages<V>>>);

impl<V> Deref for Reading<V> {
    type Target = Pages<V>;

    fn deref(&self) -> &Pages<V> {
        &self.0
    }
}

/// State of a table.
pub struct Pages<V> {
    /// Root of the tree. No chapter and no page is empty. The key stored for a chapter or page is at most the first key
    /// in it, and greater than every key before it.
    chapters: Page<Arc<Chapter<V>>>,
    len: usize,
}

/// Run of consecutive pages.
type Chapter<V> = Page<Arc<Page<V>>>;

impl<V> Clone for Pages<V> {
    fn clone(&self) -> Self {
        Pages { chapters: self.chapters.clone(), len: self.len }
    }
}

impl<V> Pages<V> {
    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Checks the tree before readers see it, with debug assertions.
    fn check(&self) {
        if !cfg!(debug_assertions) || self.len > CHECKED_MAX {
            return;
        }
        let entries = || Entries { chapters: &self.chapters.values, chapter: 0, page: 0, at: 0 };
        debug_assert!(entries().count() == self.len, "a table counts its entries");
        debug_assert!(entries().zip(entries().skip(1)).all(|(one, next)| one.0 < next.0), "keys are in order");
        self.chapters.check();
        for (at, chapter) in self.chapters.values.iter().enumerate() {
            chapter.check();
            debug_assert!(chapter.values.len() <= PAGE_MAX, "a chapter has a bounded number of pages");
            debug_assert!(self.chapters.key(at) <= chapter.key(0), "the key of a chapter is at most its first key");
            for (at, page) in chapter.values.iter().enumerate() {
                page.check();
                debug_assert!(page.values.len() <= PAGE_MAX, "a page has a bounded number of entries");
                debug_assert!(chapter.key(at) <= page.key(0), "the key of a page is at most its first key");
            }
        }
    }

    /// Returns the value for `key`.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&V> {
        let (known, value) = self.from(key).next()?;
        (known == key).then_some(value)
    }

    /// Returns the entries with keys greater than or equal to `key`, in order.
    #[must_use]
    pub fn from(&self, key: &[u8]) -> Entries<'_, V> {
        let chapter = self.chapters.place_of(key);
        let page = self.chapters.values.get(chapter).map_or(0, |pages| pages.place_of(key));
        let found = self.chapters.values.get(chapter).and_then(|pages| pages.values.get(page));
        let at = found.map_or(0, |page| page.search(key).unwrap_or_else(|at| at));
        let entries = Entries { chapters: &self.chapters.values, chapter, page, at };
        debug_assert!(entries.clone().next().is_none_or(|(first, _)| first >= key), "a range begins at its key");
        entries
    }

    /// Returns the entries whose keys start with `prefix`, in order.
    pub fn below<'v, 'p>(&'v self, prefix: &'p [u8]) -> impl Iterator<Item = (&'v [u8], &'v V)> + use<'v, 'p, V> {
        self.from(prefix).take_while(move |(key, _)| key.starts_with(prefix))
    }
}

/// Iterator over a range of entries in key order.
pub struct Entries<'v, V> {
    chapters: &'v [Arc<Chapter<V>>],
    chapter: usize,
    page: usize,
    at: usize,
}

impl<V> Clone for Entries<'_, V> {
    fn clone(&self) -> Self {
        Entries { ..*self }
    }
}

impl<'v, V> Iterator for Entries<'v, V> {
    type Item = (&'v [u8], &'v V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let pages = &self.chapters.get(self.chapter)?.values;
            let Some(page) = pages.get(self.page) else {
                (self.chapter, self.page, self.at) = (self.chapter + 1, 0, 0);
                continue;
            };
            let Some(value) = page.values.get(self.at) else {
                (self.page, self.at) = (self.page + 1, 0);
                continue;
            };
            self.at += 1;
            return Some((page.key(self.at - 1), value));
        }
    }
}

/// Run of consecutive entries: leaf page of the tree. A chapter is a page whose values are pages.
#[derive(Clone)]
struct Page<V> {
    /// All keys, concatenated.
    keys: Vec<u8>,
    /// End offset of each key in `keys`.
    ends: Vec<u32>,
    values: Vec<V>,
}

/// Returns an offset as it is stored.
fn offset(at: usize) -> u32 {
    let offset = u32::try_from(at);
    debug_assert!(offset.is_ok(), "the keys of a page have less than 4 GiB");
    offset.unwrap_or(u32::MAX)
}

impl<V> Default for Page<V> {
    fn default() -> Self {
        Page { keys: Vec::new(), ends: Vec::new(), values: Vec::new() }
    }
}

impl<V> Page<V> {
    fn of(key: &[u8], value: V) -> Page<V> {
        let mut page = Page::default();
        page.insert(0, key, value);
        page
    }

    /// Checks a page that readers may see, with debug assertions.
    fn check(&self) {
        let end = self.ends.last().map_or(0, |end| *end as usize);
        debug_assert!(self.ends.len() == self.values.len(), "each value has a key");
        debug_assert!(end == self.keys.len(), "each byte belongs to a key");
        debug_assert!(self.ends.is_sorted(), "each key begins where the one before ends");
        let mut keys = (0..self.values.len()).map(|at| self.key(at));
        debug_assert!(keys.by_ref().is_sorted_by(|one, next| one < next), "the keys of a page are in order");
    }

    fn key(&self, at: usize) -> &[u8] {
        debug_assert!(self.ends.len() == self.values.len(), "each value has a key");
        &self.keys[self.start(at)..self.ends[at] as usize]
    }

    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    /// Finds `key`: `Ok` with its index, or `Err` with the index at which to insert it.
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.values.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle).cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Returns the index of the last key that is at most `key`, or 0 if there is no such key.
    fn place_of(&self, key: &[u8]) -> usize {
        self.search(key).unwrap_or_else(|at| at.saturating_sub(1))
    }

    fn insert(&mut self, at: usize, key: &[u8], value: V) {
        debug_assert!(at == 0 || self.key(at - 1) < key, "a key is inserted after a smaller one");
        debug_assert!(at == self.values.len() || self.key(at) > key, "a key is inserted before a greater one");
        let start = self.start(at);
        let len = offset(key.len());
        self.keys.splice(start..start, key.iter().copied());
        self.ends.insert(at, offset(start));
        self.ends[at..].iter_mut().for_each(|end| *end += len);
        self.values.insert(at, value);
        debug_assert!(self.key(at) == key, "a key is read as it was written");
        debug_assert!(self.values.len() <= PAGE_MAX + 1, "a page that is too long is split at once");
    }

    fn remove(&mut self, at: usize) -> V {
        debug_assert!(at < self.values.len(), "an entry that is removed exists");
        let range = self.start(at)..self.ends[at] as usize;
        let len = offset(range.len());
        self.keys.drain(range);
        self.ends.remove(at);
        self.ends[at..].iter_mut().for_each(|end| *end -= len);
        self.values.remove(at)
    }

    /// Replaces the key at index `at` by `key`, if `key` is smaller.
    fn lower(&mut self, at: usize, key: &[u8]) {
        debug_assert!(at == 0 || at >= self.values.len() || self.key(at - 1) < key, "only the first key is lowered");
        if at < self.values.len() && self.key(at) > key {
            let value = self.remove(at);
            self.insert(at, key, value);
        }
    }

    /// Splits off the upper part of an overfull page and returns it. `last` is the index of the newest element: if that
    /// is the last one, only that element moves, so that keys inserted in ascending order fill their pages completely.
    fn split(&mut self, last: usize) -> Option<Page<V>> {
        if self.values.len() <= PAGE_MAX {
            return None;
        }
        debug_assert!(self.values.len() == PAGE_MAX + 1, "a page is split when one entry is too many");
        let at = if last == PAGE_MAX { PAGE_MAX } else { PAGE_MAX / 2 };
        let start = self.start(at);
        let keys = self.keys.split_off(start);
        let cut = offset(start);
        let ends = self.ends.split_off(at).into_iter().map(|end| end - cut).collect();
        let page = Page { keys, ends, values: self.values.split_off(at) };
        debug_assert!(self.values.len() + page.values.len() == PAGE_MAX + 1, "a split keeps each entry");
        debug_assert!(!page.values.is_empty() && self.key(at - 1) < page.key(0), "the upper part has the greater keys");
        self.keys.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.values.shrink_to_fit();
        Some(page)
    }

    fn append(&mut self, mut other: Page<V>) {
        let (own, more) = (self.values.len(), other.values.len());
        debug_assert!(own == 0 || more == 0 || self.key(own - 1) < other.key(0), "pages are merged in their order");
        debug_assert!(self.values.len() + other.values.len() <= PAGE_MAX, "pages are merged if the result fits");
        let start = offset(self.keys.len());
        self.keys.append(&mut other.keys);
        self.ends.extend(other.ends.iter().map(|end| end + start));
        self.values.append(&mut other.values);
        debug_assert!(self.values.len() == own + more, "a merge keeps each entry");
    }
}

impl<V: Clone> Page<Arc<Page<V>>> {
    /// Removes the page at index `at` if it is empty, or merges it with the next one if it is short.
    fn tidy(&mut self, at: usize) {
        let len = self.values[at].values.len();
        let next = self.values.get(at + 1).map_or(PAGE_MAX, |next| next.values.len());
        if len == 0 {
            self.remove(at);
        } else if len < PAGE_MIN && len + next <= PAGE_MAX {
            let next = Arc::unwrap_or_clone(self.remove(at + 1));
            Arc::make_mut(&mut self.values[at]).append(next);
            debug_assert!(self.values[at].values.len() >= len, "a merged page is not shorter");
        }
    }
}

/// Unpublished changes. Dropping the edit discards them.
pub struct Edit<'t, V> {
    table: &'t Sorted<V>,
    pages: Pages<V>,
    _turn: MutexGuard<'t, ()>,
}

impl<V: Clone> Edit<'_, V> {
    /// Sets the value for `key` and returns the previous one.
    pub fn insert(&mut self, key: &[u8], value: V) -> Option<V> {
        let chapters = &mut self.pages.chapters;
        let chapter_at = chapters.place_of(key);
        chapters.lower(chapter_at, key);
        let Some(chapter) = chapters.values.get_mut(chapter_at).map(Arc::make_mut) else {
            let chapter = Page::of(key, Arc::new(Page::of(key, value)));
            *chapters = Page::of(key, Arc::new(chapter));
            self.pages.len = 1;
            return None;
        };
        let page_at = chapter.place_of(key);
        chapter.lower(page_at, key);
        let page = Arc::make_mut(&mut chapter.values[page_at]);
        debug_assert!(!page.values.is_empty(), "no page is empty");
        let at = match page.search(key) {
            Ok(at) => return Some(std::mem::replace(&mut page.values[at], value)),
            Err(at) => at,
        };
        page.insert(at, key, value);
        self.pages.len += 1;
        if let Some(page) = page.split(at) {
            chapter.insert(page_at + 1, page.key(0).to_vec().as_slice(), Arc::new(page));
        }
        if let Some(chapter) = chapter.split(page_at + 1) {
            chapters.insert(chapter_at + 1, chapter.key(0).to_vec().as_slice(), Arc::new(chapter));
        }
        None
    }

    /// Removes `key` and returns its value.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        self.pages.get(key)?;
        let chapters = &mut self.pages.chapters;
        let chapter_at = chapters.place_of(key);
        let chapter = Arc::make_mut(&mut chapters.values[chapter_at]);
        let page_at = chapter.place_of(key);
        let page = Arc::make_mut(&mut chapter.values[page_at]);
        let found = page.search(key);
        debug_assert!(found.is_ok(), "the key that was just found");
        let value = page.remove(found.ok()?);
        debug_assert!(self.pages.len > 0, "an entry that is removed was counted");
        self.pages.len -= 1;
        chapter.tidy(page_at);
        chapters.tidy(chapter_at);
        debug_assert!(self.pages.get(key).is_none(), "a key that was removed is not found");
        Some(value)
    }

    /// Returns the state that [`Edit::publish`] would publish.
    #[must_use]
    pub fn pages(&self) -> &Pages<V> {
        &self.pages
    }

    /// Publishes the changes to readers.
    pub fn publish(self) {
        self.pages.check();
        debug_assert!(
            self.pages.is_empty() == self.pages.chapters.values.is_empty(),
            "a table without entries has no pages"
        );
        self.table.shown.store(Arc::new(self.pages));
    }
}

#[cfg(test)]
#[path = "sorted_tests.rs"]
mod tests;
