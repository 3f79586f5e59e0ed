//! Object kinds of a service mesh (Istio): how an object of each kind changes the mesh.

use host::invariant::Expected as _;

use super::{Effect, IndexReducer, ObjectState};
use crate::Kind;
use crate::object::Object;

/// Record of a ServiceEntry: the key of its namespace.
#[derive(Clone, Copy)]
pub(crate) struct EntryState {
    namespace: u64,
}

impl ObjectState for EntryState {
    const KIND: Kind = Kind::ServiceEntry;

    fn apply(_: Option<Self>, object: &Object<'_>, key: u64, reducer: &mut IndexReducer) -> Effect<Self> {
        let (Object::ServiceEntry(object), Some(mesh)) = (object, &mut reducer.mesh) else {
            return Effect::of_another_kind();
        };
        let namespace = mesh.index.namespace(object.meta.namespace);
        match mesh.set_entry((namespace, key), object) {
            Some(stamps) => Effect::stored(EntryState { namespace }, stamps),
            None => Effect::NOT_SERVED,
        }
    }

    fn remove(self, key: u64, reducer: &mut IndexReducer) {
        if let Some(mesh) = reducer.mesh.as_mut().expected("the mesh of an entry") {
            mesh.remove_entry((self.namespace, key));
        }
    }
}

/// Record of a WorkloadEntry: the key of its namespace.
#[derive(Clone, Copy)]
pub(crate) struct WorkloadState {
    namespace: u64,
}

impl ObjectState for WorkloadState {
    const KIND: Kind = Kind::WorkloadEntry;

    fn apply(_: Option<Self>, object: &Object<'_>, key: u64, reducer: &mut IndexReducer) -> Effect<Self> {
        let (Object::WorkloadEntry(object), Some(mesh)) = (object, &mut reducer.mesh) else {
            return Effect::of_another_kind();
        };
        let namespace = mesh.index.namespace(object.meta.namespace);
        let workload = mesh.workload_entry(object);
        let stamps = mesh.set_workload((namespace, key), false, Some(workload));
        Effect::stored(WorkloadState { namespace }, stamps)
    }

    fn remove(self, key: u64, reducer: &mut IndexReducer) {
        if let Some(mesh) = reducer.mesh.as_mut().expected("the mesh of a workload") {
            mesh.set_workload((self.namespace, key), false, None);
        }
    }
}

/// Record of a Pod: the key of its namespace.
#[derive(Clone, Copy)]
pub(crate) struct PodState {
    namespace: u64,
}

impl ObjectState for PodState {
    const KIND: Kind = Kind::WorkloadPod;

    fn apply(_: Option<Self>, object: &Object<'_>, key: u64, reducer: &mut IndexReducer) -> Effect<Self> {
        let (Object::WorkloadPod(object), Some(mesh)) = (object, &mut reducer.mesh) else {
            return Effect::of_another_kind();
        };
        let namespace = mesh.index.namespace(object.meta.namespace);
        let workload = mesh.pod(namespace, object);
        let stamps = mesh.set_workload((namespace, key), true, Some(workload));
        Effect::stored(PodState { namespace }, stamps)
    }

    fn remove(self, key: u64, reducer: &mut IndexReducer) {
        if let Some(mesh) = reducer.mesh.as_mut().expected("the mesh of a pod") {
            mesh.set_workload((self.namespace, key), true, None);
        }
    }
}
