//! Command lines of the components of a node.

use super::configuration as files;
use super::credentials as keys;
use super::home::{Home, KUBECONFIG};
use super::network::{self, API_PORT, Node};

/// Component: its name, its program, and its arguments.
pub(crate) struct Component {
    pub(crate) name: String,
    /// Program on the PATH, or an absolute path.
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
}

impl Component {
    fn new<const N: usize>(name: &str, program: &str, arguments: [String; N]) -> Component {
        Component { name: name.to_owned(), program: program.to_owned(), arguments: arguments.into() }
    }

    /// Names it after its node, if that is not the first.
    fn on(mut self, node: Node) -> Component {
        if node != network::FIRST {
            self.name = format!("{}-{}", self.name, node.name);
        }
        self
    }
}

/// Returns the components that start before the API server answers, and those that need it.
pub(crate) fn all(home: &Home, can_stream_lists: bool) -> [Vec<Component>; 2] {
    let node = network::FIRST;
    let first = vec![etcd(home), containerd(home, node), outside(home), api_server(home, can_stream_lists)];
    [first, vec![controllers(home), scheduler(home), kubelet(home, node), proxy(home, node)]]
}

/// Returns the components of the second node.
pub(crate) fn of_second(home: &Home) -> Vec<Component> {
    let node = network::SECOND;
    vec![containerd(home, node), kubelet(home, node), proxy(home, node)]
}

/// Returns the first process of the second node, in namespaces of its own but for processes. `program` is this one.
pub(crate) fn second_node(home: &Home, program: &str) -> Component {
    let namespaces = ["--mount", "--net", "--uts", "--propagation", "private"];
    let own = [program, "cluster", "second-node", "--folder"];
    let mut component = Component::new(network::SECOND.name, "unshare", namespaces.map(str::to_owned));
    component.arguments.extend(own.map(str::to_owned));
    component.arguments.push(home.folder().display().to_string());
    component
}

fn etcd(home: &Home) -> Component {
    const CLIENTS: &str = "http://127.0.0.1:2379";
    const PEERS: &str = "http://127.0.0.1:2380";
    let arguments = [
        format!("--data-dir={}", home.text("etcd")),
        format!("--listen-client-urls={CLIENTS}"),
        format!("--advertise-client-urls={CLIENTS}"),
        format!("--listen-peer-urls={PEERS}"),
        format!("--initial-advertise-peer-urls={PEERS}"),
        format!("--initial-cluster=default={PEERS}"),
        // The cluster does not outlive the machine.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    Component::new("etcd", "etcd", arguments)
}

fn containerd(home: &Home, node: Node) -> Component {
    let config = home.text(&node.file(files::CONTAINERD));
    Component::new("containerd", "containerd", [format!("--config={config}")]).on(node)
}

/// Name server in the namespace outside.
fn outside(home: &Home) -> Component {
    let words = ["netns", "exec", network::OUTSIDE].map(str::to_owned);
    let server = [home.text(PORTOLAN), "-conf".to_owned(), home.text(files::OUTSIDE)];
    let mut component = Component::new("outside", "ip", words);
    component.arguments.extend(server);
    component
}

/// Log of the lists and watches of servers in the cluster, a JSON object per line.
pub(crate) const AUDIT_LOG: &str = "log/audit.log";
/// Binary of Portolan that runs outside of containers.
pub(crate) const PORTOLAN: &str = "bin/portolan";

fn api_server(home: &Home, can_stream_lists: bool) -> Component {
    let arguments = [
        "--etcd-servers=http://127.0.0.1:2379".to_owned(),
        format!("--service-account-key-file={}", home.text(keys::ACCOUNT_PUBLIC_KEY)),
        format!("--service-account-signing-key-file={}", home.text(keys::ACCOUNT_KEY)),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--token-auth-file={}", home.text(keys::TOKENS)),
        format!("--service-cluster-ip-range={}", network::SERVICES.join(",")),
        format!("--secure-port={API_PORT}"),
        format!("--advertise-address={}", network::FIRST.v4),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--feature-gates=WatchList={can_stream_lists}"),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--tls-cert-file={}", home.text(keys::API_CERTIFICATE)),
        format!("--tls-private-key-file={}", home.text(keys::API_KEY)),
        format!("--client-ca-file={}", home.text(keys::AUTHORITY)),
        format!("--cert-dir={}", home.text("certificates/api")),
        format!("--audit-policy-file={}", home.text(files::AUDIT)),
        format!("--audit-log-path={}", home.text(AUDIT_LOG)),
    ];
    Component::new("kube-apiserver", "kube-apiserver", arguments)
}

fn controllers(home: &Home) -> Component {
    let arguments = [
        format!("--kubeconfig={}", home.text(KUBECONFIG)),
        format!("--service-account-private-key-file={}", home.text(keys::ACCOUNT_KEY)),
        format!("--root-ca-file={}", home.text(keys::AUTHORITY)),
        format!("--cluster-signing-cert-file={}", home.text(keys::AUTHORITY)),
        format!("--cluster-signing-key-file={}", home.text(keys::AUTHORITY_KEY)),
        "--leader-elect=false".to_owned(),
        "--allocate-node-cidrs=true".to_owned(),
        format!("--cluster-cidr={}", network::PODS.join(",")),
        format!("--service-cluster-ip-range={}", network::SERVICES.join(",")),
        format!("--cert-dir={}", home.text("certificates/controllers")),
    ];
    Component::new("kube-controller-manager", "kube-controller-manager", arguments)
}

fn scheduler(home: &Home) -> Component {
    let arguments = [
        format!("--kubeconfig={}", home.text(KUBECONFIG)),
        "--leader-elect=false".to_owned(),
        format!("--cert-dir={}", home.text("certificates/scheduler")),
    ];
    Component::new("kube-scheduler", "kube-scheduler", arguments)
}

fn kubelet(home: &Home, node: Node) -> Component {
    let arguments = [
        format!("--config={}", home.text(&node.file(files::KUBELET))),
        format!("--kubeconfig={}", home.text(&node.file(files::KUBELET_KUBECONFIG))),
        format!("--hostname-override={}", node.name),
        format!("--node-ip={},{}", node.v4, node.v6),
        "--cert-dir=/var/lib/kubelet/pki".to_owned(),
    ];
    Component::new("kubelet", "kubelet", arguments).on(node)
}

fn proxy(home: &Home, node: Node) -> Component {
    let config = home.text(&node.file(files::PROXY));
    Component::new("kube-proxy", "kube-proxy", [format!("--config={config}")]).on(node)
}
