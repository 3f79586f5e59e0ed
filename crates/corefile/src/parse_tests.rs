use super::*;
use crate::test_support::{World, accepted, rendered};

/// Creates the files and variables used in the tables below.
fn world() -> World {
    let world = World::default()
        .file("log.conf", "log\n")
        .file("property.conf", "success 100\nprefetch 5\n")
        .file("blocks.conf", "a.test {\n log\n}\nb.test {\n errors\n}\n")
        .file("keys.conf", "x.test y.test\n")
        .file("crossing.conf", "log\n}\nx.test {\n errors\n")
        .file("snippets.conf", "(s) {\n import d/two\n}\n")
        .file("own.conf", "log\nimport own.conf\n")
        .file("bom.conf", "\u{feff}log\r\n")
        .file("d/one", "import two\n")
        .file("d/two", "errors\n")
        .file("d/three", "import ../log.conf\n")
        .file("d/../log.conf", "log\n")
        .file("many/b.override", "cache 2\n")
        .file("many/a.override", "cache 1\n")
        .file("many/c.server", "c.test {\n}\n")
        .directory("many/d.dir");
    [
        ("KEY", "a.test"),
        ("TTL", "30"),
        ("SPACED", "a b"),
        ("BRACE", "{"),
        ("IMPORT", "import"),
        ("ENDLESS", "{$ENDLESS}"),
    ]
    .into_iter()
    .fold(world, |world, (name, value)| world.variable(name, value))
}

#[track_caller]
fn check_shapes(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(world().shape(text), *expected, "{text:?}");
    }
}

#[track_caller]
fn check_problems(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(world().problems(text), *expected, "{text:?}\n{}", rendered(&world().parse(text)));
    }
}

#[test]
fn parses_keys() {
    check_shapes(&[
        ("lab.test {\n log\n}", "lab.test [log]"),
        ("lab.test, www.lab.test {\n}", "lab.test www.lab.test []"),
        ("lab.test,\nwww.lab.test {\n}", "lab.test www.lab.test []"),
        ("lab.test,\n\n# c\nwww.lab.test,\n z.test {\n}", "lab.test www.lab.test z.test []"),
        ("lab.test www.lab.test {\n}", "lab.test www.lab.test []"),
        ("lab.test,www.lab.test {\n}", "lab.test,www.lab.test []"),
        ("lab.test,, b.test {\n}", "lab.test, b.test []"),
        ("lab.test\n{\n log\n}", "lab.test [log]"),
        ("lab.test\n\n\n{ log\n}", "lab.test [log]"),
        ("\"lab.test\" {\n log\n}", "lab.test [log]"),
        ("\"a\nb\" c.test {\n log\n}", "a\nb c.test [log]"),
        ("\u{feff}lab.test {\r\n log\r\n}\r\n", "lab.test [log]"),
        (". tls://. https://.:80 dns://[::1]:53 {\n}", ". tls://. https://.:80 dns://[::1]:53 []"),
        ("a.test {\n} b.test {\n}", "a.test [] b.test []"),
        ("a.test import {\n}", "a.test import []"),
    ]);
}

#[test]
fn accepts_blocks_without_braces() {
    check_shapes(&[
        ("lab.test\nlog\nerrors", "lab.test [log; errors]"),
        ("lab.test\ncache 30 {\n success 9\n}\nlog", "lab.test [cache 30 {success 9}; log]"),
        ("lab.test", "lab.test []"),
        ("lab.test, b.test\n\n", "lab.test b.test []"),
        ("a.test {\n log\n}\nb.test\nerrors", "a.test [log] b.test [errors]"),
        ("a.test\nb.test {\n log\n}", "a.test [b.test {log}]"),
        ("a.test\nimport log.conf\nerrors", "a.test [log; errors]"),
    ]);
}

#[test]
fn warns_of_files_without_blocks() {
    for text in ["", " \n\t\r\n", "# a\n# b", "(s) {\n log\n}", "\u{feff}"] {
        check_problems(&[(text, "?no-server-block@1:1")]);
    }
}

#[test]
fn parses_directives_and_blocks() {
    check_shapes(&[
        (". { }", ". []"),
        (". { log\n errors\n}", ". [log; errors]"),
        (". {\n log\n log a b\n}", ". [log; log a b]"),
        (". {\n cache 30#x\n}", ". [cache 30]"),
        (". {\n log . \"a \\\"b\\\" c\"\n}", ". [log . a \"b\" c]"),
        (". {\n log . \"a\nb\" c\n errors\n}", ". [log . a\nb c; errors]"),
        (". {\n cache 5 {\n success 9 8\n\n denial 7\n }\n log\n}", ". [cache 5 {success 9 8; denial 7}; log]"),
        (". {\n cache { success 9\n }\n}", ". [cache {success 9}]"),
        (". {\n cache { }\n log {\n }\n}", ". [cache {}; log {}]"),
        (". \"{\"\nlog\n\"}\"", ". [log]"),
        (". {\n forward . 10.0.0.1 import a\n}", ". [forward . 10.0.0.1 import a]"),
        (". {\n cache {\n success import\n }\n}", ". [cache {success import}]"),
        (". {\n cache { import\n }\n}", ". [cache {import}]"),
        (". {\n \"\" a\n}", ". [ a]"),
    ]);
}

#[test]
fn substitutes_variables() {
    check_shapes(&[
        ("{$KEY} {\n cache {$TTL} {\n success {%TTL%}{$TTL}\n }\n}", "a.test [cache 30 {success 3030}]"),
        ("{$UNSET} {\n log\n}\nb.test {\n}", "b.test []"),
        ("{$UNSET} b.test {\n}", "b.test []"),
        ("b.test, {$UNSET}\n c.test {\n}", "b.test c.test []"),
        ("{$UNSET}:53 {\n health :{$UNSET}\n}", ":53 [health :]"),
        (". {\n log {$BRACE}\n errors\n}", ". [log {; errors]"),
        (". {\n {$IMPORT} a\n}", ". [import a]"),
        (". {\n import {$UNSET}log.conf\n}", ". [log]"),
        ("({$TTL}) {\n log\n}\n. {\n import 30\n}", ". [log]"),
        (". {\n \"{$TTL} x\" {{$TTL}} {1} {args}\n}", ". [30 x {30} {1} {args}]"),
    ]);
    let block = &world().accepted(". {\n log {$SPACED}\n}").blocks[0];
    assert_eq!(block.directives[0].args[0].text, "a b");
}

#[test]
fn expands_snippets() {
    check_shapes(&[
        ("(a) {\n log\n errors\n}\n. {\n import a\n cache\n}", ". [log; errors; cache]"),
        ("(a) { log }\n(b) { errors }\n. {\n import a\n import b\n import a\n}", ". [log; errors; log]"),
        ("(a)\n{\n log\n}\n. {\n import a\n}", ". [log]"),
        ("(corp:example:com) {\n log\n}\n. {\n import corp:example:com\n}", ". [log]"),
        ("() {\n log\n}\n((b)) {\n errors\n}\n. {\n import (b)\n}", ". [errors]"),
        ("(a) b.test {\n log\n}", "(a) b.test [log]"),
        ("(a) {\n success 1\n}\n. {\n cache {\n import a\n denial 2\n }\n}", ". [cache {success 1; denial 2}]"),
        ("(a) {\n x.test {\n log {\n  class all\n }\n }\n}\nimport a\n. {\n}", "x.test [log {class all}] . []"),
        ("(a) {\n cache {\n}\n}\n. {\n import a\n log\n}", ". [cache {}; log]"),
        ("(b) {\n log\n}\n(a) {\n import b\n import b\n}\n. {\n import a\n}", ". [log; log]"),
        ("(a) {\n cache {$TTL}\n}\n. {\n import a\n}", ". [cache 30]"),
        ("(log.conf) {\n errors\n}\n. {\n import log.conf\n}", ". [errors]"),
        ("(a) {\n}\n. {\n import a\n log\n}", ". [log]"),
    ]);
}

#[test]
fn expands_imported_files() {
    check_shapes(&[
        ("import blocks.conf\n. {\n}", "a.test [log] b.test [errors] . []"),
        (". {\n import log.conf\n cache {\n  import property.conf\n }\n}", ". [log; cache {success 100; prefetch 5}]"),
        (". { import log.conf\n}", ". [log]"),
        ("import keys.conf\n{\n log\n}", "x.test y.test [log]"),
        ("a.test,\nimport keys.conf\nlog", "a.test x.test y.test [log]"),
        (". {\n import crossing.conf\n}", ". [log] x.test [errors]"),
        (". {\n import d/one\n}", ". [errors]"),
        (". {\n import d/three\n}", ". [log]"),
        ("import snippets.conf\n. {\n import s\n}", ". [errors]"),
        (". {\n import bom.conf #c\n}", ". [log]"),
        (". {\n import log.conf\n import log.conf\n}", ". [log; log]"),
        (". {\n import many/*.override\n}\nimport many/*.server", ". [cache 1; cache 2] c.test []"),
        (
            ". {\n import many/?.override\n import many/none*\n log\n}\nimport none/*.server",
            ". [cache 1; cache 2; log]",
        ),
        ("\"import\" blocks.conf", "a.test [log] b.test [errors]"),
    ]);
}

#[test]
fn resolves_relative_imports_against_the_importing_file() {
    let world = world().file("/etc/dns/custom/x.override", "log\n").file("/abs", "errors\n");
    let text = ". {\n import custom/*.override\n import /abs\n}";
    let parsed = parse(Path::new("/etc/dns/Corefile"), text.into(), &world);
    assert_eq!(crate::test_support::shape(&parsed.corefile), ". [log; errors]");
    let names: Vec<_> = parsed.corefile.sources.files().map(|(name, _)| name.display().to_string()).collect();
    assert_eq!(names, ["/etc/dns/Corefile", "/etc/dns/custom/x.override", "/abs"]);
}

#[test]
fn reports_mistakes_in_keys() {
    check_problems(&[
        ("lab.test, {\n}", "extra-comma@1:11"),
        ("lab.test,\n{\n}", "extra-comma@2:1"),
        ("lab.test,", "extra-comma@1:9"),
        ("lab.test , b.test {\n}", "extra-comma@1:10"),
        ("{\n log\n}\n. {\n}", "?block-without-keys@1:1"),
        ("{$UNSET} \"\" {\n log\n}", "?unset-variable@1:1 ?block-without-keys@1:1"),
        ("lab.test{\n log\n}", "?glued-brace@1:1 ?stray-brace@3:1"),
        (". {}\nlog", "?glued-brace@1:3"),
        (". {\n}\n}", "?stray-brace@3:1"),
        (". {\n}\n}\n}", "?stray-brace@3:1 ?stray-brace@4:1"),
        ("lab.test\nlog\n}", "?stray-brace@3:1"),
        ("{$ENDLESS} {\n}", "endless-variable@1:1"),
    ]);
    assert_eq!(world().shape(". {\n log\n}\n}\n"), ". [log] } []");
}

#[test]
fn reports_unclosed_blocks() {
    check_problems(&[
        ("lab.test {", "unclosed-block@1:10"),
        ("lab.test {\n log", "unclosed-block@1:10"),
        ("lab.test {\n forward . 1.2.3.4 {\n", "unclosed-block@2:20"),
        ("lab.test {\n cache {\n  success 1", "unclosed-block@2:8"),
        ("lab.test {\n cache {\n }\n log", "unclosed-block@1:10"),
        ("lab.test {\n cache {\n }\n", "?unclosed-block@1:10"),
        ("(a) {\n log {\n}\n", "unclosed-block@1:5"),
        (". {\n log \"x\n}\n", "unclosed-block@1:3 ?unclosed-quote@2:6"),
        (". {\n import crossing.conf\n", "unclosed-block@3:8"),
    ]);
}

#[test]
fn locates_a_missing_brace_by_indentation() {
    let text = ". {\n  health {\n    lameduck 5s\n  cache 30\n}\nb.test {\n  log\n}\nc.test {\n";
    let parsed = world().parse(text);
    let help = parsed.diagnostics.iter().find_map(|problem| problem.help.clone()).unwrap();
    assert!(help.ends_with("opened at Corefile:2:10"), "{help}");
}

#[test]
fn reports_misplaced_braces() {
    check_problems(&[
        ("lab.test { log }", "brace-in-line@1:16"),
        ("lab.test {\n log }\nb.test {\n}", "brace-in-line@2:6"),
        (". {\n health { lameduck 5s }\n log\n}", "brace-in-line@2:23"),
        (". {\n hosts { no_reverse }\n log\n}", "?brace-in-line@2:21"),
        (". {\n cache {\n  success 9 }\n log\n}", "brace-in-line@3:13"),
        (". {\n cache {\n  success 9\n } }\nb.test {\n}", "brace-in-line@4:4"),
        (". {\n cache {\n } log\n errors\n}", "word-behind-block@3:4"),
        (". {\n cache\n {\n  success 9\n }\n log\n}", "brace-alone@3:2"),
        (". {\n {\n }\n}", "brace-alone@2:2"),
        (". {\n cache {\n  success {\n   9\n  }\n  denial 1\n }\n log\n}", "nested-block@3:11"),
        (". {\n cache {\n  {\n  }\n }\n log\n}", "nested-block@3:3"),
        (". {\n health {\n forward . x {\n  a\n }\n log\n}\n", "?unclosed-block@1:3 nested-block@3:14"),
        (". {\n forward . 10.0.0.1{\n  policy random\n }\n}", "?glued-brace@2:12 ?stray-brace@5:1"),
        (". {\n cache {}\n log \"{}\" \"x{\"\n view {a}\n}", "?glued-brace@2:8"),
        (". {\n hosts {\n  10.0.0.1 a{\n }\n}", "?glued-brace@3:12"),
    ]);
}

#[test]
fn keeps_the_valid_parts_after_an_error() {
    for (text, expected) in [
        ("lab.test { log }\nb.test {\n}", "lab.test [log] b.test []"),
        (". {\n health { lameduck 5s }\n log\n}", ". [health {lameduck 5s}; log]"),
        (". {\n cache {\n  success 9\n } }\nb.test {\n}", ". [cache {success 9}] b.test []"),
        (". {\n cache\n {\n  success 9\n }\n log\n}", ". [cache {success 9}; log]"),
        (". {\n cache {\n  success {\n   9\n  }\n  denial 1\n }\n log\n}", ". [cache {success; denial 1}; log]"),
        (". {\n import nowhere\n log\n}", ". [log]"),
    ] {
        let parsed = world().parse(text);
        assert!(parsed.has_errors(), "{text:?}");
        assert_eq!(crate::test_support::shape(&parsed.corefile), expected, "{text:?}");
    }
}

#[test]
fn reports_mistakes_in_snippets_and_imports() {
    check_problems(&[
        ("(a)\nlog", "snippet-without-braces@1:1"),
        ("(a) {\n log\n}\n(a) {\n}", "snippet-redefined@4:1"),
        ("import snippets.conf\n(s) {\n}", "snippet-redefined@2:1"),
        (". {\n import a\n}\n(a) {\n log\n}", "import-not-found@2:9"),
        ("import", "import-arguments@1:1"),
        (". {\n import\n}", "import-arguments@2:2"),
        (". {\n cache {\n  import\n }\n}", "import-arguments@3:3"),
        ("import a b\n. {\n}", "import-arguments@1:10"),
        (". {\n import log.conf {\n  x\n }\n errors\n}", "import-arguments@2:18"),
        (". {\n import log.conf }", "brace-in-line@2:18"),
        ("import \"\"", "import-empty@1:8"),
        ("import {$UNSET}", "?unset-variable@1:8 import-empty@1:8"),
        (". {\n log \u{201c}a b\u{201d}\n}", "?typographic-quote@2:6 ?typographic-quote@2:9"),
        ("import */*.x", "import-pattern@1:8"),
        ("import ??", "import-pattern@1:8"),
        ("import [ab].x", "import-pattern@1:8"),
        ("import none*?", "?import-without-match@1:8"),
        ("import none/*.x", "?import-without-match@1:8"),
        ("import none/one.x", "import-not-found@1:8"),
        ("import many/d.dir", "import-unreadable@1:8"),
        ("import many/d*", "import-unreadable@1:8"),
    ]);
}

#[test]
fn reports_import_loops() {
    check_problems(&[
        ("(a) {\n import a\n}\n. {\n import a\n}", "import-loop@2:9"),
        ("(a) {\n import b\n}\n(b) {\n import a\n}\n. {\n import a\n import b\n}", "import-loop@2:9 import-loop@5:9"),
        ("(a) {\n log\n import a\n}", "import-loop@3:9"),
        ("(a) {\n log import a\n}", "?no-server-block@1:1"),
        (". {\n import own.conf\n}", "import-loop@2:8"),
        ("import Corefile", "import-loop@1:8"),
    ]);
    let parsed = world().parse("(a) {\n import b\n}\n(b) {\n import a\n}\n. {\n import a\n}");
    assert_eq!(parsed.diagnostics[0].help.as_deref(), Some("the cycle is `(a)` → `(b)` → `(a)`"));
}

/// Builds `depth` snippets, each of which imports the previous one `width` times.
fn tower(depth: usize, width: usize) -> String {
    let level = |level: usize| format!("(s{level}) {{\n{}}}\n", format!(" import s{}\n", level - 1).repeat(width));
    let levels: String = (1..=depth).map(level).collect();
    format!("(s0) {{\n log\n}}\n{levels}. {{\n import s{depth}\n}}\n")
}

#[test]
fn limits_imports() {
    check_problems(&[(&tower(15, 1), ""), (&tower(16, 1), "import-too-deep@5:9"), (&tower(8, 2), "")]);
    let wide = world().problems(&tower(12, 8));
    assert_eq!(wide.split('@').next(), Some("too-many-imports"), "{wide}");
    let long = format!("(s) {{\n log {}\n}}\n. {{\n{}}}", "x ".repeat(1000), " import s\n".repeat(1000));
    assert_eq!(world().problems(&long).split('@').next(), Some("too-much-text"));
    let huge = format!("# {}\n. {{\n import log.conf\n}}", "x".repeat(4 << 20));
    assert_eq!(world().problems(&huge), "file-too-large@1:1");
    let full = format!("# {}\n. {{\n import log.conf\n}}", "x".repeat((4 << 20) - 25));
    assert_eq!(world().problems(&full), "file-too-large@3:9");
}

#[test]
fn limits_warnings_without_dropping_errors() {
    let text = format!("{}. {{\n log }}", "import none/*\n".repeat(200));
    let parsed = world().parse(&text);
    assert_eq!(parsed.diagnostics.len(), 52);
    assert_eq!(parsed.diagnostics[50].code.name(), "corefile/too-many-problems");
    assert!(parsed.has_errors());
}

#[test]
fn reports_a_problem_in_a_snippet_once() {
    let text = "(a) {\n health { lameduck 5s }\n}\nx.test {\n import a\n}\ny.test {\n import a\n}\n";
    assert_eq!(world().problems(text), "brace-in-line@2:23");
}

#[test]
fn reports_all_problems_in_one_run() {
    let text = "a.test, {\n log }\nb.test {\n import\n health { lameduck 5s }\n cache {\n  x {\n  }\n }\n}\nc.test {\n";
    let expected = "extra-comma@1:9 brace-in-line@2:6 import-arguments@4:2 brace-in-line@5:23 nested-block@7:5 unclosed-block@11:8";
    assert_eq!(world().problems(text), expected);
    assert_eq!(accepted("").blocks.len(), 0);
}
