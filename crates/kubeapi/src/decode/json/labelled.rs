//! `metadata` with all labels of an object.

use core::fmt;

use cluster::mesh::object::Label;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::objects::{Annotations, Metadata};
use super::text::Text;

/// `metadata` with all labels.
#[derive(Default)]
pub(super) struct Labelled<'a> {
    pub(super) common: Metadata<'a>,
    pub(super) created: Text<'a>,
    pub(super) labels: Pairs<'a>,
    /// True if a proxy of the mesh captures the traffic of the Pod.
    pub(super) captured: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Fields<'a> {
    #[serde(borrow)]
    namespace: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    resource_version: Text<'a>,
    #[serde(borrow)]
    creation_timestamp: Text<'a>,
    #[serde(borrow)]
    labels: Pairs<'a>,
    #[serde(borrow)]
    annotations: Option<MeshAnnotations<'a>>,
    deletion_timestamp: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MeshAnnotations<'a> {
    #[serde(rename = "k8s.io/initial-events-end", borrow)]
    initial_events_end: Text<'a>,
    /// Set by the sidecar injector.
    #[serde(rename = "sidecar.istio.io/status")]
    sidecar: Option<IgnoredAny>,
    /// Set by the node agent that captures the Pod's traffic (ambient mode).
    #[serde(rename = "ambient.istio.io/redirection", borrow)]
    redirection: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Labelled<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::deserialize(deserializer)?;
        let annotations = fields.annotations.unwrap_or_default();
        let captured = annotations.sidecar.is_some() || &*annotations.redirection == "enabled";
        let common = Metadata {
            namespace: fields.namespace,
            name: fields.name,
            resource_version: fields.resource_version,
            annotations: Some(Annotations {
                initial_events_end: annotations.initial_events_end,
                ..Annotations::default()
            }),
            deletion_timestamp: fields.deletion_timestamp,
            ..Metadata::default()
        };
        Ok(Labelled { common, created: fields.creation_timestamp, labels: fields.labels, captured })
    }
}

/// Names and values of a map, in input order. `null` is an empty map.
#[derive(Default)]
pub(super) struct Pairs<'a>(Vec<(Text<'a>, Text<'a>)>);

impl Pairs<'_> {
    pub(super) fn iter(&self) -> impl Iterator<Item = Label<'_>> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map of strings")
    }

    fn visit_none<E: Error>(self) -> Result<Pairs<'de>, E> {
        Ok(Pairs::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Pairs<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}
