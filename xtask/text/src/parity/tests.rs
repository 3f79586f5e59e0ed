use super::*;

const README: &str = "# forward

## Syntax

~~~ txt
forward FROM TO... {
    except IGNORED
    teleport DURATION [no_rec|sideways] <duration>  # into the next room
}
~~~

~~~ sh
cat key | teleport-now
~~~

## Metrics

* `coredns_forward_teleports_total{to}` - in the room
* `coredns_proxy_request_duration_seconds_count{to}`

## Examples

~~~ corefile
forward . 192.0.2.1 {
    other_word
}
~~~
";

#[test]
fn finds_words_of_the_syntax_and_metrics() {
    let Readme { words, metrics } = Readme::parse("forward", README);
    assert_eq!(words.iter().collect::<Vec<_>>(), ["except", "no_rec", "sideways", "teleport"]);
    let expected = ["coredns_forward_teleports_total", "coredns_proxy_request_duration_seconds"];
    assert_eq!(metrics.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn reports_what_portolan_lacks() {
    let folder = std::env::temp_dir().join(format!("portolan-parity-{}", std::process::id()));
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("plugin.cfg", "# comment\nforward:forward\nwarp:warp\nother:github.com/example/other\n");
    write("plugin/forward/README.md", README);
    write("plugin/warp/README.md", "# warp\n");
    write("notes/coredns-9.0.0.md", "+++\nplugin/warp: Add warp (#1)\ncore: Faster\n* plugin/forward: Teleport\n");
    let missing = Ours::new().unwrap().missing(&plugins(&folder).unwrap()).unwrap();
    let shown: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let expected = ["forward: `sideways`", "forward: `teleport`", "forward: `coredns_forward_teleports_total`"];
    assert_eq!(shown, [&expected[..], &["plugin `warp`"]].concat());
    assert_eq!(notes(&folder, "9.0.0").unwrap(), ["plugin/warp: Add warp (#1)", "* plugin/forward: Teleport"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_reason_covers_a_word_or_a_plugin() {
    let list = "# comment: no reason\nforward teleport: no doors\nwarp *: not of this world\n";
    let reason = |plugin: &str, word: Option<&str>| {
        Missing { plugin: plugin.to_owned(), word: word.map(str::to_owned) }.reason(list)
    };
    assert_eq!(reason("forward", Some("teleport")), Some("no doors"));
    assert_eq!(reason("forward", Some("sideways")), None);
    assert_eq!(reason("forward", None), None);
    assert_eq!(
        (reason("warp", None), reason("warp", Some("speed"))),
        (Some("not of this world"), Some("not of this world"))
    );
}

#[test]
fn each_reason_has_its_form() {
    for line in EXPLAINED.lines().filter(|line| !line.starts_with('#')) {
        let form = line.split_once(": ").and_then(|(what, reason)| Some((what.split_once(' ')?, reason)));
        assert!(form.is_some_and(|(_, reason)| !reason.is_empty()), "{line}");
    }
}
