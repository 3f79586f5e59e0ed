//! State that survives a reload.

use core::any::Any;
use core::ops::Deref;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};

/// State that survives a reload.
///
/// Each object has a key that names everything it depends on. A directive whose settings have changed uses another key
/// and therefore starts with a new object. What depends on answers from below is a [`Kept`] object: it also needs the
/// same fingerprint of everything below (`fingerprint`).
#[derive(Default)]
pub struct ReloadState {
    before: HashMap<String, Object>,
    now: HashMap<String, Object>,
    unsettled: Vec<Unsettled>,
}

type Object = Arc<dyn Any + Send + Sync>;

/// [`Kept`] object whose fingerprint is not known yet.
struct Unsettled {
    key: String,
    /// Server block and directive, by number.
    of: (usize, usize),
    /// Takes over the object of the previous generation or creates a new one. Returns the one that is in use.
    settle: Box<dyn FnOnce(Option<Object>) -> Object + Send + Sync>,
}

/// Object that survives a reload if nothing changed that it depends on.
///
/// While the configuration is being built, this is not known yet. Afterwards this is either the object of the previous
/// generation or a new one.
pub struct Kept<T> {
    settled: OnceLock<Arc<T>>,
    new: LazyLock<Arc<T>, Make<T>>,
}

type Make<T> = Box<dyn FnOnce() -> Arc<T> + Send + Sync>;

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.settled.get().unwrap_or_else(|| &self.new)
    }
}

impl ReloadState {
    /// Returns the state for the next generation. It offers the objects of this generation, and drops those that no
    /// directive takes over.
    #[must_use]
    pub fn next(&self) -> ReloadState {
        ReloadState { before: self.now.clone(), ..ReloadState::default() }
    }

    /// Returns the object with this key, from the previous generation or another directive of this one. Creates it
    /// with `make` if it does not exist or has another type.
    pub fn get_or_insert_with<T: Any + Send + Sync>(&mut self, key: String, make: impl FnOnce() -> T) -> Arc<T> {
        let thing = self.known(&key).unwrap_or_else(|| Arc::new(make()));
        self.now.insert(key, Arc::clone(&thing) as Object);
        thing
    }

    /// Returns the object with this key, from another directive of this generation or from the previous generation.
    #[must_use]
    pub fn known<T: Any + Send + Sync>(&self, key: &str) -> Option<Arc<T>> {
        let known = self.now.get(key).or_else(|| self.before.get(key)).cloned();
        known.and_then(|thing| thing.downcast().ok())
    }

    /// Returns the object with this key of the previous generation, if it has one, and that of this generation, which
    /// its directives share and which starts empty.
    pub fn successive<T: Any + Send + Sync + Default>(&mut self, key: String) -> (Option<Arc<T>>, Arc<T>) {
        let before = self.before.get(&key).cloned().and_then(|thing| thing.downcast().ok());
        let now = self.now.entry(key).or_insert_with(|| Arc::new(T::default()));
        (before, Arc::clone(now).downcast().unwrap_or_default())
    }

    /// Replaces the object with this key. The previous generation keeps the old one.
    pub fn renew<T: Any + Send + Sync>(&mut self, key: String, thing: &Arc<T>) {
        self.now.insert(key, Arc::clone(thing) as Object);
    }

    /// Returns an object that depends on its key and on all that the directive `of` finds below.
    pub(crate) fn keep<T: Any + Send + Sync>(
        &mut self,
        key: String,
        of: (usize, usize),
        make: impl FnOnce() -> T + Send + Sync + 'static,
    ) -> Arc<Kept<T>> {
        let make: Make<T> = Box::new(|| Arc::new(make()));
        let kept = Arc::new(Kept { settled: OnceLock::new(), new: LazyLock::new(make) });
        let slot = Arc::clone(&kept);
        let settle = move |known: Option<Object>| {
            let known = known.and_then(|thing| thing.downcast().ok());
            Arc::clone(slot.settled.get_or_init(|| known.unwrap_or_else(|| Arc::clone(&slot.new)))) as Object
        };
        self.unsettled.push(Unsettled { key, of, settle: Box::new(settle) });
        kept
    }

    /// Settles all [`Kept`] objects and drops the objects that no directive has taken over. Called when the generation
    /// has been built. `fingerprint` returns that of a directive.
    pub(crate) fn settle(&mut self, fingerprint: impl Fn(usize, usize) -> u64) {
        for Unsettled { key, of: (block, directive), settle } in self.unsettled.drain(..) {
            let key = format!("{key} {:016x}", fingerprint(block, directive));
            let known = self.now.get(&key).or_else(|| self.before.get(&key)).cloned();
            self.now.insert(key, settle(known));
        }
        self.before.clear();
    }
}
