//! In place of the crate `arc-swap`: a pointer that is read and exchanged as a whole.
//!
//! The crate has tests for its own algorithm. A lock has the same effects for its users, and loom knows it.

use std::ops::Deref;
use std::sync::Arc;

use loom::sync::Mutex;

pub struct ArcSwap<T>(Mutex<Arc<T>>);

pub struct Guard<T>(T);

impl<T> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> ArcSwap<T> {
    pub fn new(value: Arc<T>) -> ArcSwap<T> {
        ArcSwap(Mutex::new(value))
    }

    pub fn from_pointee(value: T) -> ArcSwap<T> {
        ArcSwap::new(Arc::new(value))
    }

    pub fn load(&self) -> Guard<Arc<T>> {
        Guard(Arc::clone(&self.0.lock().unwrap()))
    }

    pub fn store(&self, value: Arc<T>) {
        let old = std::mem::replace(&mut *self.0.lock().unwrap(), value);
        drop(old);
    }
}
