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
    #[serde(rename = "podIPs", borrow)]
    pod_ips: Option<Vec<PodIp<'a>>>,
}

/// core/v1 PodIP.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PodIp<'a> {
    #[serde(borrow)]
    ip: Text<'a>,
}

/// Returns the addresses of a pod: `podIPs`, or `podIP` alone if that list is empty.
pub(super) fn addresses<'a>(all: Option<&'a [PodIp<'_>]>, single: &'a str) -> Vec<&'a str> {
    match all {
        Some(all) if !all.is_empty() => all.iter().map(|one| &*one.ip).collect(),
        _ if single.is_empty() => Vec::new(),
        _ => vec![single],
    }
}

impl PodStatus<'_> {
    fn addresses(&self) -> Vec<&str> {
        addresses(self.pod_ips.as_deref(), &self.pod_ip)
    }
}

impl Read for Pod<'_> {
    fn metadata(&self) -> &Metadata<'_> {
        &self.metadata.common
    }

    fn object(&self) -> Result<Object<'_>, &'static str> {
        Ok(Object::Pod(object::Pod {
            meta: self.metadata.common.meta(),
            addresses: self.status.as_ref().map(PodStatus::addresses).unwrap_or_default(),
            terminating: self.metadata.common.deletion_timestamp.is_some(),
            host_network: self.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true)),
            labels: self.metadata.labels.iter().collect(),
        }))
    }
}
