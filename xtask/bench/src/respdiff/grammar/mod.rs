//! Grammar of random Corefiles: server blocks, their plugins and the files that these read.
//!
//! Ports are environment variables, so that the text depends on the seed only: `P` of the server, `API` of the API
//! server, and those of [`Upstreams`](super::upstream::Upstreams).

mod backends;
mod filters;
mod kube;
mod rewrite;
mod templates;
mod zones;

pub(crate) use backends::reverse;

use std::collections::{BTreeMap, BTreeSet};

use crate::random::Random;

/// Corefile with its data, and the names that it is asked for.
pub(crate) struct Scene {
    pub(crate) corefile: String,
    /// Paths relative to the folder of the Corefile, and contents.
    pub(crate) files: BTreeMap<String, String>,
    /// Absolute names, sorted.
    pub(crate) names: Vec<String>,
    pub(crate) blocks: Vec<Block>,
    /// Options of *kubernetes*, if the Corefile has it.
    pub(crate) kubernetes: Option<Kubernetes>,
    /// Names that have an address as soon as zones are transferred.
    pub(crate) markers: Vec<String>,
}

/// Server block: its zones, and the words of its directives.
#[derive(Clone)]
pub(crate) struct Block {
    /// Absolute names in lower case.
    pub(crate) zones: Vec<String>,
    /// Zones of the directives that have zones of their own, absolute and in lower case.
    pub(crate) inner: BTreeSet<String>,
    /// Zones that an *auto* line names and that have no file, below a zone that has one.
    pub(crate) without_file: BTreeSet<String>,
    /// First words of the directives, and their options as `kubernetes/pods` and `kubernetes/pods-verified`.
    pub(crate) words: BTreeSet<String>,
}

/// Options of *kubernetes* on which the questions depend.
#[derive(Clone, Copy, Default)]
pub(crate) struct Kubernetes {
    pub(crate) verified: bool,
    pub(crate) endpoints: bool,
    /// False if the answers of *kubernetes* are cached, so that a change of the cluster is not visible at once.
    pub(crate) churn: bool,
}

/// Zones of server blocks, other than the root.
const ZONES: [&str; 10] = [
    "test",
    "z1.test",
    "sub.z1.test",
    "example.org",
    "org",
    "z2.test",
    "192.0.2.0/24",
    "2001:db8::/32",
    "cluster.local",
    "au.test",
];
/// Plugins that answer in a server block.
const BACKENDS: &[&[&str]] = &[
    &["forward"],
    &["file"],
    &["file", "forward"],
    &["template", "forward"],
    &["hosts", "forward"],
    &["hosts", "file"],
    &["template"],
    &["auto"],
    &["auto", "forward"],
    &["kubernetes", "forward"],
    &["kubernetes"],
    &["kubernetes", "forward"],
    &["kubernetes", "hosts", "forward"],
    &["hosts", "template", "forward"],
    &["file", "template", "forward"],
    &["whoami"],
    &["rewrite", "forward"],
    &["rewrite", "file", "forward"],
    &["rewrite", "template"],
    &["forward", "cache"],
    &["cache", "forward"],
    &["chaos", "forward"],
    &["file", "file2"],
    &["kubernetes", "file", "forward"],
    &["rewrite", "kubernetes", "forward"],
    &["erratic"],
    &["file", "erratic"],
    &["secondary"],
    &["secondary", "forward"],
    &["dynupdate"],
    &["dynupdate", "forward"],
];

/// Returns the scene of a seed.
pub(crate) fn scene(seed: u64) -> Scene {
    let mut grammar = Grammar {
        random: Random::new(seed),
        files: BTreeMap::new(),
        names: BTreeSet::new(),
        kubernetes: None,
        has_kubernetes: false,
        zones: Vec::new(),
        cluster_zone: ".",
        bind: false,
        is_divided: false,
        markers: Vec::new(),
    };
    grammar.bind = grammar.random.percent(60);
    let (corefile, blocks) = grammar.corefile();
    Scene {
        corefile,
        files: grammar.files,
        names: grammar.names.into_iter().collect(),
        blocks,
        kubernetes: grammar.kubernetes,
        markers: grammar.markers,
    }
}

/// State of the making of a scene.
struct Grammar {
    random: Random,
    files: BTreeMap<String, String>,
    names: BTreeSet<String>,
    kubernetes: Option<Kubernetes>,
    /// True if the current server block has *kubernetes*.
    has_kubernetes: bool,
    /// Zone whose server block may have *kubernetes*: the one that gets the names of the cluster.
    cluster_zone: &'static str,
    /// Zones with a *file* line in the current server block.
    zones: Vec<String>,
    /// True if the server blocks have *bind*.
    bind: bool,
    /// True if another server block has the zone of the current one, with *view*.
    is_divided: bool,
    /// Names that have an address as soon as zones are transferred.
    markers: Vec<String>,
}

/// Lines of directives, without indentation.
type Lines = Vec<String>;

impl Grammar {
    fn corefile(&mut self) -> (String, Vec<Block>) {
        let mut zones = vec!["."];
        if self.random.percent(65) {
            let count = self.random.pick(&[1, 2, 2, 3]);
            zones.extend(self.random.sample(&ZONES, count));
        }
        let with_view = self.random.percent(20).then(|| self.random.below(zones.len()));
        let has_snippet = self.random.percent(15);
        self.cluster_zone = if zones.contains(&"cluster.local") { "cluster.local" } else { "." };
        if with_view.is_some_and(|number| zones[number] == self.cluster_zone) {
            self.cluster_zone = "";
        }
        let mut text = String::new();
        if has_snippet {
            text.push_str("(common) {\n    errors\n    loadbalance\n}\n");
        }
        let mut blocks = Vec::new();
        for (number, zone) in zones.iter().enumerate() {
            self.is_divided = with_view == Some(number);
            if self.is_divided {
                self.server_block(zone, (true, has_snippet), &mut text, &mut blocks);
            }
            self.server_block(zone, (false, has_snippet), &mut text, &mut blocks);
        }
        (text, blocks)
    }

    fn server_block(
        &mut self,
        zone: &str,
        (view, has_snippet): (bool, bool),
        text: &mut String,
        blocks: &mut Vec<Block>,
    ) {
        let base = match zone {
            "192.0.2.0/24" => "2.0.192.in-addr.arpa",
            "2001:db8::/32" => "8.b.d.0.1.0.0.2.ip6.arpa",
            other => other,
        };
        let mut keys = format!("{zone}:{{$P}}");
        let mut zones = vec![absolute(base)];
        if blocks.is_empty() && !view && self.random.percent(20) {
            let extra = self.random.pick(&["Extra.Test", "also.test"]);
            keys.push_str(&format!(" {extra}:{{$P}}"));
            zones.push(absolute(&extra.to_lowercase()));
            self.add_names(["a.extra.test.", "www.also.test."]);
        }
        let mut lines = self.directives(base, view);
        if has_snippet {
            lines.retain(|line| !matches!(line.as_str(), "errors" | "loadbalance"));
            lines.push("import common".to_owned());
        }
        self.add_names([absolute(&below("www", base)), absolute(base), absolute(&below("a.b", base))]);
        let inner = self.inner_zones(&lines);
        let without_file = zones_without_file(&lines, &zones, &inner);
        blocks.push(Block { zones, inner, without_file, words: words(&lines) });
        text.push_str(&format!("{keys} {{\n{}\n}}\n", indented(&lines)));
    }

    /// Returns the directives of a server block for a zone.
    fn directives(&mut self, zone: &str, view: bool) -> Lines {
        let mut lines = Lines::new();
        if self.bind {
            lines.push("bind 127.0.0.1".to_owned());
        }
        let may_have_kubernetes = zone == self.cluster_zone && !view;
        let mut backends = self.random.pick(BACKENDS);
        // One in two of the places for *kubernetes* has it, because there is only one in a Corefile.
        let wanted = may_have_kubernetes && self.random.percent(50);
        // Which block has the names of a zone to transfer must be certain, because they are waited for.
        let no_transfer = self.is_divided || !self.markers.is_empty();
        while backends.contains(&"kubernetes") != wanted || no_transfer && backends.contains(&"secondary") {
            backends = self.random.pick(BACKENDS);
        }
        self.has_kubernetes = backends.contains(&"kubernetes");
        self.zones.clear();
        for backend in backends {
            let more = self.backend(backend, zone);
            lines.extend(more);
        }
        let filters = [
            ("rewrite", 20),
            ("cache", 22),
            ("acl", 12),
            ("header", 10),
            ("dns64", 10),
            ("template", 12),
            ("siit", 5),
            ("tsig", 5),
            ("autopath", 4),
        ];
        let has_markers = self.has_kubernetes || backends.contains(&"secondary");
        for (name, percent) in filters {
            let hides =
                matches!(name, "acl" | "template" | "tsig" | "autopath") || name == "rewrite" && !self.has_kubernetes;
            let is_second =
                name == "tsig" && backends.contains(&"dynupdate") || name == "siit" && has_line(&lines, "dns64");
            let is_new = !(backends.contains(&name) || is_second || has_markers && hides);
            if self.random.percent(percent) && is_new {
                let more = self.backend(name, zone);
                lines.extend(more);
            }
        }
        self.small_plugins(zone, &mut lines);
        if view {
            lines.extend(self.view());
        }
        lines
    }

    fn backend(&mut self, name: &str, zone: &str) -> Lines {
        match name {
            "forward" => self.forward(zone),
            "file" | "file2" => self.file_directive(zone),
            "auto" => self.auto(zone),
            "hosts" => self.hosts(zone),
            "template" => self.template(zone),
            "rewrite" => self.rewrite(zone),
            "kubernetes" => self.kubernetes(),
            "cache" => self.cache(zone),
            "acl" => self.acl(zone),
            "header" => self.header(),
            "siit" => self.siit(),
            "tsig" => self.tsig(zone),
            "autopath" => self.autopath(zone),
            "dynupdate" => self.dynupdate(zone),
            "secondary" => self.secondary(zone),
            "erratic" => self.erratic(zone),
            "dns64" => self.dns64(),
            "chaos" => self.chaos(),
            _ => {
                self.add_names([absolute(&below("who", zone))]);
                vec!["whoami".to_owned()]
            }
        }
    }

    /// Returns the zones that the lines of a server block serve.
    fn inner_zones(&self, lines: &Lines) -> BTreeSet<String> {
        let mut zones = BTreeSet::new();
        for line in lines {
            let words: Vec<&str> = line.split(' ').filter(|word| *word != "{").collect();
            let named = match words[0] {
                "file" => &words[2..],
                "secondary" | "dynupdate" | "kubernetes" | "k8s_external" => &words[1..],
                _ => &[],
            };
            let reversed = |zone: &&str| if *zone == "10.0.0.0/8" { "10.in-addr.arpa" } else { zone }.to_owned();
            zones.extend(named.iter().map(reversed).map(|zone| absolute(&zone)));
            let folder = line.strip_prefix("    directory ").and_then(|rest| rest.split(' ').next());
            let prefix = folder.map(|folder| format!("{folder}/db."));
            let files = self.files.keys().filter_map(|path| path.strip_prefix(prefix.as_deref()?));
            zones.extend(files.map(absolute));
        }
        zones
    }

    /// Writes a data file, and returns its path relative to the Corefile.
    fn write(&mut self, folder: &str, text: String) -> String {
        let path = format!("{folder}f{}", self.files.len());
        self.files.insert(path.clone(), text);
        path
    }

    fn add_names<N: Into<String>>(&mut self, names: impl IntoIterator<Item = N>) {
        self.names.extend(names.into_iter().map(Into::into));
    }
}

/// Returns the zones of *auto* lines, by default those of the server block, that have no file and are below another
/// zone.
fn zones_without_file(lines: &Lines, zones: &[String], inner: &BTreeSet<String>) -> BTreeSet<String> {
    let lines = lines.iter().filter_map(|line| line.strip_prefix("auto").filter(|rest| rest.ends_with(" {")));
    let named = lines.flat_map(|rest| {
        let named: Vec<String> = rest.split_whitespace().filter(|word| *word != "{").map(absolute).collect();
        if named.is_empty() { zones.to_vec() } else { named }
    });
    let is_below = |zone: &String| inner.iter().any(|other| other != "." && is_within(zone, other));
    named.filter(|zone| !inner.contains(zone) && is_below(zone)).collect()
}

/// Returns true if there is a line of a directive.
fn has_line(lines: &Lines, directive: &str) -> bool {
    lines.iter().any(|line| line.split(' ').next() == Some(directive))
}

/// Returns true if an absolute name in lower case is at or below a zone.
pub(crate) fn is_within(name: &str, zone: &str) -> bool {
    zone == "." || name == zone || name.ends_with(&format!(".{zone}"))
}

/// Returns a name with a dot at its end.
pub(crate) fn absolute(name: &str) -> String {
    format!("{}.", name.trim_end_matches('.'))
}

/// Returns a name below a zone, without a dot at its end.
fn below(name: &str, zone: &str) -> String {
    let zone = zone.trim_end_matches('.');
    if zone.is_empty() { name.to_owned() } else { format!("{name}.{zone}") }
}

/// Returns a directive with its options in braces, if it has any.
fn with_options(first: String, options: &[String]) -> Lines {
    if options.is_empty() {
        return vec![first];
    }
    let inner = options.iter().map(|option| format!("    {option}"));
    std::iter::once(format!("{first} {{")).chain(inner).chain(["}".to_owned()]).collect()
}

fn indented(lines: &Lines) -> String {
    lines.iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// Returns the first words of directives, and the options of some as `DIRECTIVE/WORD` and `DIRECTIVE/WORD-WORD-WORD`.
fn words(lines: &Lines) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut directive = "";
    for line in lines {
        if line.starts_with("    ") {
            if matches!(
                directive,
                "kubernetes" | "cache" | "hosts" | "file" | "auto" | "forward" | "rewrite" | "header" | "acl" | "dns64"
            ) {
                let option: Vec<&str> = line.trim().split(' ').take(3).collect();
                words.extend([format!("{directive}/{}", option[0]), format!("{directive}/{}", option.join("-"))]);
            }
        } else if line != "}" {
            directive = line.split(' ').next().unwrap_or_default();
            words.insert(directive.to_owned());
            if directive == "rewrite" {
                let word = |word: &&str| !matches!(*word, "rewrite" | "stop" | "continue");
                let kind = line.split(' ').find(word).unwrap_or_default();
                words.insert(format!("rewrite/{kind}"));
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_one_scene() {
        let (first, again) = (scene(7), scene(7));
        assert_eq!(first.corefile, again.corefile);
        assert_eq!(first.files, again.files);
        assert_eq!(first.names, again.names);
        assert_ne!(first.corefile, scene(8).corefile);
    }

    #[test]
    fn the_seeds_of_a_run_have_all_plugins() {
        let words: BTreeSet<String> =
            (1..200).flat_map(|seed| scene(seed).blocks).flat_map(|block| block.words).collect();
        for plugin in [
            "acl",
            "any",
            "auto",
            "autopath",
            "bind",
            "bufsize",
            "cache",
            "cancel",
            "chaos",
            "debug",
            "dns64",
            "dynupdate",
            "erratic",
            "errors",
            "file",
            "forward",
            "header",
            "health",
            "hosts",
            "import",
            "k8s_external",
            "kubernetes",
            "loadbalance",
            "local",
            "log",
            "loop",
            "metadata",
            "minimal",
            "multisocket",
            "nsid",
            "pprof",
            "prometheus",
            "ready",
            "reload",
            "rewrite",
            "root",
            "secondary",
            "shed",
            "siit",
            "template",
            "timeouts",
            "transfer",
            "tsig",
            "view",
            "whoami",
        ] {
            assert!(words.contains(plugin), "no Corefile has *{plugin}*");
        }
    }
}
