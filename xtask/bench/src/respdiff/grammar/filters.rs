//! Plugins that change answers, or decide who gets one: *cache*, *acl*, *header*, *dns64* and the small ones.

use super::{Grammar, Lines, with_options};

/// Plugins without options that many Corefiles have, and how often of a hundred.
const SMALL: &[(&str, usize)] = &[
    ("loadbalance", 20), ("any", 15), ("minimal", 15), ("local", 12), ("errors", 40), ("metadata", 10),
    ("nsid srv1", 10), ("bufsize 512", 4), ("bufsize 1232", 4), ("bufsize 700", 4), ("multisocket 2", 5), ("log", 20),
];
/// Names that *local* answers.
const LOCAL: [&str; 7] = [
    "localhost.", "a.localhost.", "localhost.cluster.local.", "localhost.example.org.", "1.0.0.127.in-addr.arpa.",
    "0.in-addr.arpa.", "127.in-addr.arpa.",
];

impl Grammar {
    /// Returns *cache* without prefetching and without stale answers, which depend on the moment.
    pub(super) fn cache(&mut self, zone: &str) -> Lines {
        let in_zone = format!(" 60 {zone}");
        let first = self.random.pick(&["", " 30", " 5", " 300", " 30 example.org", in_zone.as_str()]).to_owned();
        let in_zone = format!("disable success {zone}");
        let choices: [(usize, &[&str]); 5] = [
            (30, &["success 9984", "success 1000 20", "success 9984 30 2", "success 9984 3600 60"]),
            (30, &["denial 9984", "denial 1000 20", "denial 9984 30 2", "denial 9984 3600 60"]),
            (25, &["servfail 0", "servfail 2s", "servfail 10s"]),
            (25, &["disable success", "disable denial", "disable success example.org", in_zone.as_str()]),
            (20, &["keepttl"]),
        ];
        let mut options = Lines::new();
        for (percent, list) in choices {
            if self.random.percent(percent) {
                options.push(self.random.pick(list).to_owned());
            }
        }
        if let Some(kubernetes) = self.kubernetes.as_mut().filter(|_| self.has_kubernetes) {
            // A cached answer would hide the changes of the cluster. Some Corefiles cache them and see no changes.
            kubernetes.churn = self.random.percent(70);
            if kubernetes.churn {
                let zones = "cluster.local in-addr.arpa ip6.arpa alt.local lb.test";
                options.retain(|option| !option.starts_with("disable"));
                options.extend(["success", "denial"].map(|kind| format!("disable {kind} {zones}")));
                // Zones on the line would leave the answers of other zones out.
                return with_options("cache".to_owned(), &options);
            }
        }
        with_options(format!("cache{first}"), &options)
    }

    pub(super) fn acl(&mut self, zone: &str) -> Lines {
        let mut options = Lines::new();
        for _ in 0..self.random.pick(&[1, 2, 3]) {
            let actions = ["allow", "block", "filter", "block", "filter", "allow", "drop"];
            let action = self.random.pick(&actions);
            let types = ["", " type A", " type AAAA MX", " type TXT", " type ANY", " type *"];
            // Silence takes time.
            let rtype = if action == "drop" { " type HINFO" } else { self.random.pick(&types) };
            let nets = [" net 127.0.0.0/8", " net 127.0.0.1", " net 10.0.0.0/8", " net 10.0.0.0/8 127.0.0.1/32", " net *"];
            options.push(format!("{action}{rtype}{}", self.random.pick(&nets)));
        }
        let own = format!(" {zone}");
        let zones = self.random.pick(&["", own.as_str(), " example.org"]).to_owned();
        with_options(format!("acl{zones}"), &options)
    }

    pub(super) fn header(&mut self) -> Lines {
        let rules = [
            "response set ra", "response clear aa", "response set aa", "response clear ra", "query clear rd",
            "query set rd", "response set rd ra aa", "response clear rd", "query set aa", "query set ra",
        ];
        let count = self.random.pick(&[1, 2, 3]);
        let options: Lines = self.random.sample(&rules, count).iter().map(|&rule| rule.to_owned()).collect();
        with_options("header".to_owned(), &options)
    }

    pub(super) fn dns64(&mut self) -> Lines {
        let forms: [&[&str]; 6] = [
            &["dns64"],
            &["dns64 64:ff9b::/96"],
            &["dns64 {", "    translate_all", "}"],
            &["dns64 {", "    prefix 2001:db8:1::/96", "    allow_ipv4", "}"],
            &["dns64 {", "    prefix 2001:db8:1::/64", "    allow_ipv4", "}"],
            &["dns64 {", "    allow_ipv4", "    translate_all", "}"],
        ];
        self.random.pick(&forms).iter().map(|&line| line.to_owned()).collect()
    }

    /// Adds plugins of one line.
    pub(super) fn small_plugins(&mut self, zone: &str, lines: &mut Lines) {
        for (line, percent) in SMALL {
            if self.random.percent(*percent) && !lines.iter().any(|other| other == line || is_bufsize(line, other)) {
                lines.push((*line).to_owned());
            }
        }
        if lines.iter().any(|line| line == "local") {
            self.add_names(LOCAL);
        }
        let has_zone = lines.iter().any(|line| line.starts_with("file ") || line.starts_with("auto"));
        if has_zone && self.random.percent(10) {
            lines.extend(with_options("transfer".to_owned(), &["to *".to_owned()]));
        }
        if self.random.percent(8) {
            lines.extend(with_options(format!("log {zone}"), &["class denial error".to_owned()]));
        }
    }
}

/// Returns true for a second *bufsize*.
fn is_bufsize(line: &str, other: &str) -> bool {
    line.starts_with("bufsize") && other.starts_with("bufsize")
}
