//! What releases of CoreDNS know: the way back from this server to CoreDNS.
//!
//! [`unknown_to`] lists the words and arguments of a Corefile that a release does not know, [`Known`] says since which
//! release CoreDNS knows a word. The table `words.txt` has the words, `arguments` has the arguments. Both are about
//! words that this server accepts: it reports all others as errors anyway.

mod arguments;
mod codes;
mod release;
mod words;

use corefile::{Code, Corefile, Diagnostic, Directive, Span, Token};

pub use codes::CODES;
pub use release::{Release, ReleaseError};
use words::Words;

/// First release that knows `https3://` in keys.
const HTTPS3: Release = Release::new(1, 14, 0);

/// Directives of this server that no release of CoreDNS has, and what to do without them.
const OWN_DIRECTIVES: [(&str, &str); 8] = [
    ("control", "remove it: `portolan status` and the commands beside it look into Portolan only"),
    ("ddr", "remove it, or serve the SVCB records of `_dns.resolver.arpa` with *template*"),
    ("federations", "remove it: names of Federation v1 are then forwarded"),
    ("istio", "remove it: Pods in the mesh still resolve its hosts with their sidecar"),
    ("kubedns", "remove it, and use *health*, *ready* and *prometheus*"),
    ("probe", "remove it: `health_check` in *forward* probes upstreams"),
    ("rrl", "remove it, or build CoreDNS with the external plugin *rrl*"),
    ("shadow", "remove it: the comparison ends with the swap"),
];

/// Returns an error for each word and argument of a Corefile that a release of CoreDNS does not know.
#[must_use]
pub fn unknown_to(release: Release, corefile: &Corefile) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for block in &corefile.blocks {
        problems.extend(block.keys.iter().filter_map(|key| unknown_scheme(release, key)));
        block.directives.iter().for_each(|directive| check_directive(release, directive, &mut problems));
    }
    problems
}

fn unknown_scheme(release: Release, key: &Token) -> Option<Diagnostic> {
    let is_unknown = release < HTTPS3 && key.text.starts_with("https3://");
    is_unknown.then(|| {
        let message = format!("CoreDNS {release} does not know `https3://`, which came with {HTTPS3}");
        Diagnostic::error(codes::ARGUMENT, key.span, message).with_help(later(HTTPS3, "remove this key"))
    })
}

fn check_directive(release: Release, directive: &Directive, problems: &mut Vec<Diagnostic>) {
    let name = &directive.name;
    let Some(words) = Words::of(&name.text) else {
        problems.extend(own_directive(name));
        return;
    };
    if words.since > release {
        let what = format!("the directive `{}`", name.text);
        problems.push(too_new(release, words.since, codes::DIRECTIVE, name, &what));
        return;
    }
    for property in directive.lines().iter().filter_map(|line| line.words.first()) {
        match words.since(&property.text) {
            None => problems.push(own_property(name, property)),
            Some(since) if since > release => {
                let what = format!("the property `{}` of `{}`", property.text, name.text);
                problems.push(too_new(release, since, codes::PROPERTY, property, &what));
            }
            Some(_) => {}
        }
    }
    problems.extend(arguments::of(directive).filter_map(|(form, word)| {
        let message = match form.since {
            None => format!("CoreDNS does not accept `{}` here", word.text),
            Some(since) if since > release => {
                format!("CoreDNS {release} does not accept `{}` here, {since} does", word.text)
            }
            Some(_) => return None,
        };
        let help = form.since.map_or(form.instead.to_owned(), |since| later(since, form.instead));
        Some(Diagnostic::error(codes::ARGUMENT, word.span, message).with_help(help))
    }));
}

fn own_directive(name: &Token) -> Option<Diagnostic> {
    let (_, instead) = OWN_DIRECTIVES.iter().find(|(own, _)| *own == name.text)?;
    let message = format!("CoreDNS does not have the directive `{}`", name.text);
    Some(Diagnostic::error(codes::DIRECTIVE, name.span, message).with_help(*instead))
}

fn own_property(directive: &Token, property: &Token) -> Diagnostic {
    let message = format!("`{}` of CoreDNS does not have the property `{}`", directive.text, property.text);
    Diagnostic::error(codes::PROPERTY, property.span, message).with_help("remove this line")
}

fn too_new(release: Release, since: Release, code: Code, word: &Token, what: &str) -> Diagnostic {
    let message = format!("CoreDNS {release} does not have {what}, which came with {since}");
    Diagnostic::error(code, word.span, message).with_help(later(since, "remove it"))
}

/// Returns the advice to use a later release, or to do without a word.
fn later(since: Release, instead: &str) -> String {
    format!("go back to CoreDNS {since} or later, or {instead}")
}

/// Words of a Corefile that CoreDNS knows, each with the first release that does.
pub struct Known(Vec<(Span, Release)>);

impl Known {
    /// Looks up the words of a Corefile.
    #[must_use]
    pub fn of(corefile: &Corefile) -> Known {
        let directives = corefile.blocks.iter().flat_map(|block| &block.directives);
        let known = directives.filter_map(|directive| Some((directive, Words::of(&directive.name.text)?)));
        Known(known.flat_map(|(directive, words)| known_words(directive, &words)).collect())
    }

    /// Returns the first release of CoreDNS that knows the word at this place.
    #[must_use]
    pub fn since(&self, place: Span) -> Option<Release> {
        self.0.iter().find(|(span, _)| *span == place).map(|(_, since)| *since)
    }
}

fn known_words(directive: &Directive, words: &Words) -> Vec<(Span, Release)> {
    let properties = directive.lines().iter().filter_map(|line| line.words.first());
    let properties = properties.filter_map(|word| Some((word.span, words.since(&word.text)?)));
    let forms = arguments::of(directive).filter_map(|(form, word)| Some((word.span, form.since?)));
    core::iter::once((directive.name.span, words.since)).chain(properties).chain(forms).collect()
}

#[cfg(test)]
mod tests {
    use super::{Known, OWN_DIRECTIVES, Release, Words, unknown_to};

    /// Returns the texts of the words that a release does not know.
    fn unknown(release: &str, text: &str) -> Vec<String> {
        let parsed = corefile::parse("Corefile".as_ref(), text.to_owned(), &corefile::NoFiles);
        let problems = unknown_to(release.parse().expect("a release"), &parsed.corefile);
        problems.iter().map(|problem| parsed.corefile.sources.slice(problem.span).to_owned()).collect()
    }

    #[test]
    fn finds_words_and_arguments_that_a_release_does_not_know() {
        let cases = [
            (". {\n whoami\n}\n", &["1.11.0", "1.15.0"][..], &[][..]),
            (". {\n control\n istio mesh\n}\n", &["1.11.0", "1.15.0"], &["control", "istio"]),
            (". {\n siit {\n eam 192.0.2.1 2001:db8::1\n }\n}\n", &["1.11.0", "1.14.7"], &["siit"]),
            (". {\n siit {\n eam 192.0.2.1/32 2001:db8::/64\n }\n}\n", &["1.15.0"], &["192.0.2.1/32"]),
            (". {\n forward . 192.0.2.1 {\n next NXDOMAIN\n }\n}\n", &["1.11.3"], &["next"]),
            (". {\n forward . 192.0.2.1 {\n next NXDOMAIN\n }\n}\n", &["1.11.4", "1.15.0"], &[]),
            (". {\n forward . quic://192.0.2.1 {\n http3\n }\n}\n", &["1.14.7"], &["http3", "quic://192.0.2.1"]),
            (". {\n forward . quic://192.0.2.1 {\n http3\n }\n}\n", &["1.15.0"], &["http3"]),
            (". {\n rewrite stop rcode NXDOMAIN NOERROR\n}\n", &["1.11.1"], &["rcode"]),
            (". {\n rewrite name regex a.* b.{0} metadata\n}\n", &["1.14.7"], &["metadata"]),
            (". {\n rewrite {\n name regex a.* b.{0} metadata\n }\n}\n", &["1.14.7"], &["metadata"]),
            (". {\n hosts {\n 192.0.2.1 metadata\n ttl 0\n }\n}\n", &["1.15.0"], &["0"]),
            (". {\n cache {\n serve_stale 1h verify 1s\n }\n}\n", &["1.14.3"], &["1s"]),
            ("https3://. {\n whoami\n}\n", &["1.13.2"], &["https3://."]),
        ];
        for (text, releases, words) in cases {
            for release in releases {
                assert_eq!(unknown(release, text), words, "{release}: {text}");
            }
        }
    }

    #[test]
    fn knows_since_when_coredns_has_a_word() {
        let text = ". {\n nomad\n forward . 192.0.2.1 {\n next NXDOMAIN\n http3\n }\n istio\n}\n";
        let file = corefile::parse("Corefile".as_ref(), text.to_owned(), &corefile::NoFiles).corefile;
        let known = Known::of(&file);
        let directives = &file.blocks[0].directives;
        let lines = directives[1].lines();
        assert_eq!(known.since(directives[0].name.span), Some(Release::new(1, 13, 0)));
        assert_eq!(known.since(lines[0].words[0].span), Some(Release::new(1, 11, 4)));
        assert_eq!(known.since(lines[1].words[0].span), None);
        assert_eq!(known.since(directives[2].name.span), None);
    }

    #[test]
    fn own_directives_are_not_those_of_coredns() {
        for (name, _) in OWN_DIRECTIVES {
            assert!(Words::of(name).is_none(), "{name}");
        }
    }
}
