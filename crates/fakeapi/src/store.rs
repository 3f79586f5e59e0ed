//! Storage of objects, and the log of their changes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::format::Format;
use crate::selection::Selection;

/// Resources served even without objects: plural name, kind, group and version.
const BUILT_IN: [(&str, &str, &str); 7] = [
    ("configmaps", "ConfigMap", "v1"),
    ("nodes", "Node", "v1"),
    ("namespaces", "Namespace", "v1"),
    ("services", "Service", "v1"),
    ("pods", "Pod", "v1"),
    ("endpoints", "Endpoints", "v1"),
    ("endpointslices", "EndpointSlice", "discovery.k8s.io/v1"),
];

/// Namespace and name.
pub(crate) type Key = (String, String);

/// All objects.
#[derive(Default)]
pub(crate) struct Store {
    /// Resource version of the latest change.
    pub(crate) version: u64,
    /// Oldest version from which requests can continue.
    pub(crate) compacted: u64,
    resources: BTreeMap<String, Resource>,
    log: Vec<Entry>,
    /// Number of Services that were assigned addresses.
    given: u32,
    /// True if Services get only IPv4 addresses.
    pub(crate) single_stack: bool,
}

#[derive(Default)]
struct Resource {
    kind: String,
    group_version: String,
    objects: BTreeMap<Key, Arc<Value>>,
}

struct Entry {
    version: u64,
    resource: String,
    change: Change,
}

/// Part of a list.
pub(crate) struct Span {
    /// Version of the list: that of its first page, so that a watch from it sees all changes since.
    pub(crate) version: u64,
    /// Key after which this part begins.
    pub(crate) after: Option<Key>,
    /// Maximum number of objects; 0 for all.
    pub(crate) limit: usize,
    /// True for the objects as of the version, false for the current ones.
    pub(crate) is_exact: bool,
}

/// Position from which a watch continues.
#[derive(Clone, Copy)]
pub(crate) struct WatchPosition {
    /// Index in the log.
    pub(crate) position: usize,
    /// Version up to which events are skipped. For a version in the future, the real server also waits silently until
    /// it is reached.
    version: u64,
}

enum Change {
    Object { before: Option<Arc<Value>>, after: Option<Arc<Value>>, is_seen: bool },
    Bookmark,
    Raw(String),
}

impl Store {
    /// Creates or replaces an object. Watches see it if `is_seen`.
    pub(crate) fn put(&mut self, mut object: Value, is_seen: bool) -> u64 {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&object["kind"]);
        let name = plural(&kind);
        let key = key(&object);
        let resource = self.resources.entry(name.clone()).or_default();
        (resource.kind, resource.group_version) = (kind, text(&object["apiVersion"]));
        let object = Arc::new(object);
        let before = resource.objects.insert(key, Arc::clone(&object));
        self.record(name, Change::Object { before, after: Some(object), is_seen });
        self.version
    }

    /// Adds a kind without any objects.
    pub(crate) fn install(&mut self, kind: &str, group_version: &str) {
        let resource = self.resources.entry(plural(kind)).or_default();
        (resource.kind, resource.group_version) = (kind.to_owned(), group_version.to_owned());
    }

    /// Deletes an object. Watches see it if `is_seen`.
    pub(crate) fn delete(&mut self, resource: &str, namespace: &str, name: &str, is_seen: bool) {
        let objects = self.resources.get_mut(resource).map(|resource| &mut resource.objects);
        let before = objects.and_then(|objects| objects.remove(&(namespace.to_owned(), name.to_owned())));
        assert!(before.is_some(), "there is no {resource} {namespace}/{name}");
        self.version += 1;
        self.record(resource.to_owned(), Change::Object { before, after: None, is_seen });
    }

    /// Returns an object.
    pub(crate) fn get(&self, resource: &str, key: &Key) -> Option<Value> {
        let object = self.resources.get(resource).and_then(|resource| resource.objects.get(key));
        object.map(|object| object.as_ref().clone())
    }

    /// Deletes all objects in a namespace.
    pub(crate) fn delete_all_in(&mut self, namespace: &str) {
        let inside = |(resource, kept): (&String, &Resource)| {
            let names = kept.objects.keys().filter(|key| key.0 == namespace).map(|key| key.1.clone());
            names.map(|name| (resource.clone(), name)).collect::<Vec<_>>()
        };
        for (resource, name) in self.resources.iter().flat_map(inside).collect::<Vec<_>>() {
            self.delete(&resource, namespace, &name, true);
        }
    }

    /// Returns the next addresses for a Service: IPv4, and IPv6 too for a dual-stack Service in a dual-stack cluster.
    pub(crate) fn cluster_ips(&mut self, dual: bool) -> Vec<String> {
        self.given += 1;
        let (high, low) = (self.given / 250, self.given % 250 + 1);
        let mut addresses = vec![format!("10.96.{}.{low}", 100 + high)];
        if dual && !self.single_stack {
            addresses.push(format!("fd00:96::{:x}", self.given));
        }
        addresses
    }

    pub(crate) fn compact(&mut self) {
        self.version += 1;
        self.forget_changes();
    }

    pub(crate) fn forget_changes(&mut self) {
        self.compacted = self.version;
    }

    pub(crate) fn put_back(&mut self, version: u64) {
        self.version = version;
        self.log.retain(|entry| entry.version <= version);
    }

    pub(crate) fn bookmark(&mut self) {
        self.record(String::new(), Change::Bookmark);
    }

    pub(crate) fn inject(&mut self, resource: &str, line: &str) {
        self.record(resource.to_owned(), Change::Raw(line.to_owned()));
    }

    fn record(&mut self, resource: String, change: Change) {
        self.log.push(Entry { version: self.version, resource, change });
    }

    /// Returns the kind of a resource, if it exists in this group and version.
    pub(crate) fn kind_of(&self, resource: &str, group_version: &str) -> Option<String> {
        let built_in = BUILT_IN.iter().find(|(name, ..)| *name == resource).map(|(_, kind, group)| (*kind, *group));
        let kept = self.resources.get(resource).map(|kept| (kept.kind.as_str(), kept.group_version.as_str()));
        built_in.or(kept).filter(|(_, group)| *group == group_version).map(|(kind, _)| kind.to_owned())
    }

    /// Encodes a part of a list.
    pub(crate) fn page(&self, kind: &str, selection: &Selection, span: &Span, format: Format) -> Vec<u8> {
        let &Span { version, ref after, limit, is_exact } = span;
        let all = if is_exact { self.objects_at(kind, version) } else { self.objects(kind) };
        let is_selected = |(key, object): &(&Key, &Value)| {
            after.as_ref().is_none_or(|after| *key > after) && selection.matches(object)
        };
        let selected: Vec<_> = all.iter().map(|(key, object)| (key, object.as_ref())).filter(is_selected).collect();
        let limit = if limit == 0 { selected.len() } else { limit };
        let page = &selected[..limit.min(selected.len())];
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if let Some(((namespace, name), _)) = page.last().filter(|_| page.len() < selected.len()) {
            metadata["continue"] = format!("{version}|{namespace}/{name}").into();
            metadata["remainingItemCount"] = (selected.len() - page.len()).into();
        }
        let items: Vec<&Value> = page.iter().map(|(_, object)| *object).collect();
        let api_version = self.resources.get(&plural(kind)).map_or("v1", |resource| &resource.group_version);
        format.list(kind, api_version, &metadata, &items)
    }

    /// Encodes all objects as events, followed by the `initial-events-end` bookmark if `with_mark` is set.
    pub(crate) fn initial_events(&self, kind: &str, selection: &Selection, with_mark: bool, format: Format) -> Vec<u8> {
        let mut lines = Vec::new();
        for (_, object) in self.selected(kind, selection) {
            lines.extend(format.event(kind, "ADDED", object));
        }
        if with_mark {
            lines.extend(self.bookmark_event(kind, &json!({ "k8s.io/initial-events-end": "true" }), format));
        }
        lines
    }

    /// Returns the position of a watch that has seen everything up to a version, which may be in the future.
    pub(crate) fn from(&self, version: u64) -> WatchPosition {
        let position = self.log.iter().position(|entry| entry.version > version).unwrap_or(self.log.len());
        WatchPosition { position, version: if version > self.version { version } else { 0 } }
    }

    /// Encodes the events of a watch from a position on. Returns them with the position after them.
    pub(crate) fn events(
        &self,
        kind: &str,
        selection: &Selection,
        bookmarks: bool,
        from: WatchPosition,
        format: Format,
    ) -> (Vec<u8>, usize) {
        let mut lines = Vec::new();
        let resource = plural(kind);
        for entry in self.log.iter().skip(from.position).filter(|entry| entry.version > from.version) {
            match &entry.change {
                Change::Bookmark if bookmarks => lines.extend(self.bookmark_event(kind, &json!({}), format)),
                Change::Raw(text) if entry.resource == resource => lines.extend(format.raw(kind, text)),
                Change::Object { before, after, is_seen: true } if entry.resource == resource => {
                    if let Some((event_type, object)) =
                        change(before.as_deref(), after.as_deref(), selection, entry.version)
                    {
                        lines.extend(format.event(kind, event_type, &object));
                    }
                }
                _ => {}
            }
        }
        (lines, self.log.len())
    }

    fn objects(&self, kind: &str) -> BTreeMap<Key, Arc<Value>> {
        self.resources.get(&plural(kind)).map(|resource| resource.objects.clone()).unwrap_or_default()
    }

    /// Returns the objects as of a version.
    fn objects_at(&self, kind: &str, version: u64) -> BTreeMap<Key, Arc<Value>> {
        let (resource, mut objects) = (plural(kind), self.objects(kind));
        let later = self.log.iter().rev().take_while(|entry| entry.version > version);
        for entry in later.filter(|entry| entry.resource == resource) {
            if let Change::Object { before, after, .. } = &entry.change {
                after.iter().for_each(|object| drop(objects.remove(&key(object))));
                objects.extend(before.iter().map(|object| (key(object), Arc::clone(object))));
            }
        }
        objects
    }

    fn selected<'a>(&'a self, kind: &str, selection: &'a Selection) -> impl Iterator<Item = (&'a Key, &'a Value)> {
        let objects = self.resources.get(&plural(kind)).into_iter().flat_map(|resource| &resource.objects);
        objects.map(|(key, object)| (key, object.as_ref())).filter(|(_, object)| selection.matches(object))
    }

    pub(crate) fn bookmark_event(&self, kind: &str, annotations: &Value, format: Format) -> Vec<u8> {
        let version = self.version.to_string();
        let metadata = json!({ "resourceVersion": version, "annotations": annotations });
        format.event(kind, "BOOKMARK", &json!({ "kind": kind, "metadata": metadata }))
    }
}

/// Returns the event that a watch with this selection sees. An object that no longer matches is deleted for it.
fn change<'a>(
    before: Option<&'a Value>,
    after: Option<&'a Value>,
    selection: &Selection,
    version: u64,
) -> Option<(&'static str, Cow<'a, Value>)> {
    let was = before.filter(|object| selection.matches(object));
    let is = after.filter(|object| selection.matches(object));
    match (was, is) {
        (None, Some(object)) => Some(("ADDED", Cow::Borrowed(object))),
        (Some(_), Some(object)) => Some(("MODIFIED", Cow::Borrowed(object))),
        (Some(object), None) => {
            let mut object = object.clone();
            object["metadata"]["resourceVersion"] = version.to_string().into();
            Some(("DELETED", Cow::Owned(object)))
        }
        (None, None) => None,
    }
}

fn key(object: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

fn plural(kind: &str) -> String {
    let name = kind.to_ascii_lowercase();
    match name.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if name.ends_with('s') && name != "ingress" => name,
        None => format!("{name}s"),
    }
}
