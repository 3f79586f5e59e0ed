//! Cluster in which trials run: its DNS, its pods, and a pod for clients.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::cluster::home::{HOLDS, PROCESSES};
use crate::cluster::inside::{Inside, wait_until};
use crate::cluster::network::Node;
use crate::cluster::{images, up};
use xtask::Failed;
use xtask::image::Flavor;

/// Limit for a rollout.
const ROLLOUT: &str = "--timeout=180s";
/// Limit for all that is not a rollout.
const LIMIT: Duration = Duration::from_secs(60);

/// DNS server that a trial measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Portolan,
    CoreDns,
}

impl Server {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Server::Portolan => "Portolan",
            Server::CoreDns => "CoreDNS",
        }
    }

    pub(crate) fn image(self) -> String {
        match self {
            Server::Portolan => images::portolan(Flavor::Server),
            Server::CoreDns => images::COREDNS.to_owned(),
        }
    }
}

/// Running cluster.
pub(crate) struct Bed<'a> {
    pub(crate) inside: Inside<'a>,
    /// Servers whose images the cluster has.
    pub(crate) servers: Vec<Server>,
    pub(crate) nodes: &'static [Node],
}

impl<'a> Bed<'a> {
    /// Prepares a cluster for trials.
    pub(crate) fn new(inside: Inside<'a>) -> Result<Bed<'a>, Failed> {
        let known = inside.output("ctr", &["--namespace", "k8s.io", "images", "list", "--quiet"])?;
        let mut servers = vec![Server::Portolan, Server::CoreDns];
        servers.retain(|server| known.lines().any(|name| name == server.image()));
        let nodes = inside.home.nodes();
        let bed = Bed { inside, servers, nodes };
        for node in bed.nodes {
            bed.inside.kubectl_with("apply -f -", &CLIENT.replace("NODE", node.name))?;
        }
        for node in bed.nodes {
            bed.inside.kubectl(&format!("wait pod/client-{} --for=condition=Ready {ROLLOUT}", node.name))?;
        }
        Ok(bed)
    }

    /// Returns the DNS server that is installed now, if it is one of those that are compared.
    pub(crate) fn installed(&self) -> Option<Server> {
        let image = self
            .inside
            .kubectl("-n kube-system get deployment coredns -o=jsonpath={.spec.template.spec.containers[0].image}");
        let image = image.unwrap_or_default();
        [Server::Portolan, Server::CoreDns].into_iter().find(|server| server.image() == image)
    }

    /// Installs a server with kubeadm's names and arguments, and waits until its pods serve and others have ended.
    pub(crate) fn install(&self, server: Server) -> Result<(), Failed> {
        up::install_dns(&self.inside, &server.image())?;
        self.settle()
    }

    /// Waits until all pods of the DNS serve and none is ending.
    pub(crate) fn settle(&self) -> Result<(), Failed> {
        self.rollout("deployment/coredns")?;
        wait_until("the end of old pods", LIMIT, || {
            let pods = self.pods("k8s-app=kube-dns")?;
            let ending = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_string()).count();
            if ending == 0 { Ok(()) } else { Err(format!("{ending} pods are ending")) }
        })
    }

    /// Waits for a rollout in kube-system.
    pub(crate) fn rollout(&self, what: &str) -> Result<(), Failed> {
        self.inside.kubectl(&format!("-n kube-system rollout status {what} {ROLLOUT}")).map(drop)
    }

    /// Returns the pods in kube-system with a label.
    pub(crate) fn pods(&self, label: &str) -> Result<Vec<Value>, Failed> {
        let text = self.inside.kubectl(&format!("-n kube-system get pods -l {label} -o json"))?;
        let mut list: Value = serde_json::from_str(&text).map_err(|error| format!("kubectl: {error}"))?;
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Returns the addresses of the pods of the DNS.
    pub(crate) fn addresses(&self) -> Result<BTreeSet<String>, Failed> {
        let pods = self.pods("k8s-app=kube-dns")?;
        let ips = pods.iter().flat_map(|pod| pod["status"]["podIPs"].as_array().cloned().unwrap_or_default());
        Ok(ips.filter_map(|ip| ip["ip"].as_str().map(str::to_owned)).collect())
    }

    /// Returns the process of the first container of a pod, in the PID namespace that the nodes share.
    pub(crate) fn process(&self, pod: &Value) -> Result<String, Failed> {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let container = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap_or_default();
        let container = container.trim_start_matches("containerd://");
        let node = self.nodes.iter().find(|node| pod["spec"]["nodeName"] == node.name);
        let place = self.inside.on(*node.ok_or_else(|| format!("pod {name} is on no node"))?);
        let tasks = place.output("ctr", &["--namespace", "k8s.io", "tasks", "list"])?;
        let mut words = tasks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let task = words.find(|words| words.first() == Some(&container) && !container.is_empty());
        let process = task.and_then(|words| words.get(1).map(|word| (*word).to_owned()));
        process.ok_or_else(|| format!("the process of pod {name} is not known"))
    }

    /// Returns the process in the pod of the clients of a node.
    pub(crate) fn client(&self, node: Node) -> Result<String, Failed> {
        let text = self.inside.kubectl(&format!("get pod client-{} -o json", node.name))?;
        self.process(&serde_json::from_str(&text).map_err(|error| format!("kubectl: {error}"))?)
    }

    /// Kills a component of the node. It is not started again until [`release`](Bed::release).
    pub(crate) fn hold(&self, component: &str) -> Result<(), Failed> {
        self.inside.home.write(&format!("{HOLDS}/{component}"), "")?;
        let process = self.inside.home.read(&format!("{PROCESSES}/{component}"))?;
        self.inside.output("kill", &["-KILL", process.trim()]).map(drop)
    }

    /// Lets a component start again.
    pub(crate) fn release(&self, component: &str) -> Result<(), Failed> {
        let path = self.inside.home.path(HOLDS).join(component);
        std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Waits until the API server answers.
    pub(crate) fn wait_for_api(&self) -> Result<(), Failed> {
        wait_until("the API server", LIMIT, || self.inside.kubectl("get --raw=/readyz").map(drop))
    }
}

/// Pod from whose network the clients of a node send. It stays while the node is cut off.
const CLIENT: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: client-NODE, namespace: default}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 0
  tolerations: [{operator: Exists}]
  containers:
    - {name: client, image: "localhost/client:1", imagePullPolicy: Never}
"#;
