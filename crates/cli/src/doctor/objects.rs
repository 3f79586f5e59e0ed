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
            kubeadm_settings(api, end)
        )
    };
    let (one, more) = tokio::join!(one, more);
    let (services, slices, endpoints, namespaces, pods, nodes, deployments) = one;
    let (daemon_sets, disruption_budgets, network_policies, events, cilium_policies, redirect_policies, kubeadm) = more;
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
        network_policies,
        events,
        cilium_policies,
        redirect_policies,
        kubeadm,
    }
}

/// Reads the settings of kubeadm. Lists end by themselves; a single object needs its own limit.
async fn kubeadm_settings(api: &Api, end: Instant) -> Known<Option<BTreeMap<String, String>>> {
    let late = |_| Unknown::new(format!("get ConfigMap kube-system/{KUBEADM}: no response of the API server in time"));
    timeout_at(end, config_map(api, "kube-system", KUBEADM)).await.map_err(late)?
}

/// Reads the data of a ConfigMap; `None` if it does not exist.
pub(super) async fn config_map(api: &Api, namespace: &str, name: &str) -> Known<Option<BTreeMap<String, String>>> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
    let found: Option<ConfigMap> = api.object(&path, &format!("get ConfigMap {namespace}/{name}")).await?;
    Ok(found.map(|found| found.data))
}
