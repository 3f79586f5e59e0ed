//! Resolver settings that kubelets give to Pods.

use std::net::{IpAddr, SocketAddr};

use doctor::objects::Node;
use doctor::{Facts, Known, Kubelet, Unknown};
use serde::Deserialize;

use super::api::Api;
use super::objects::config_map;
use super::resolv_conf::ResolvConf;
use futures_util::future::join_all;

/// ConfigMap and key in which kubeadm keeps the settings of all kubelets.
const CONFIG_MAP: (&str, &str) = ("kube-system", "kubelet-config");
const KEY: &str = "kubelet";
/// Maximum number of kubelets that are asked.
const KUBELETS_MAX: usize = 20;

/// Part of a KubeletConfiguration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Settings {
    #[serde(rename = "clusterDNS")]
    cluster_dns: Vec<String>,
    #[serde(rename = "clusterDomain")]
    cluster_domain: String,
}

/// Answer of a kubelet to `/configz`.
#[derive(Deserialize)]
struct ConfigZ {
    #[serde(rename = "kubeletconfig")]
    settings: Settings,
}

/// Reads the settings from the ConfigMap of kubeadm, from kubelets, and from the file of this Pod.
///
/// # Errors
/// None of them is known.
pub(super) async fn kubelets(api: &Known<Api>, facts: &Facts, own: &ResolvConf) -> Known<Vec<Kubelet>> {
    let (written, running) = match api {
        Ok(api) => tokio::join!(of_config_map(api), of_nodes(api, facts)),
        Err(reason) => (Err(reason.clone()), Err(reason.clone())),
    };
    let reason = match (&written, &running) {
        (Err(reason), _) => reason.to_string(),
        (_, Err(reason)) => format!("there is no ConfigMap {}/{}, and {reason}", CONFIG_MAP.0, CONFIG_MAP.1),
        _ => "no kubelet and no ConfigMap says its settings".to_owned(),
    };
    let mut all: Vec<Kubelet> = of_pod(own).into_iter().collect();
    all.extend(written.ok().flatten());
    all.extend(running.into_iter().flatten());
    if all.is_empty() { Err(Unknown::new(reason)) } else { Ok(all) }
}

fn kubelet(source: String, settings: &Settings) -> Kubelet {
    let cluster_dns = settings.cluster_dns.iter().filter_map(|address| address.parse::<IpAddr>().ok()).collect();
    let cluster_domain = settings.cluster_domain.trim_end_matches('.').to_owned();
    Kubelet { source, cluster_dns, cluster_domain }
}

async fn of_config_map(api: &Api) -> Known<Option<Kubelet>> {
    let (namespace, name) = CONFIG_MAP;
    let Some(data) = config_map(api, namespace, name).await? else { return Ok(None) };
    let Some(text) = data.get(KEY) else { return Ok(None) };
    let source = format!("ConfigMap {namespace}/{name}");
    let settings: Result<Settings, _> = dynserde::yaml(text);
    let settings = settings.map_err(|_| Unknown::new(format!("{source}: the key `{KEY}` is not YAML")))?;
    Ok(Some(kubelet(source, &settings)))
}

/// Asks kubelets through the API server. Those with the same settings are one.
async fn of_nodes(api: &Api, facts: &Facts) -> Known<Vec<Kubelet>> {
    let nodes = facts.objects.nodes.as_ref().map_err(Clone::clone)?;
    let answers = join_all(nodes.iter().take(KUBELETS_MAX).map(|node| of_node(api, node))).await;
    let mut groups: Vec<(Settings, Vec<String>)> = Vec::new();
    let mut refused = None;
    for answer in answers {
        match answer {
            Ok((node, settings)) => match groups.iter_mut().find(|(known, _)| *known == settings) {
                Some((_, names)) => names.push(node),
                None => groups.push((settings, vec![node])),
            },
            Err(reason) => refused = Some(reason),
        }
    }
    match refused {
        Some(reason) if groups.is_empty() => Err(reason),
        _ => Ok(groups.iter().map(|(settings, names)| kubelet(source(names), settings)).collect()),
    }
}

async fn of_node(api: &Api, node: &Node) -> Known<(String, Settings)> {
    let name = &node.metadata.name;
    let path = format!("/api/v1/nodes/{name}/proxy/configz");
    let answer: Option<ConfigZ> = api.object(&path, "get nodes/proxy").await?;
    let missing = || Unknown::new(format!("the kubelet of {name} has no /configz"));
    Ok((name.clone(), answer.ok_or_else(missing)?.settings))
}

fn source(names: &[String]) -> String {
    match names {
        [one] => format!("kubelet of {one}"),
        [first, rest @ ..] => format!("kubelet of {first} and {} more", rest.len()),
        [] => "kubelet".to_owned(),
    }
}

/// Returns the settings of this Pod, if it asks the cluster DNS.
fn of_pod(own: &ResolvConf) -> Option<Kubelet> {
    let domain = own.cluster_domain()?.to_owned();
    let cluster_dns = own.servers.iter().map(SocketAddr::ip).collect();
    Some(Kubelet { source: "/etc/resolv.conf of this Pod".to_owned(), cluster_dns, cluster_domain: domain })
}
