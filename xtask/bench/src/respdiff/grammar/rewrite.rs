//! Rules of *rewrite*.

use super::{Grammar, Lines, absolute, below};

/// First labels of names that a rule leads to.
const PREFIXES: [&str; 5] = ["www", "cn1", "nx1", "a.b", "mail"];

impl Grammar {
    pub(super) fn rewrite(&mut self, zone: &str) -> Lines {
        let zone = if zone == "." { "test" } else { zone };
        let count = self.random.pick(&[1, 1, 2, 3]);
        (0..count).flat_map(|_| self.rule(zone)).collect()
    }

    fn rule(&mut self, zone: &str) -> Lines {
        let mode = self.random.pick(&["", "", "stop ", "continue "]);
        let target = self.random.pick(&["example.org", "z1.test", "z2.test", zone]).to_owned();
        let rule = match self.random.below(100) {
            0..14 => self.exact(zone, &target),
            14..22 => self.prefix(zone, &target),
            22..36 => self.suffix(zone, &target),
            36..44 => self.substring(zone, &target),
            44..62 => self.regex(zone, &target),
            62..72 => return self.with_answers(mode, zone, &target),
            72..78 => {
                let kinds = ["ANY HINFO", "AAAA A", "TXT A", "MX SRV", "HTTPS A"];
                format!("type {}", self.random.pick(&kinds))
            }
            78..81 => format!("class {}", self.random.pick(&["CH IN", "HS IN", "CH ANY"])),
            81..87 => self.ttl_rule(&target),
            87..92 => self.rcode_rule(&target),
            92..96 => self.edns_rule(),
            _ => self.cname_rule(),
        };
        vec![format!("rewrite {mode}{rule}")]
    }

    fn exact(&mut self, zone: &str, target: &str) -> String {
        self.add_names([absolute(&below("r1", zone))]);
        let (word, first) = (self.random.pick(&["", "exact "]), self.random.pick(&["www", "cn1", "mail", "nx1", "a"]));
        format!("name {word}r1.{zone} {first}.{target}")
    }

    fn prefix(&mut self, zone: &str, target: &str) -> String {
        self.add_names([format!("r2-.{target}."), format!("r2-.{zone}."), format!("r2-x.{zone}.")]);
        format!("name prefix r2- {}", self.random.pick(&["a", "www", "cn1"]))
    }

    fn suffix(&mut self, zone: &str, target: &str) -> String {
        let in_zone = format!("r3.{zone}");
        let from = self.random.pick(&[in_zone.as_str(), "r3.test"]);
        let names = PREFIXES.iter().flat_map(|first| [format!("{first}.r3.{zone}."), format!("{first}.r3.test.")]);
        self.add_names(names);
        format!("name suffix .{from} .{target}{}", self.random.pick(&["", " answer auto", " answer auto"]))
    }

    fn substring(&mut self, zone: &str, target: &str) -> String {
        self.add_names([format!("rr4.{zone}."), format!("xrr4y.{target}."), format!("rr4.rr4.{zone}.")]);
        format!("name substring rr4 {}", self.random.pick(&["a", "www"]))
    }

    fn regex(&mut self, zone: &str, target: &str) -> String {
        let names = ["www", "cn1", "cx1", "a.b", "mail", "nd1"].map(|first| format!("{first}.r5.{zone}."));
        self.add_names(names);
        let start = self.random.pick(&["^(.*)", "(.*)"]);
        let end = self.random.pick(&["", "$", "\\.", "\\.$"]);
        let (dot, answer) = (self.random.pick(&["", "."]), self.random.pick(&["", " answer auto"]));
        format!("name regex {start}\\.r5\\.{}{end} {{1}}.{target}{dot}{answer}", escaped(zone))
    }

    fn with_answers(&mut self, mode: &str, zone: &str, target: &str) -> Lines {
        let names = ["www", "cn1", "mail", "cx1", "sf1"].map(|first| format!("{first}.r6.{zone}."));
        self.add_names(names);
        let mode = if mode.is_empty() { "stop " } else { mode };
        let (from, to) = (escaped(zone), escaped(target));
        let mut lines = vec![
            format!("rewrite {mode}{{"),
            format!("    name regex (.*)\\.r6\\.{from} {{1}}.{target}"),
            format!("    answer name (.*)\\.{to} {{1}}.r6.{zone}"),
        ];
        if self.random.percent(50) {
            lines.push(format!("    answer value (.*)\\.{to} {{1}}.r6.{zone}"));
        }
        lines.push("}".to_owned());
        lines
    }

    fn ttl_rule(&mut self, target: &str) -> String {
        let names = [
            format!("exact www.{target}"),
            format!("suffix {target}"),
            "prefix www".to_owned(),
            "substring a".to_owned(),
            format!("regex (.*)\\.{}", escaped(target)),
        ];
        let name = &names[self.random.below(names.len())];
        format!("ttl {name} {}", self.random.pick(&["5", "30-60", "-50", "100-", "0", "7"]))
    }

    fn rcode_rule(&mut self, target: &str) -> String {
        let names = [
            format!("exact nx1.{target}."),
            format!("suffix {target}."),
            "prefix nx".to_owned(),
            "substring x1".to_owned(),
            "regex ^n.*".to_owned(),
        ];
        let name = &names[self.random.below(names.len())];
        let codes = ["NXDOMAIN NOERROR", "SERVFAIL NXDOMAIN", "REFUSED NOERROR", "NOERROR NXDOMAIN"];
        format!("rcode {name} {}", self.random.pick(&codes))
    }

    fn edns_rule(&mut self) -> String {
        let rules = ["local set 0xffee 0x61", "local append 0xffee abc", "nsid set", "subnet set 24 56"];
        format!("edns0 {}", self.random.pick(&rules))
    }

    fn cname_rule(&mut self) -> String {
        let from = self.random.pick(&["exact tgt.example.org.", "suffix example.net.", "prefix tgt", "substring mid"]);
        format!("cname {from} {}", self.random.pick(&["www.example.org.", "api.z1.test.", "a.z1.test."]))
    }
}

/// Returns a name as a part of a regular expression.
fn escaped(name: &str) -> String {
    name.replace('.', "\\.")
}
