//! Objects of the cluster.

use std::collections::BTreeMap;

use doctor::objects::Objects;
use doctor::{Known, Unknown};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::api::Api;

/// Collections of Cilium's own policies.
const CILIUM_POLICIES: &str = "/apis/cilium.io/v2/ciliumnetworkpolicies";
const REDIRECT_POLICIES: &str = "/apis/cilium.io/v2/ciliumlocalredirectpolicies";
/// ConfigMap in which kubeadm keeps its settings.
const KUBEADM: &str = "kubeadm-config";
/// ConfigMap in which Cilium has its settings.
const CILIUM: &str = "cilium-config";

/// ConfigMap.
#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

/// Reads the objects of the cluster, all kinds at once.
pub(super) async fn objects(api: &Api, end: Instant) -> Objects {
    let one = async {
        tokio::join!(api.all(end), api.all(end), api.all(end), api.all(end), api.all(end), api.all(end), api.all(end))
    };
    let more = async {
        tokio::join!(
            api.all(end),
            api.all(end),
            api.all(end),
            api.all(end),
            api.custom(CILIUM_POLICIES, "ciliumnetworkpolicies", end),
            api.custom(REDIRECT_POLICIES, "ciliumlocalredirectpolicies", end),
            api.all(end)
        )
    };
    let settings = async { tokio::join!(settings(api, KUBEADM, end), settings(api, CILIUM, end)) };
    let (one, more, (kubeadm, cilium)) = tokio::join!(one, more, settings);
    let (services, slices, endpoints, namespaces, pods, nodes, deployments) = one;
    let (daemon_sets, disruption_budgets, network_policies, events, cilium_policies, redirect_policies, autoscalers) =
        more;
    Objects {
        services,
        slices,
        endpoints,
        namespaces,
        pods,
        nodes,
        deployments,
        daemon_sets,
        disruption_budgets,
        autoscalers,
        network_policies,
        events,
        cilium_policies,
        redirect_policies,
        kubeadm,
        cilium,
    }
}

/// Reads a ConfigMap with settings. A list ends in time without help; a single object needs its own limit.
async fn settings(api: &Api, name: &str, end: Instant) -> Known<Option<BTreeMap<String, String>>> {
    let late = |_| Unknown::new(format!("get ConfigMap kube-system/{name}: no response of the API server in time"));
    timeout_at(end, config_map(api, "kube-system", name)).await.map_err(late)?
}

/// Response to `/version`.
#[derive(Deserialize)]
struct Version {
    #[serde(rename = "gitVersion", default)]
    version: String,
}

/// Reads the version of the API server.
pub(super) async fn api_version(api: &Api) -> Known<String> {
    let found: Option<Version> = api.object("/version", "get /version").await?;
    found.map(|found| found.version).ok_or_else(|| Unknown::new("the API server has no /version"))
}

/// Reads the data of a ConfigMap; `None` if it does not exist.
pub(super) async fn config_map(api: &Api, namespace: &str, name: &str) -> Known<Option<BTreeMap<String, String>>> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
    let found: Option<ConfigMap> = api.object(&path, &format!("get ConfigMap {namespace}/{name}")).await?;
    Ok(found.map(|found| found.data))
}
