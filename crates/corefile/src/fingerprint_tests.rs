use std::path::Path;

use crate::test_support::{World, accepted};

fn fingerprint(text: &str) -> String {
    accepted(text).fingerprint_text(&Path::to_owned)
}

#[test]
fn fingerprint_ignores_white_space_and_comments() {
    let plain = fingerprint(". x.test {\n  cache 30 {\n    success 9\n  }\n}\n");
    for same in [
        ". x.test {#c\n\tcache   30 {\n success 9 # c\n}\n\n\n}\n\n# c",
        "\u{feff}.   x.test\t{\r\n  cache 30 {\r\n    \"success\" 9\r\n  }\r\n}",
    ] {
        assert_eq!(fingerprint(same), plain, "{same:?}");
    }
    for other in [
        "\n. x.test {\n  cache 30 {\n    success 9\n  }\n}\n",
        ". x.test {\n  cache 30 {\n    success 9\n\n  }\n}\n",
        ". x.test {\n  cache 31 {\n    success 9\n  }\n}\n",
        ". x.test {\n  cache 30\n  success 9\n}\n",
        ". \"x test\" {\n  cache 30 {\n    success 9\n  }\n}\n",
    ] {
        assert_ne!(fingerprint(other), plain, "{other:?}");
    }
}

#[test]
fn fingerprint_depends_on_variables_but_not_on_files_of_comments() {
    let text = "import d/*\n. {\n cache {$TTL}\n}\n";
    let world = World::default().file("d/b", "x.test {\n log\n}\n").variable("TTL", "5");
    let before = world.accepted(text).fingerprint_text(&Path::to_owned);
    assert_ne!(world.clone().variable("TTL", "6").accepted(text).fingerprint_text(&Path::to_owned), before);
    assert_eq!(world.clone().file("d/a", "# nothing\n").accepted(text).fingerprint_text(&Path::to_owned), before);
}

/// Recorded from CoreDNS's parser (github.com/coredns/caddy v1.1.4) and Go's `encoding/json`.
#[test]
fn text_is_that_of_coredns() {
    let main = "(snip) {\n  errors\n  log . \"<{remote}> & \\\"x\\\" \u{1}\ty\"\n}\na.test,\nb.test:53 {\n  import snip\n  \
        import part\n  cache {$TTL} {\n    success 9\n  }\n  log {\n    class error\n  }\n}\nc.test {\n whoami\n}\n";
    let world = World::default().file("part", "hosts {\n 192.0.2.1 é.test\n}\n").variable("TTL", "5");
    let text = world.accepted(main).fingerprint_text(&|name| Path::new("/etc").join(name));
    let expected = concat!(
        r#"[{"Keys":["a.test","b.test:53"],"Tokens":{"cache":[{"File":"","Line":9,"Text":"cache"},"#,
        r#"{"File":"","Line":9,"Text":"5"},{"File":"","Line":9,"Text":"{"},{"File":"","Line":10,"Text":"success"},"#,
        r#"{"File":"","Line":10,"Text":"9"},{"File":"","Line":11,"Text":"}"}],"#,
        r#""errors":[{"File":"","Line":2,"Text":"errors"}],"#,
        r#""hosts":[{"File":"/etc/part","Line":1,"Text":"hosts"},{"File":"/etc/part","Line":1,"Text":"{"},"#,
        r#"{"File":"/etc/part","Line":2,"Text":"192.0.2.1"},{"File":"/etc/part","Line":2,"Text":"é.test"},"#,
        r#"{"File":"/etc/part","Line":3,"Text":"}"}],"#,
        r#""log":[{"File":"","Line":3,"Text":"log"},{"File":"","Line":3,"Text":"."},"#,
        r#"{"File":"","Line":3,"Text":"\u003c{remote}\u003e \u0026 \"x\" \u0001\ty"},{"File":"","Line":12,"Text":"log"},"#,
        r#"{"File":"","Line":12,"Text":"{"},{"File":"","Line":13,"Text":"class"},{"File":"","Line":13,"Text":"error"},"#,
        r#"{"File":"","Line":14,"Text":"}"}]}},"#,
        r#"{"Keys":["c.test"],"Tokens":{"whoami":[{"File":"","Line":17,"Text":"whoami"}]}}]"#,
    );
    assert_eq!(text, expected);
}
