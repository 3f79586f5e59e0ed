//! Interfaces that directives offer each other, found by their type.

use core::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use crate::zone_set::ZoneSet;
use engine::{Hooks, Plugin, Query, Zones};

/// Registry of interfaces by type, most of them `Arc<dyn Trait>`.
#[derive(Default)]
pub struct Capabilities {
    by_type: HashMap<TypeId, Box<dyn Any>>,
}

impl Capabilities {
    /// Registers a value, in place of another one of the same type.
    pub fn provide<T: Any>(&mut self, thing: T) {
        self.by_type.insert(TypeId::of::<T>(), Box::new(thing));
    }

    /// Removes and returns the value of this type.
    pub fn take<T: Any>(&mut self) -> Option<T> {
        self.by_type.remove(&TypeId::of::<T>())?.downcast().ok().map(|thing| *thing)
    }

    /// Returns a clone of the value of this type.
    #[must_use]
    pub fn find<T: Any + Clone>(&self) -> Option<T> {
        self.by_type.get(&TypeId::of::<T>())?.downcast_ref().cloned()
    }
}

/// Zones in which a directive further down answers every name from memory, so that caching its answers gains nothing.
#[derive(Clone, Debug, Default)]
pub struct LocalZones(pub Zones);

impl LocalZones {
    /// Adds `zones`, except for those that overlap with `fallthrough`.
    pub fn add(below: &mut Capabilities, zones: &Zones, fallthrough: &Zones) {
        let LocalZones(mut known) = below.take().unwrap_or_default();
        let through: ZoneSet = fallthrough.names().iter().cloned().collect();
        known.extend(zones.names().iter().filter(|zone| !through.overlaps(zone)).cloned());
        below.provide(LocalZones(known));
    }
}

/// Predicate for the queries that a directive further down answers from memory at this moment.
///
/// A cached answer to another query must not replace such an answer. A directive that finds a predicate from below
/// must include it in its own.
#[derive(Clone)]
pub struct LocalAnswers(pub Arc<dyn Fn(&Query) -> bool + Send + Sync>);

/// Wraps each plugin below the directive that offers it, for example to trace or measure the steps.
///
/// The function gets the name of a directive, its plugin and its hooks, and returns their replacement.
pub struct StepWrapper(pub Box<WrapStep>);

type WrapStep = dyn Fn(&'static str, Arc<dyn Plugin>, Hooks) -> (Arc<dyn Plugin>, Hooks);
