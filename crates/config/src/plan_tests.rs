use super::*;
use crate::directives::{Directives, PlaceError};
use corefile::NoFiles;

fn planned(text: &str) -> Result<Vec<String>, Vec<String>> {
    let parsed = corefile::parse("Corefile".as_ref(), text.to_owned(), &NoFiles);
    let mut problems = parsed.diagnostics;
    let interface = |name: &str| (name == "lo").then(|| vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()]);
    let planning = Planning {
        entries: &[DirectiveEntry::Available(&crate::plan::tests::BIND)],
        dns_port: 53,
        interface: &interface,
        memory: None,
    };
    let plan = plan(&parsed.corefile, &planning, &mut problems);
    plan.ok_or_else(|| problems.into_iter().map(|problem| problem.message).collect()).map(|plan| {
        plan.listeners
            .iter()
            .flat_map(|listener| {
                listener.zones.iter().map(|(zone, block)| format!("{} {zone} {block}", listener.label()))
            })
            .collect()
    })
}

/// A directive that binds, as the plugin does.
static BIND: crate::options::Manifest<Vec<BindTarget>> =
    crate::options::Manifest::new("bind", "binds", Vec::new, |_, _| Ok(None))
        .repeated()
        .arguments("bind ADDRESS...", |config, args| {
            config.extend(args.take_rest().iter().map(|word| BindTarget { text: word.text.clone(), span: word.span }));
            Ok(())
        })
        .settings(|config, settings| settings.bind.extend(config.iter().cloned()));

#[test]
fn merges_blocks_on_the_same_address_into_one_listener() {
    let listeners = planned("a.test b.test:54 {\n}\nc.test {\n}\n").unwrap();
    assert_eq!(listeners, ["dns://:53 a.test. 0", "dns://:53 c.test. 1", "dns://:54 b.test. 0"]);
}

#[test]
fn listens_on_the_addresses_of_bind() {
    let listeners = planned("a.test {\n bind lo\n bind 127.0.0.1\n}\n").unwrap();
    assert_eq!(listeners, ["dns://127.0.0.1:53 a.test. 0", "dns://[::1]:53 a.test. 0"]);
    assert_eq!(planned(". {\n bind 0.0.0.0 ::\n}\n").unwrap(), ["dns://:53 . 0"]);
    let both = planned("a.test {\n bind 127.0.0.1\n}\na.test {\n bind ::1\n}\nb.test {\n}\n").unwrap();
    assert_eq!(both, ["dns://:53 b.test. 2", "dns://127.0.0.1:53 a.test. 0", "dns://[::1]:53 a.test. 1"]);
}

#[test]
fn refuses_conflicting_zones_and_unknown_names() {
    for (text, part) in [
        ("a.test {\n}\na.test {\n}\n", "already defined"),
        ("a.test a.test {\n}\n", "already defined"),
        ("a.test {\n}\na.test {\n bind ::1\n}\n", "zone overlap"),
        ("a.test {\n bind ::1\n}\na.test {\n}\n", "zone overlap"),
        ("a.test {\n bind eth9\n}\n", "not a valid IP address or interface name"),
        ("a.test {\n binds ::1\n}\n", "unknown directive"),
    ] {
        let messages = planned(text).unwrap_err();
        assert!(messages.iter().any(|message| message.contains(part)), "{text}: {messages:?}");
    }
}

#[test]
fn refuses_quic_without_certificates() {
    for (key, message) in
        [("quic://a.test", "quic: tls.Config not set"), ("https3://a.test", "DoH3 requires TLS, no TLS config found")]
    {
        let messages = planned(&format!("{key} {{\n}}\n")).unwrap_err();
        assert_eq!(messages, [message]);
    }
}

#[test]
fn reports_all_problems_at_once() {
    let messages = planned("a..b {\n nonsense\n bind\n}\n:53 {\n}\n").unwrap_err();
    assert_eq!(messages.len(), 4, "{messages:?}");
}

#[test]
fn adds_a_directive_behind_another_and_none_twice() {
    static OTHER: RemovedDirective = RemovedDirective { name: "other", removed_in: None, instead: "" };
    static ENTRIES: [DirectiveEntry; 2] = [DirectiveEntry::Removed(&OTHER), DirectiveEntry::Removed(&OTHER)];
    let directives = Directives::new(&ENTRIES);
    let more = directives.with(&BIND, "other").unwrap();
    assert_eq!(format!("{more:?}"), r#"["other", "bind", "other"]"#);
    assert_eq!(more.with(&BIND, "other").err(), Some(PlaceError::Twice("bind")));
    assert_eq!(directives.with(&BIND, "x").err(), Some(PlaceError::NoNeighbour("x".to_owned())));
    assert_eq!(more.names().collect::<Vec<_>>(), ["bind"]);
}
