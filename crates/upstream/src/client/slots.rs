//! Table of values with keys that are never used twice.

use host::invariant::holds;
use host::planted::{Bug, is_planted};

/// Key of a value in [`Slots`]: its index, and a number that distinguishes it from earlier values with that index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    index: usize,
    generation: u32,
}

/// Values by [`Key`]. A lookup with the key of a removed value returns nothing.
pub(crate) struct Slots<T> {
    entries: Vec<Slot<T>>,
    /// Indices of the entries without a value.
    free: Vec<usize>,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(crate) fn insert(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Slot { generation: 0, value: None });
            self.entries.len() - 1
        });
        let slot = &mut self.entries[index];
        holds(slot.value.is_none(), "a free slot has no value");
        slot.value = Some(value);
        Key { index, generation: slot.generation }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.entries.get(key.index).filter(|slot| slot.generation == key.generation)?;
        slot.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.entries.get_mut(key.index).filter(|slot| slot.generation == key.generation)?;
        slot.value.as_mut()
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.entries.get_mut(key.index).filter(|slot| slot.generation == key.generation)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(u32::from(!is_planted(Bug::ReusedKey)));
        self.free.push(key.index);
        holds(self.free.len() <= self.entries.len(), "a slot is free once");
        Some(value)
    }

    /// Returns all values with their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        let slots = self.entries.iter().enumerate();
        slots.filter_map(|(index, Slot { generation, value })| {
            let key = Key { index, generation: *generation };
            value.as_ref().map(|value| (key, value))
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

/// Declares public key types over [`Key`].
macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) Key);
)*
    };
}

keys! {
    /// Query in flight.
    QueryId;
    /// UDP socket of a [`UdpClient`](crate::UdpClient).
    SocketId;
    /// Connection of a [`StreamClient`](crate::StreamClient).
    ConnectionId;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_key_stays_invalid_after_its_index_is_used_again() {
        let mut slots = Slots::default();
        let first = slots.insert('a');
        assert_eq!((slots.remove(first), slots.remove(first)), (Some('a'), None));
        let second = slots.insert('b');
        assert_eq!(second.index, first.index);
        assert!(slots.get(first).is_none() && slots.get_mut(first).is_none());
        assert_eq!(slots.remove(first), None);
        assert_eq!((slots.get(second), slots.len()), (Some(&'b'), 1));
    }
}
