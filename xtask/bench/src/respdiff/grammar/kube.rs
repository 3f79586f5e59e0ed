//! *kubernetes*, *k8s_external* and *autopath*.

use super::{Grammar, Kubernetes, Lines, with_options};

impl Grammar {
    pub(super) fn kubernetes(&mut self) -> Lines {
        let pods = self.random.pick(&["pods insecure", "pods verified", "pods disabled"]);
        let mut options = vec!["endpoint http://127.0.0.1:{$API}".to_owned(), pods.to_owned()];
        let mut scene = Kubernetes { verified: pods == "pods verified", endpoints: true, churn: true };
        if self.random.percent(10) {
            options.push("noendpoints".to_owned());
            scene.endpoints = false;
        }
        // Without endpoints, every Service is empty.
        if scene.endpoints && self.random.percent(15) {
            options.push("ignore empty_service".to_owned());
        }
        let choices: [(usize, &[&str]); 5] = [
            (30, &["endpoint_pod_names"]),
            (25, &["ttl 0", "ttl 5", "ttl 60", "ttl 3600"]),
            (40, &["fallthrough", "fallthrough in-addr.arpa ip6.arpa", "fallthrough cluster.local"]),
            (12, &["namespaces edge prod kube m0 m1 m2 m3 m4", "namespace_labels env=prod"]),
            (10, &["labels app in (s0, s1, s2, marker)"]),
        ];
        for (percent, list) in choices {
            if self.random.percent(percent) {
                options.push(self.random.pick(list).to_owned());
            }
        }
        let zones = self.random.pick(&[
            "cluster.local in-addr.arpa ip6.arpa",
            "cluster.local in-addr.arpa ip6.arpa",
            "cluster.local",
            "cluster.local 10.0.0.0/8 ip6.arpa",
            "cluster.local alt.local",
        ]);
        let mut lines = with_options(format!("kubernetes {zones}"), &options);
        if self.random.percent(35) {
            let external: [&[&str]; 4] = [&[], &["headless"], &["ttl 60", "apex ap"], &["fallthrough"]];
            let options: Vec<String> = self.random.pick(&external).iter().map(|&option| option.to_owned()).collect();
            lines.extend(with_options("k8s_external lb.test".to_owned(), &options));
            self.add_names(["lb.test.", "dns.lb.test.", "ns1.dns.lb.test.", "ns1.ap.lb.test.", "edge.lb.test."]);
        }
        if scene.verified && self.random.percent(15) {
            lines.push("autopath @kubernetes".to_owned());
        }
        self.kubernetes = Some(scene);
        self.names_of_zones();
        lines
    }

    /// Adds the names of a cluster that do not depend on its objects.
    fn names_of_zones(&mut self) {
        self.add_names([
            "cluster.local.",
            "svc.cluster.local.",
            "pod.cluster.local.",
            "edge.svc.cluster.local.",
            "edge.pod.cluster.local.",
            "gone.svc.cluster.local.",
            "dns-version.cluster.local.",
            "ns.dns.cluster.local.",
            "dns.cluster.local.",
            "10.in-addr.arpa.",
            "96.10.in-addr.arpa.",
            "in-addr.arpa.",
            "ip6.arpa.",
            "s0.edge.svc.alt.local.",
            "www.example.org.edge.svc.cluster.local.",
            "www.example.org.svc.cluster.local.",
            "www.example.org.cluster.local.",
        ]);
    }
}
