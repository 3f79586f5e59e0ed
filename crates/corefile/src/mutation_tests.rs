//! Fuzz tests: for any text, the parser terminates, does not panic and reports only valid positions.

use std::path::Path;

use crate::test_support::{World, rendered};
use crate::{Corefile, Directive, Parsed, Span, did_you_mean};

const SEEDS: [&str; 4] = [
    "(common) {\n    errors\n    log . \"{remote} \\\"{name}\\\"\" {\n        class error\n    }\n}\n\
     .:53, cluster.test:1053 {\n    import common\n    cache {$TTL} {\n        success 9 8 # c\n    }\n    import d/*.x\n}\n",
    "example.org\n{\n  hosts {\n    10.0.0.1 a b\n    import hosts\n    fallthrough\n  }\n} https://. {\n}\n",
    "lab.test\ntemplate IN A {\n match \"^(?P<a>\\.)\"\n answer \"{{ .Name }} 60 IN A {$SELF}\"\n}\nforward . 10.0.0.1\n",
    "import blocks\r\n. tls://. {\r\n  whoami\r\n}\r\n}\r\n",
];

const PIECES: [&str; 24] = [
    "{",
    "}",
    "\n",
    " ",
    "\t",
    "\r",
    "\"",
    "\\",
    "#",
    ",",
    "(a)",
    "import ",
    "import common",
    "import d/*",
    "{$SELF}",
    "{$",
    "{%TTL%}",
    "{$UNSET}",
    "\u{feff}",
    "日",
    "\u{0}",
    "\u{2028}",
    "{}",
    "\" {\n",
];

/// SplitMix64 by Steele, Lea and Flood: a small generator with the same output on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).unwrap()
    }

    /// Mutates bytes, not characters. The result is converted to UTF-8 with replacements, as a loader does.
    fn mutate(&mut self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len());
            let end = (at + self.below(12)).min(bytes.len());
            match self.below(4) {
                0 => drop(bytes.drain(at..end)),
                1 => bytes.insert(at, u8::try_from(self.below(256)).unwrap()),
                2 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
                _ => drop(bytes.splice(at..at, PIECES[self.below(PIECES.len())].bytes())),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn world(text: &str) -> World {
    let world = World::default().variable("TTL", "30").variable("SELF", "x{$SELF}").variable("DEEP", "{%TTL%}");
    world.file("blocks", "a.test {\n log\n}\n").file("hosts", text).file("d/a.x", text).file("d/b.x", "import a.x\n")
}

fn check(parsed: &Parsed) {
    let Parsed { corefile, diagnostics } = parsed;
    spans(corefile).chain(diagnostics.iter().map(|problem| problem.span)).for_each(|span| {
        let text = corefile.sources.text(span.file);
        assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?}");
    });
    assert!(corefile.blocks.iter().all(|block| !block.keys.is_empty()));
    assert!(corefile.blocks.iter().flat_map(|block| &block.keys).all(|key| !key.text.is_empty()));
    let mut lines = corefile.blocks.iter().flat_map(|block| &block.directives).flat_map(Directive::lines);
    assert!(lines.all(|line| !line.words.is_empty()));
    assert_eq!(rendered(parsed).is_empty(), diagnostics.is_empty());
}

fn spans(corefile: &Corefile) -> impl Iterator<Item = Span> {
    corefile.blocks.iter().flat_map(|block| {
        let keys = block.keys.iter().map(|key| key.span);
        let directives = block.directives.iter().flat_map(|directive| {
            let words = directive.lines().iter().flat_map(|line| line.words.iter().map(|word| word.span));
            words.chain([directive.span(), directive.name.span])
        });
        keys.chain(directives).chain([block.span])
    })
}

#[test]
fn never_panics_on_mutated_corefiles() {
    let mut random = Random(7);
    for round in 0..600 {
        let seed = SEEDS[round % SEEDS.len()];
        let (text, other) = (random.mutate(seed), random.mutate(seed));
        let parsed = world(&other).parse(&text);
        check(&parsed);
        assert_eq!(parsed.corefile.fingerprint_text(&Path::to_owned) == "[]", parsed.corefile.blocks.is_empty());
        assert_eq!(did_you_mean(&text, seed.split_whitespace()), None);
    }
}

#[test]
fn never_panics_on_random_pieces() {
    let mut random = Random(8);
    for _ in 0..400 {
        let pieces = (0..random.below(60)).map(|_| PIECES[random.below(PIECES.len())]);
        let text: String = pieces.collect();
        check(&world(&text).parse(&text));
    }
}

#[test]
fn terminates_on_long_repetitions() {
    for piece in PIECES.iter().chain(&[
        "a {\n",
        "a {\n}\n",
        "a, ",
        "{ a ",
        "a { a }",
        "a { } ",
        "\" {\n} a ",
        "import d/none*\n",
        "{$UNSET",
        "a\"b\\",
    ]) {
        let text = piece.repeat(20_000);
        check(&World::default().parse(&text));
    }
}
