//! A table in the order of its keys, which are octets: read without locks while it is written, like the hash tables of this
//! crate, and by ranges.
//!
//! The table is cut into pages of a few dozen entries behind one list. A reader takes the list and sees that one state of
//! the whole table for as long as it holds it; it finds an entry by two binary searches, and the keys of a page are one
//! piece of memory. A writer copies the list and the pages that it changes, and shows all of its changes at once: so they
//! are best made by many.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};

/// Entries in a page: a write copies one, and a search looks at the ends of all others.
const PAGE_MAX: usize = 64;
/// A page with fewer entries is made one with the next, if they fit.
const PAGE_MIN: usize = 16;

/// A table in the order of its keys, with many readers that never wait, and writers that take turns.
pub struct Sorted<V> {
    shown: ArcSwap<Pages<V>>,
    writing: Mutex<()>,
}

impl<V> Default for Sorted<V> {
    fn default() -> Self {
        let pages = Pages { list: Vec::new(), len: 0 };
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
    /// None of them is empty.
    list: Vec<Arc<Page<V>>>,
    len: usize,
}

impl<V> Clone for Pages<V> {
    fn clone(&self) -> Self {
        Pages { list: self.list.clone(), len: self.len }
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
        let page = self.list.get(self.page_of(key))?;
        page.search(key).ok().map(|at| &page.values[at])
    }

    /// The entries from this key on, in order.
    #[must_use]
    pub fn from(&self, key: &[u8]) -> Entries<'_, V> {
        let page = self.page_of(key);
        let at = self.list.get(page).map_or(0, |page| page.search(key).unwrap_or_else(|at| at));
        Entries { pages: &self.list, page, at }
    }

    /// The entries whose keys begin with this, in order.
    pub fn below<'v, 'p>(&'v self, prefix: &'p [u8]) -> impl Iterator<Item = (&'v [u8], &'v V)> + use<'v, 'p, V> {
        self.from(prefix).take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// The page in which a key is, or would be.
    fn page_of(&self, key: &[u8]) -> usize {
        self.list.partition_point(|page| page.key(0) <= key).saturating_sub(1)
    }
}

/// Some entries of a table, in the order of their keys.
pub struct Entries<'v, V> {
    pages: &'v [Arc<Page<V>>],
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
        let mut page = self.pages.get(self.page)?;
        if self.at == page.values.len() {
            (self.page, self.at) = (self.page + 1, 0);
            page = self.pages.get(self.page)?;
        }
        let at = self.at;
        self.at += 1;
        Some((page.key(at), &page.values[at]))
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

impl<V> Page<V> {
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

    /// Takes the entries from here on away, as a page of their own.
    fn split(&mut self, at: usize) -> Page<V> {
        let start = self.start(at);
        let keys = self.keys.split_off(start);
        let cut = u32::try_from(start).unwrap_or(u32::MAX);
        let ends = self.ends.split_off(at).into_iter().map(|end| end - cut).collect();
        let page = Page { keys, ends, values: self.values.split_off(at) };
        self.shrink();
        page
    }

    fn append(&mut self, mut other: Page<V>) {
        let start = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.keys.append(&mut other.keys);
        self.ends.extend(other.ends.iter().map(|end| end + start));
        self.values.append(&mut other.values);
    }

    fn shrink(&mut self) {
        self.keys.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.values.shrink_to_fit();
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
        let at = self.pages.page_of(key);
        let Some(page) = self.pages.list.get_mut(at).map(Arc::make_mut) else {
            let (keys, ends) = (key.to_vec(), vec![u32::try_from(key.len()).unwrap_or(u32::MAX)]);
            self.pages.list.push(Arc::new(Page { keys, ends, values: vec![value] }));
            self.pages.len += 1;
            return None;
        };
        match page.search(key) {
            Ok(place) => return Some(std::mem::replace(&mut page.values[place], value)),
            Err(place) => page.insert(place, key, value),
        }
        self.pages.len += 1;
        if page.values.len() > PAGE_MAX {
            // What comes in the order of its keys leaves full pages behind.
            let is_behind_all = page.search(key) == Ok(PAGE_MAX);
            let half = page.split(if is_behind_all { PAGE_MAX } else { PAGE_MAX / 2 });
            self.pages.list.insert(at + 1, Arc::new(half));
        }
        None
    }

    /// Takes a key out, and gives back its value.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        let at = self.pages.page_of(key);
        let page = self.pages.list.get_mut(at)?;
        let place = page.search(key).ok()?;
        let page = Arc::make_mut(page);
        let value = page.remove(place);
        let left = page.values.len();
        self.pages.len -= 1;
        let next = self.pages.list.get(at + 1).map_or(PAGE_MAX, |next| next.values.len());
        if left == 0 {
            self.pages.list.remove(at);
        } else if left < PAGE_MIN && left + next <= PAGE_MAX {
            let next = Arc::unwrap_or_clone(self.pages.list.remove(at + 1));
            Arc::make_mut(&mut self.pages.list[at]).append(next);
        }
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
