//! Random zone files: aliases, DNAME, delegations, wildcards, and records of many types.

use std::collections::BTreeMap;

use super::{Grammar, absolute, below};

/// Labels of owners.
const LABELS: &[&str] = &[
    "a", "b", "c", "www", "mail", "ns1", "x", "y", "w", "deep", "_tcp", "_http", "k1", "*", "sub", "ent", "lng", "z-9",
];
/// Types of records other than aliases and delegations; often A.
const TYPES: &[&str] = &[
    "A",
    "A",
    "A",
    "AAAA",
    "MX",
    "SRV",
    "TXT",
    "PTR",
    "HTTPS",
    "SVCB",
    "CAA",
    "NAPTR",
    "TLSA",
    "SSHFP",
    "HINFO",
    "TYPE65280",
    "LOC",
    "URI",
    "RP",
    "AFSDB",
    "SPF",
];

/// Records of an owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owned {
    /// An alias or a delegation, which excludes other records.
    Alone,
    Records,
}

/// Zone file in the making.
struct ZoneText {
    /// Absolute name of the apex.
    apex: String,
    owners: Vec<String>,
    lines: Vec<String>,
}

impl ZoneText {
    /// Returns the absolute name of an owner; that of the apex for an empty one.
    fn name(&self, owner: &str) -> String {
        match (owner, self.apex.as_str()) {
            ("", apex) => apex.to_owned(),
            (owner, ".") => absolute(owner),
            (owner, apex) => format!("{owner}.{apex}"),
        }
    }

    fn push(&mut self, line: String) {
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }
}

impl Grammar {
    /// Returns a zone file, and adds its names to those that are asked for.
    pub(super) fn zone_file(&mut self, zone: &str) -> String {
        let owners = (0..6 + self.random.below(20)).map(|_| self.owner()).collect();
        let mut zone = ZoneText { apex: absolute(zone), owners, lines: Vec::new() };
        self.apex(&mut zone);
        let mut used = BTreeMap::from([("ns1".to_owned(), Owned::Records)]);
        for owner in zone.owners.clone() {
            match used.get(&owner) {
                Some(Owned::Alone) => {}
                Some(Owned::Records) => self.records(&owner, &mut zone),
                None => {
                    let owned = self.first_of_owner(&owner, &mut zone);
                    used.insert(owner, owned);
                }
            }
        }
        self.names_of_zone(&zone, used.keys());
        zone.lines.join("\n") + "\n"
    }

    fn owner(&mut self) -> String {
        let levels = self.random.pick(&[1, 1, 1, 2, 2, 3, 4]);
        let mut labels: Vec<&str> = (0..levels).map(|_| self.random.pick(LABELS)).collect();
        // An asterisk is a wildcard only as the first label.
        labels.iter_mut().skip(1).filter(|label| **label == "*").for_each(|label| *label = "q");
        labels.join(".")
    }

    fn apex(&mut self, zone: &mut ZoneText) {
        let random = &mut self.random;
        let ttl = random.pick(&[5, 60, 3600, 600]);
        let minimum = random.pick(&[5, 30, 60, 3600, ttl, ttl]);
        let (serial, default) = (2_026_010_100 + random.below(9), random.pick(&[30, 60, 300, 3600]));
        let apex = if zone.apex == "." { "root.".to_owned() } else { zone.apex.clone() };
        zone.push(format!("$TTL {default}\n$ORIGIN {}", zone.apex));
        zone.push(format!("@ {ttl} IN SOA ns1.{apex} host.{apex} {serial} 7200 1800 86400 {minimum}"));
        zone.push(format!("@ 300 IN NS ns1.{apex}"));
        let target = self.target(zone);
        let lines = [
            (40, "@ 300 IN NS ns.example.org.".to_owned()),
            (60, "ns1 300 IN A 192.0.2.53".to_owned()),
            (30, "ns1 300 IN AAAA 2001:db8::53".to_owned()),
            (50, "@ A 192.0.2.80".to_owned()),
            (40, format!("@ MX 10 {target}")),
            (20, "@ TXT \"v=spf1 -all\" \"two\"".to_owned()),
            (20, "@ HTTPS 1 . alpn=h2,h3 port=8443".to_owned()),
        ];
        for (percent, line) in lines {
            if self.random.percent(percent) {
                zone.push(line);
            }
        }
    }

    /// Returns the target of an alias or a record: in the zone, in another one, or missing.
    fn target(&mut self, zone: &ZoneText) -> String {
        let random = &mut self.random;
        let owner =
            if random.percent(10) { String::new() } else { zone.owners[random.below(zone.owners.len())].clone() };
        let plain = owner.replace('*', "s");
        match random.below(100) {
            0..60 => zone.name(&owner),
            60..75 => zone.name(below("nope", &plain).as_str()),
            75..85 => format!("{}.example.org.", random.pick(super::backends::UPSTREAM_LABELS)),
            85..93 => {
                let zone = random.pick(&["z1.test.", "z2.test.", "sub.z1.test.", "au.test."]);
                format!("{}.{zone}", random.pick(&["www", "a", "b.x", "mail"]))
            }
            _ => zone.name(below("s", &plain).as_str()),
        }
    }

    /// Writes the first records of an owner.
    fn first_of_owner(&mut self, owner: &str, zone: &mut ZoneText) -> Owned {
        let is_wildcard = owner.starts_with('*');
        let ttl = self.ttl();
        match self.random.below(100) {
            0..18 => {
                let target = self.target(zone);
                zone.push(format!("{owner} {ttl}IN CNAME {target}"));
            }
            18..24 if !is_wildcard => {
                let target = self.target(zone);
                zone.push(format!("{owner} {ttl}IN DNAME {target}"));
            }
            24..34 if !is_wildcard => self.delegation(owner, ttl, zone),
            _ => {
                self.records(owner, zone);
                return Owned::Records;
            }
        }
        Owned::Alone
    }

    fn delegation(&mut self, owner: &str, ttl: &str, zone: &mut ZoneText) {
        let inner = zone.name(&format!("ns.{owner}"));
        let server = match self.random.below(3) {
            0 => inner.clone(),
            1 => "ns.example.net.".to_owned(),
            _ => zone.name("ns1"),
        };
        zone.push(format!("{owner} {ttl}IN NS {server}"));
        if self.random.percent(40) {
            zone.push(format!("{owner} {ttl}IN NS ns2.example.net."));
        }
        if server == inner {
            zone.push(format!("ns.{owner} 120 IN A 192.0.2.{}", self.random.below(255)));
        }
        if self.random.percent(30) {
            zone.push(format!("{owner} 300 IN DS 12345 13 2 {}", "ab".repeat(32)));
        }
    }

    fn records(&mut self, owner: &str, zone: &mut ZoneText) {
        let ttl = self.ttl();
        let count = self.random.pick(&[1, 1, 2, 3]);
        for rtype in self.random.sample(TYPES, count) {
            let copies = if rtype == "A" { self.random.pick(&[1, 1, 2]) } else { 1 };
            for _ in 0..copies {
                let data = self.data(rtype, zone);
                zone.push(format!("{owner} {ttl}IN {rtype} {data}"));
            }
        }
    }

    fn data(&mut self, rtype: &str, zone: &ZoneText) -> String {
        let target = self.target(zone);
        let random = &mut self.random;
        let long = format!("\"{}\"", "x".repeat(200));
        match rtype {
            "A" => format!("192.0.2.{}", random.below(256)),
            "AAAA" => format!("2001:db8::{:x}", random.below(65536)),
            "MX" => format!("{} {target}", random.below(99)),
            "SRV" => format!("1 {} 443 {target}", random.below(9)),
            "TXT" => random.pick(&["\"hello\"", "\"a\\;b\" \"c d\"", &long, "\"q\\\"uote\""]).to_owned(),
            "HTTPS" => match random.below(3) {
                0 => "1 . alpn=h2".to_owned(),
                1 => format!("0 {target}"),
                _ => format!("2 {target} port=8443 ipv4hint=192.0.2.1"),
            },
            "SVCB" => format!("1 {target} alpn=\"h2\""),
            "CAA" => "0 issue \"ca.example\"".to_owned(),
            "NAPTR" => format!("10 20 \"S\" \"SIP+D2U\" \"\" {target}"),
            "TLSA" => format!("3 1 1 {}", "cd".repeat(32)),
            "SSHFP" => format!("4 2 {}", "ef".repeat(32)),
            "HINFO" => "\"x\" \"y\"".to_owned(),
            "TYPE65280" => "\\# 4 01020304".to_owned(),
            "LOC" => "52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m".to_owned(),
            "URI" => "10 1 \"ftp://a/b\"".to_owned(),
            "RP" => format!("{target} {target}"),
            "AFSDB" => format!("1 {target}"),
            "SPF" => "\"v=spf1\"".to_owned(),
            _ => target,
        }
    }

    fn ttl(&mut self) -> &'static str {
        self.random.pick(&["", "", "60 ", "5 ", "0 ", "86400 ", "300 ", "1h "])
    }

    /// Adds the owners, names beside and below them, and their parents.
    fn names_of_zone<'o>(&mut self, zone: &ZoneText, owners: impl Iterator<Item = &'o String>) {
        self.add_names([zone.apex.clone(), zone.name("zzz"), zone.name("nope.k")]);
        for owner in owners {
            let parent = owner.split_once('.').map_or("", |(_, parent)| parent);
            let names = [
                zone.name(owner),
                zone.name(&owner.replace('*', "star")),
                zone.name(&format!("nope.{}", owner.replace('*', "k"))),
                zone.name(parent),
                zone.name(&format!("p.q.{}", owner.trim_start_matches("*."))).replace('*', "k"),
            ];
            self.add_names(names);
        }
    }
}
