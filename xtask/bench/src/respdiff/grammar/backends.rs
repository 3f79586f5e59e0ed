//! Plugins that answer: *hosts*, *file*, *auto*, *forward* and *chaos*.

use std::collections::BTreeSet;

use super::{Grammar, Lines, absolute, below, with_options};

/// First labels of names to which an upstream reacts in a way of its own ([`upstream`](crate::respdiff::upstream)).
pub(super) const UPSTREAM_LABELS: &[&str] = &[
    "nx1", "n01", "nd1", "ne1", "ny1", "sf1", "rf1", "ni1", "fe1", "xr1", "dl1", "tz1", "t11", "t71", "ad1", "aa1",
    "nra1", "cd1", "cn1", "cx1", "co1", "cy1", "big1", "sg1", "www", "plain", "api", "mail",
];
/// Environment variables with the ports of upstreams, in the order in which they are tried.
const UPSTREAMS: &[&[&str]] = &[
    &["UP"],
    &["UP"],
    &["UP"],
    &["UP", "UP2"],
    &["UPFAIL"],
    &["UPREFUSE"],
    &["UPNX"],
    &["UPTC"],
    &["UPTC"],
    &["UP", "UPFAIL"],
    &["UPFAIL", "UP"],
];

impl Grammar {
    pub(super) fn hosts(&mut self, zone: &str) -> Lines {
        let entries = self.host_entries(zone);
        let mut options = Lines::new();
        let mut first = "hosts".to_owned();
        if self.random.percent(50) {
            let text = format!("# hosts\n{}\n127.0.0.1 localhost # c\n", entries.join("\n"));
            first.push_str(&format!(" {}", self.write("", text)));
        } else {
            let only = below("only.file", zone);
            self.add_names([absolute(&only)]);
            let path = self.write("", format!("192.0.2.222 {only}\n"));
            first.push_str(&format!(" {path}"));
            options.extend(entries);
        }
        if self.random.percent(30) {
            let zones = [zone.to_owned(), zone.to_owned(), "example.org".to_owned(), format!("in-addr.arpa {zone}")];
            first.push_str(&format!(" {}", zones[self.random.below(zones.len())]));
        }
        if self.random.percent(30) {
            options.push(format!("ttl {}", self.random.pick(&[1, 5, 60, 65535])));
        }
        if self.random.percent(30) {
            options.push("no_reverse".to_owned());
        }
        if self.has_kubernetes {
            // *hosts* comes before *kubernetes*.
            options.push("fallthrough".to_owned());
        } else if self.random.percent(60) {
            options.push(self.fallthrough(zone, "in-addr.arpa"));
        }
        with_options(first, &options)
    }

    /// Returns lines `ADDRESS NAME…`. No pair of an address and a name is repeated.
    fn host_entries(&mut self, zone: &str) -> Lines {
        let mut seen = BTreeSet::new();
        let mut entries = Lines::new();
        for _ in 0..1 + self.random.below(6) {
            let address = match self.random.below(3) {
                0 => format!("192.0.2.{}", self.random.below(256)),
                1 => format!("2001:db8::{:x}", self.random.below(999)),
                _ => format!("10.0.0.{}", self.random.below(9)),
            };
            let count = if self.random.percent(30) { 2 } else { 1 };
            let names: Vec<String> = (0..count).map(|_| self.host_name(zone)).collect();
            let names: Vec<String> =
                names.into_iter().filter(|name| seen.insert((name.to_lowercase(), address.clone()))).collect();
            if names.is_empty() {
                continue;
            }
            entries.push(format!("{address} {}", names.join(" ")));
            self.add_names(names.iter().flat_map(|name| [absolute(name), absolute(&below("no", name))]));
            self.add_names(address.parse().ok().map(reverse));
        }
        entries
    }

    fn host_name(&mut self, zone: &str) -> String {
        match self.random.below(6) {
            0 | 1 => below(&format!("h{}", self.random.below(5)), zone),
            2 => below("a", zone),
            3 => below("www", zone),
            4 => below("Upper", zone),
            _ => "h.example.org".to_owned(),
        }
    }

    pub(super) fn file_directive(&mut self, zone: &str) -> Lines {
        let below_zone = below("w", zone);
        let zones = [zone, zone, zone, "z1.test", "z2.test", "sub.z1.test", &below_zone];
        let mut zone = self.random.pick(&zones).to_owned();
        // CoreDNS answers a missing name of a root zone with records of the root, and of two lines for a zone it takes
        // the last one (docs/differences.md): nearly all answers would differ.
        while zone == "." || self.zones.contains(&zone) {
            zone = self.random.pick(&["z1.test", "z2.test", "sub.z1.test", "au.test", "root.test"]).to_owned();
        }
        self.zones.push(zone.clone());
        let text = self.zone_file(&zone);
        let path = self.write("", text);
        let mut options = Lines::new();
        if self.random.percent(30) {
            options.push("reload 0".to_owned());
        }
        if self.random.percent(35) {
            options.push(self.fallthrough(&zone, "example.org"));
        }
        with_options(format!("file {path} {zone}"), &options)
    }

    pub(super) fn auto(&mut self, zone: &str) -> Lines {
        let folder = format!("auto{}", self.files.len());
        let count = self.random.pick(&[1, 2, 3]);
        for zone in self.random.sample(&["z1.test", "z2.test", "sub.z1.test", "au.test"], count) {
            let text = self.zone_file(zone);
            self.files.insert(format!("{folder}/db.{zone}"), text);
        }
        let pattern = self.random.pick(&["", " db\\.(.*) {1}"]);
        let options = vec![format!("directory {folder}{pattern}"), "reload 0".to_owned()];
        let own = format!(" {zone}");
        let zones = self.random.pick(&["", &own, " test"]).to_owned();
        with_options(format!("auto{zones}"), &options)
    }

    /// Returns *secondary*, whose zone the [primary](crate::respdiff::upstream::zone_lines) has.
    pub(super) fn secondary(&mut self, zone: &str) -> Lines {
        let zone = if zone == "." { "sec.invalid".to_owned() } else { zone.to_owned() };
        self.zones.push(zone.clone());
        self.markers.push(absolute(&below("marker", &zone)));
        let zone_lines = crate::respdiff::upstream::zone_lines(&absolute(&zone));
        let owners: BTreeSet<&str> = zone_lines.iter().filter_map(|line| line.split(' ').next()).collect();
        for owner in owners {
            let owner = owner.replace('*', "star");
            self.add_names([format!("nope.{owner}"), owner]);
        }
        let options = ["transfer from 127.0.0.1:{$UPXFR}".to_owned(), "fallthrough".to_owned()];
        let count = self.random.pick(&[1, 1, 2]);
        with_options(format!("secondary {zone}"), &options[..count])
    }

    /// Returns *erratic*, which is not erratic: what it does must not depend on the number of queries.
    pub(super) fn erratic(&mut self, zone: &str) -> Lines {
        self.add_names([absolute(&below("er", zone)), absolute(&below("er.er", zone))]);
        with_options("erratic".to_owned(), &["drop 0".to_owned(), "truncate 0".to_owned(), "delay 0".to_owned()])
    }

    pub(super) fn forward(&mut self, zone: &str) -> Lines {
        let from = self.random.pick(&[".", ".", ".", "example.org", zone, "org"]).to_owned();
        let upstreams = self.random.pick(UPSTREAMS);
        let mut options = Lines::new();
        if upstreams.len() > 1 {
            options.push("policy sequential".to_owned());
        }
        if self.random.percent(30) {
            let except = ["nx1.example.org", "example.net", "www.example.org a.test", "z1.test"];
            options.push(format!("except {}", self.random.pick(&except)));
        }
        let choices: [(usize, &[&str]); 4] = [
            (15, &["force_tcp", "prefer_udp"]),
            (20, &["max_fails 0", "max_fails 2"]),
            (20, &["failover SERVFAIL", "failover REFUSED SERVFAIL", "failover NXDOMAIN", "failover NOTIMP"]),
            (15, &["next NXDOMAIN", "next SERVFAIL REFUSED"]),
        ];
        for (percent, list) in choices {
            if self.random.percent(percent) {
                options.push(self.random.pick(list).to_owned());
            }
        }
        self.names_of_upstream(zone);
        let to: Vec<String> = upstreams.iter().map(|variable| format!("127.0.0.1:{{${variable}}}")).collect();
        let mut lines = with_options(format!("forward {from} {}", to.join(" ")), &options);
        if options.iter().any(|option| option.starts_with("next")) && self.random.percent(70) {
            lines.push(format!("forward {from} 127.0.0.1:{{${}}}", self.random.pick(&["UP2", "UPREFUSE"])));
        }
        lines
    }

    fn names_of_upstream(&mut self, zone: &str) {
        self.add_names(UPSTREAM_LABELS.iter().map(|label| format!("{label}.example.org.")));
        let some = self.random.sample(UPSTREAM_LABELS, 10);
        self.add_names(some.into_iter().map(|label| absolute(&below(label, zone))));
        self.add_names(["www.example.net.", "example.org.", "WwW.ExAmPlE.oRg."]);
    }

    pub(super) fn chaos(&mut self) -> Lines {
        self.add_names(["version.bind.", "hostname.bind.", "id.server.", "version.server.", "authors.bind."]);
        vec!["chaos CoreDNS-V1 me@x you@y".to_owned()]
    }

    /// Returns `fallthrough`, perhaps for some zones only.
    pub(super) fn fallthrough(&mut self, zone: &str, other: &str) -> String {
        let zone = if zone.is_empty() { "." } else { zone };
        match self.random.below(5) {
            0..3 => "fallthrough".to_owned(),
            3 => format!("fallthrough {zone}"),
            _ => format!("fallthrough {other}"),
        }
    }
}

/// Returns the reverse name of an address.
pub(crate) fn reverse(address: std::net::IpAddr) -> String {
    match address {
        std::net::IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa.")
        }
        std::net::IpAddr::V6(address) => {
            let bytes = address.octets();
            let digits = bytes.iter().rev().map(|byte| format!("{:x}.{:x}.", byte & 15, byte >> 4));
            digits.collect::<String>() + "ip6.arpa."
        }
    }
}
