//! State that survives a reload.

use core::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

/// State that survives a reload.
///
/// Each object has a key that names everything it depends on. A directive whose settings have changed uses another key
/// and therefore starts with a new object.
#[derive(Default)]
pub struct ReloadState {
    before: HashMap<String, Arc<dyn Any + Send + Sync>>,
    now: HashMap<String, Arc<dyn Any + Send + Sync>>,
}

impl ReloadState {
    /// Returns the state for the next generation. It offers the objects of this generation, and drops those that no
    /// directive takes over.
    #[must_use]
    pub fn next(&self) -> ReloadState {
        ReloadState { before: self.now.clone(), now: HashMap::new() }
    }

    /// Returns the object with this key, from the previous generation or another directive of this one. Creates it
    /// with `make` if it does not exist or has another type.
    pub fn take_over<T: Any + Send + Sync>(&mut self, key: String, make: impl FnOnce() -> T) -> Arc<T> {
        let known = self.now.get(&key).or_else(|| self.before.get(&key)).cloned();
        let thing = known.and_then(|thing| thing.downcast().ok()).unwrap_or_else(|| Arc::new(make()));
        self.now.insert(key, Arc::clone(&thing) as Arc<dyn Any + Send + Sync>);
        thing
    }

    /// Drops the objects that no directive has taken over. Called when the generation has been built.
    pub(crate) fn forget_the_rest(&mut self) {
        self.before.clear();
    }
}
