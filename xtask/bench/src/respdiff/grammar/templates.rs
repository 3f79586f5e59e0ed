//! *template* and *view*.

use super::{Grammar, Lines, absolute, below, with_options};

/// Regular expressions with a name that each one matches.
const PATTERNS: &[(&str, &str)] = &[
    ("^ip-(?P<a>[0-9]+)-(?P<b>[0-9]+)", "ip-3-4"),
    ("^(?P<a>\\w+)\\.(?P<b>\\w+)\\.", "w1.w2"),
    ("(?P<a>b+)(?P<b>c*)", "abbbcc"),
    ("^x", "xyz"),
    ("(?i)^CASE(?P<a>.)(?P<b>.)", "caseQ7"),
    ("^a(?P<a>..)?(?P<b>zz)?", "a12zz"),
    (".*", "any1"),
];
/// Types of templates; often A.
const TYPES: &[&str] = &["A", "A", "AAAA", "ANY", "TXT", "MX", "PTR", "SRV", "CNAME", "NS", "HTTPS", "CAA", "SOA"];
/// Conditions of templates.
const CONDITIONS: &[&str] = &[
    "name() startsWith 'a'",
    "type() == 'A'",
    "client_ip() == '127.0.0.1'",
    "len(name()) % 2 == 0",
    "proto() == 'udp'",
    "bufsize() > 1000",
    "class() == 'IN'",
    "opcode() == 0",
    "do()",
];
/// Conditions of views.
const VIEWS: &[&str] = &[
    "type() == 'AAAA'",
    "name() matches '^[a-m]'",
    "incidr(client_ip(), '127.0.0.0/8') && type() in ['A','TXT']",
    "proto() == 'tcp'",
    "bufsize() >= 1232",
    "do()",
    "name() startsWith 'www'",
    "class() == 'IN' && len(name()) < 14",
    "false",
    "server_port() == '1'",
    "port() != ''",
];

impl Grammar {
    pub(super) fn template(&mut self, zone: &str) -> Lines {
        let under = if zone == "." { "t.test".to_owned() } else { below("t", zone) };
        let zone = self.random.pick(&[zone, zone, under.as_str(), "example.org"]).to_owned();
        let zone = if self.has_kubernetes && zone == "." { "t.test".to_owned() } else { zone };
        let rtype = self.random.pick(TYPES);
        let class = self.random.pick(&["IN", "IN", "IN", "ANY", "CH"]);
        let mut options = Lines::new();
        let has_group = self.patterns(&zone, &mut options);
        self.add_names([absolute(&zone), absolute(&below("tt", &zone))]);
        self.answers(rtype, has_group, &mut options);
        let choices: [(usize, &[&str]); 5] = [
            (30, &["additional \"ns.{{ .Zone }} 60 IN A 203.0.113.8\""]),
            (
                30,
                &[
                    "authority \"{{ .Zone }} 60 IN SOA ns.{{ .Zone }} h.{{ .Zone }} 1 60 60 60 60\"",
                    "authority \"{{ .Zone }} 60 IN NS ns.{{ .Zone }}\"",
                ],
            ),
            (
                30,
                &[
                    "rcode NXDOMAIN",
                    "rcode NOERROR",
                    "rcode SERVFAIL",
                    "rcode REFUSED",
                    "rcode YXDOMAIN",
                    "rcode NOTIMP",
                ],
            ),
            (10, &["ederror 21 \"nope\""]),
            (60, &["fallthrough", "fallthrough", "fallthrough other.test"]),
        ];
        for (percent, list) in choices {
            if self.random.percent(percent) {
                options.push(self.random.pick(list).to_owned());
            }
        }
        if self.random.percent(25) {
            options.push(format!("expr {}", self.random.pick(CONDITIONS)));
        }
        with_options(format!("template {class} {rtype} {zone}"), &options)
    }

    /// Adds conditions on the name. Returns true if all define the group `a`.
    fn patterns(&mut self, zone: &str, options: &mut Lines) -> bool {
        let count = self.random.pick(&[0, 1, 1, 2]);
        let patterns = self.random.sample(PATTERNS, count);
        for (pattern, name) in &patterns {
            options.push(format!("match \"{pattern}\""));
            self.add_names([absolute(&below(name, zone)), absolute(&below(&format!("{name}.q"), zone))]);
        }
        !patterns.is_empty() && patterns.iter().all(|(pattern, _)| pattern.contains("?P<a>"))
    }

    fn answers(&mut self, rtype: &str, has_group: bool, options: &mut Lines) {
        let random = &mut self.random;
        let group = if has_group { "{{ .Group.a }}" } else { "q" };
        let owner = random.pick(&["{{ .Name }}", "{{ .Name }}", "{{ .Name }}", "other.{{ .Zone }}"]);
        let (ttl, class) = (random.pick(&["60", "0", "5", "3600"]), random.pick(&["IN", "{{ .Class }}", "IN"]));
        let rtype = if rtype == "ANY" { random.pick(&["A", "TXT", "CNAME", "MX", "AAAA"]) } else { rtype };
        let aliases = ["cn1.example.org.", "c.{{ .Zone }}", "www.z1.test.", "nx1.example.org."];
        let data = match rtype {
            "A" => "192.0.2.{{ len .Name }}".to_owned(),
            "AAAA" => "2001:db8::{{ len .Name }}".to_owned(),
            "TXT" => format!("\\\"{group} {{{{ .Type }}}} {{{{ .Class }}}} {{{{ .Zone }}}}\\\""),
            "MX" => format!("10 m-{group}.{{{{ .Zone }}}}"),
            "PTR" => format!("p-{group}.example.org."),
            "SRV" => "1 2 3 s.{{ .Zone }}".to_owned(),
            "CNAME" => random.pick(&aliases).to_owned(),
            "NS" => "ns.{{ .Zone }}".to_owned(),
            "HTTPS" => "1 . alpn=h2".to_owned(),
            "CAA" => "0 issue \\\"ca\\\"".to_owned(),
            _ => "ns.{{ .Zone }} h.{{ .Zone }} (1 60 60 60 60)".to_owned(),
        };
        for _ in 0..random.pick(&[0, 1, 1, 1, 2]) {
            options.push(format!("answer \"{owner} {ttl} {class} {rtype} {data}\""));
        }
    }

    pub(super) fn view(&mut self) -> Lines {
        with_options("view v".to_owned(), &[format!("expr {}", self.random.pick(VIEWS))])
    }
}
