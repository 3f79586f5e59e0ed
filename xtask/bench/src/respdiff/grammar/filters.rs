//! Plugins that change answers, or decide who gets one: *cache*, *acl*, *header*, *dns64* and the small ones.

use super::{Grammar, Lines, with_options};

/// Plugins of one line, and how often of a hundred Corefiles have them. A server block has one line of a plugin.
const SMALL: &[(&str, usize)] = &[
    ("loadbalance", 16),
    ("loadbalance prefer 192.0.2.0/25 2001:db8::/32", 5),
    ("any", 15),
    ("minimal", 15),
    ("local", 12),
    ("errors", 40),
    ("metadata", 10),
    ("nsid srv1", 10),
    ("bufsize 512", 4),
    ("bufsize 1232", 4),
    ("bufsize 700", 4),
    ("multisocket 2", 5),
    ("log", 20),
    ("cancel", 4),
    ("cancel 4s", 3),
    ("debug", 3),
    ("root .", 5),
    ("loop", 4),
    ("reload 30s", 4),
    ("prometheus 127.0.0.1:0", 5),
    ("health 127.0.0.1:0", 3),
    ("ready 127.0.0.1:0", 3),
    ("pprof 127.0.0.1:0", 2),
    ("shed", 4),
];
/// Secret of the only key of *tsig*.
const SECRET: &str = "secret k.test. c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0IQ==";
/// Names that *local* answers.
const LOCAL: [&str; 7] = [
    "localhost.",
    "a.localhost.",
    "localhost.cluster.local.",
    "localhost.example.org.",
    "1.0.0.127.in-addr.arpa.",
    "0.in-addr.arpa.",
    "127.in-addr.arpa.",
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
            let nets =
                [" net 127.0.0.0/8", " net 127.0.0.1", " net 10.0.0.0/8", " net 10.0.0.0/8 127.0.0.1/32", " net *"];
            options.push(format!("{action}{rtype}{}", self.random.pick(&nets)));
        }
        let own = format!(" {zone}");
        let zones = self.random.pick(&["", own.as_str(), " example.org"]).to_owned();
        with_options(format!("acl{zones}"), &options)
    }

    pub(super) fn header(&mut self) -> Lines {
        let rules = [
            "response set ra",
            "response clear aa",
            "response set aa",
            "response clear ra",
            "query clear rd",
            "query set rd",
            "response set rd ra aa",
            "response clear rd",
            "query set aa",
            "query set ra",
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

    pub(super) fn siit(&mut self) -> Lines {
        let mut options = Lines::new();
        if self.random.percent(50) {
            options.push(format!("ipv6_prefix {}", self.random.pick(&["64:ff9b::/96", "2001:db8:64::/96"])));
        }
        if self.random.percent(50) {
            options.push("eam 192.0.2.33 2001:db8::33".to_owned());
        }
        with_options("siit".to_owned(), &options)
    }

    /// Returns *tsig*. No question has a signature.
    pub(super) fn tsig(&mut self, zone: &str) -> Lines {
        let own = format!(" {zone}");
        let zones = self.random.pick(&["", own.as_str(), " example.org"]).to_owned();
        let required = ["require none", "require A AAAA", "require all", "require TXT", "require_opcode UPDATE"];
        let options = [SECRET.to_owned(), self.random.pick(&required).to_owned()];
        with_options(format!("tsig{zones}"), &options)
    }

    /// Returns *dynupdate*, whose zone no question may change, because none has a signature.
    pub(super) fn dynupdate(&mut self, zone: &str) -> Lines {
        let zone = if zone == "." || self.zones.iter().any(|other| other == zone) { "dyn.test" } else { zone };
        self.zones.push(zone.to_owned());
        // It refuses types that only a signed zone has.
        let text =
            self.zone_file(zone).lines().filter(|line| !line.contains(" DS ")).collect::<Vec<_>>().join("\n") + "\n";
        let options = [format!("file {}", self.write("", text)), format!("allow k.test. a.{zone} A TXT")];
        let mut lines = with_options(format!("dynupdate {zone}"), &options);
        lines.extend(with_options("tsig".to_owned(), &[SECRET.to_owned(), "require_opcode UPDATE".to_owned()]));
        lines
    }

    /// Returns *autopath* with the search path of a file.
    pub(super) fn autopath(&mut self, zone: &str) -> Lines {
        let path = self.write("", "search a.z1.test z1.test example.org\n".to_owned());
        let names = ["www", "www.example.org", "www.z2.test", "nx1", "nx1.example.net", "a", "cn1"];
        self.add_names(names.map(|name| format!("{name}.a.z1.test.")));
        let own = format!(" {zone}");
        let zones = self.random.pick(&["", own.as_str(), " z1.test"]).to_owned();
        vec![format!("autopath{zones} {path}")]
    }

    /// Adds plugins of one line.
    pub(super) fn small_plugins(&mut self, zone: &str, lines: &mut Lines) {
        for (line, percent) in SMALL {
            if self.random.percent(*percent) && !lines.iter().any(|other| first_word(other) == first_word(line)) {
                lines.push((*line).to_owned());
            }
        }
        if self.random.percent(4) {
            let options = ["read 3s", "write 3s", "idle 6s"].map(str::to_owned);
            lines.extend(with_options("timeouts".to_owned(), &options));
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

fn first_word(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}
