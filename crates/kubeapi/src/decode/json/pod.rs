//! Pods in JSON, with their addresses and labels.

use cluster::object::{self, Object};
use serde::Deserialize;

use super::labelled::Labelled;
use super::objects::{Metadata, Read};
use super::text::Text;

/// core/v1 Pod.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pod<'a> {
    #[serde(borrow)]
    metadata: Labelled<'a>,
    spec: Option<PodSpec>,
    #[serde(borrow)]
    status: Option<PodStatus<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodSpec {
    #[serde(rename = "hostNetwork")]
    host_network: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus<'a> {
    #[serde(rename = "podIP", borrow)]
    pod_ip: Text<'a>,
}

impl Read for Pod<'_> {
    fn metadata(&self) -> &Metadata<'_> {
        &self.metadata.common
    }

    fn object(&self) -> Result<Object<'_>, &'static str> {
        Ok(Object::Pod(object::Pod {
            meta: self.metadata.common.meta(),
            address: self.status.as_ref().map_or("", |status| &status.pod_ip),
            terminating: self.metadata.common.deletion_timestamp.is_some(),
            host_network: self.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true)),
            labels: self.metadata.labels.iter().collect(),
        }))
    }
}
