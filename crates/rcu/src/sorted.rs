//! A table in the order of its keys, which are octets: read without locks while it is written, like the hash tables of this
//! crate, and by ranges.
//!
//! The table is a tree of three levels: pages of a few dozen entries, chapters of a few dozen pages, and the list of
//! chapters. A reader takes the list and sees that one state of the whole table for as long as it holds it; it finds an entry
//! by three binary searches, each in one piece of memory. A writer copies the list, and the chapters and pages that it
//! changes, and shows all of its changes at once: so they are best made by many.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};

/// Entries in a page, and pages in a chapter: a write copies one of each.
const PAGE_MAX: usize = 64;
/// One with fewer is joined with the next, if that has room.
const PAGE_MIN: usize = 16;

/// A table in the order of its keys, with many readers that never wait, and writers that take turns.
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
    /// The table as it is now; while this is held it does not change. It is for one short look, on one thread.
    #[must_use]
    pub fn read(&self) -> Reading<V> {
        Reading(self.shown.load())
    }

    /// Begins to write, once every other writer has ended.
    pub fn edit(&self) -> Edit<'_, V> {
        let turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = Pages::clone(&self.shown.load());
        Edit { table: self, pages, _turn: turn }
    }
}

/// One state of a table, held by a reader.
pub struct Reading<V>(Guard<Arc<Pages<V>>>);

impl<V> Deref for Reading<V> {
    type Target = Pages<V>;

    fn deref(&self) -> &Pages<V> {
        &self.0
    }
}

/// One state of a table.
pub struct Pages<V> {
    /// Neither a chapter nor a page is empty. The key of each is no greater than any in it, and greater than any before it.
    chapters: Page<Arc<Chapter<V>>>,
    len: usize,
}

/// Neighbouring pages.
type Chapter<V> = Page<Arc<Page<V>>>;

impl<V> Clone for Pages<V> {
    fn clone(&self) -> Self {
        Pages { chapters: self.chapters.clone(), len: self.len }
    }
}

impl<V> Pages<V> {
    /// Entries in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the table has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&V> {
        let (known, value) = self.from(key).next()?;
        (known == key).then_some(value)
    }

    /// The entries from this key on, in order.
    #[must_use]
    pub fn from(&self, key: &[u8]) -> Entries<'_, V> {
        let chapter = self.chapters.place_of(key);
        let page = self.chapters.values.get(chapter).map_or(0, |pages| pages.place_of(key));
        let found = self.chapters.values.get(chapter).and_then(|pages| pages.values.get(page));
        let at = found.map_or(0, |page| page.search(key).unwrap_or_else(|at| at));
        Entries { chapters: &self.chapters.values, chapter, page, at }
    }

    /// The entries whose keys begin with this, in order.
    pub fn below<'v, 'p>(&'v self, prefix: &'p [u8]) -> impl Iterator<Item = (&'v [u8], &'v V)> + use<'v, 'p, V> {
        self.from(prefix).take_while(move |(key, _)| key.starts_with(prefix))
    }
}

/// Some entries of a table, in the order of their keys.
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

/// Neighbouring entries.
#[derive(Clone)]
struct Page<V> {
    /// The keys, one behind the other.
    keys: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<u32>,
    values: Vec<V>,
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

    fn key(&self, at: usize) -> &[u8] {
        &self.keys[self.start(at)..self.ends[at] as usize]
    }

    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    /// Where a key is, or else would be.
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

    /// The last place whose key is no greater than this one, or the first.
    fn place_of(&self, key: &[u8]) -> usize {
        self.search(key).unwrap_or_else(|at| at.saturating_sub(1))
    }

    fn insert(&mut self, at: usize, key: &[u8], value: V) {
        let start = self.start(at);
        let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
        self.keys.splice(start..start, key.iter().copied());
        self.ends.insert(at, u32::try_from(start).unwrap_or(u32::MAX));
        self.ends[at..].iter_mut().for_each(|end| *end += len);
        self.values.insert(at, value);
    }

    fn remove(&mut self, at: usize) -> V {
        let range = self.start(at)..self.ends[at] as usize;
        let len = u32::try_from(range.len()).unwrap_or(u32::MAX);
        self.keys.drain(range);
        self.ends.remove(at);
        self.ends[at..].iter_mut().for_each(|end| *end -= len);
        self.values.remove(at)
    }

    /// Has this key stand there, if the one that does is greater.
    fn lower(&mut self, at: usize, key: &[u8]) {
        if at < self.values.len() && self.key(at) > key {
            let value = self.remove(at);
            self.insert(at, key, value);
        }
    }

    /// Takes entries from its end away if they are too many. `last` is the place that was added last: what comes in the order
    /// of its keys leaves full pages behind.
    fn split(&mut self, last: usize) -> Option<Page<V>> {
        if self.values.len() <= PAGE_MAX {
            return None;
        }
        let at = if last == PAGE_MAX { PAGE_MAX } else { PAGE_MAX / 2 };
        let start = self.start(at);
        let keys = self.keys.split_off(start);
        let cut = u32::try_from(start).unwrap_or(u32::MAX);
        let ends = self.ends.split_off(at).into_iter().map(|end| end - cut).collect();
        let page = Page { keys, ends, values: self.values.split_off(at) };
        self.keys.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.values.shrink_to_fit();
        Some(page)
    }

    fn append(&mut self, mut other: Page<V>) {
        let start = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.keys.append(&mut other.keys);
        self.ends.extend(other.ends.iter().map(|end| end + start));
        self.values.append(&mut other.values);
    }
}

impl<V: Clone> Page<Arc<Page<V>>> {
    /// Takes a page out that has become empty, and joins one that has become short with the next.
    fn tidy(&mut self, at: usize) {
        let len = self.values[at].values.len();
        let next = self.values.get(at + 1).map_or(PAGE_MAX, |next| next.values.len());
        if len == 0 {
            self.remove(at);
        } else if len < PAGE_MIN && len + next <= PAGE_MAX {
            let next = Arc::unwrap_or_clone(self.remove(at + 1));
            Arc::make_mut(&mut self.values[at]).append(next);
        }
    }
}

/// Changes that nobody sees yet. Dropped, they never were.
pub struct Edit<'t, V> {
    table: &'t Sorted<V>,
    pages: Pages<V>,
    _turn: MutexGuard<'t, ()>,
}

impl<V: Clone> Edit<'_, V> {
    /// Puts a value under a key, and gives back the one that was there.
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

    /// Takes a key out, and gives back its value.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        self.pages.get(key)?;
        let chapters = &mut self.pages.chapters;
        let chapter_at = chapters.place_of(key);
        let chapter = Arc::make_mut(&mut chapters.values[chapter_at]);
        let page_at = chapter.place_of(key);
        let page = Arc::make_mut(&mut chapter.values[page_at]);
        let value = page.remove(page.search(key).ok()?);
        self.pages.len -= 1;
        chapter.tidy(page_at);
        chapters.tidy(chapter_at);
        Some(value)
    }

    /// What the table will be.
    #[must_use]
    pub fn pages(&self) -> &Pages<V> {
        &self.pages
    }

    /// Shows the changes to readers.
    pub fn publish(self) {
        self.table.shown.store(Arc::new(self.pages));
    }
}

#[cfg(test)]
#[path = "sorted_tests.rs"]
mod tests;
