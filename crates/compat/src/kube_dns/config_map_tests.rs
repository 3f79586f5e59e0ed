use super::*;

fn read(pairs: &[(&str, &str)]) -> Result<ConfigMapSettings, ConfigMapError> {
    ConfigMapSettings::parse(&pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
}

#[test]
fn reads_the_three_keys_and_ignores_others() {
    let config_map = read(&[
        (STUB_DOMAINS, r#"{"acme.local": ["1.2.3.4", "ns.acme.local"], "corp": ["[fd00::1]:5353"]}"#),
        (UPSTREAMS, r#"["8.8.8.8", "8.8.4.4:5353", "fd00::2", "1.1.1.1"]"#),
        (FEDERATIONS, "my-federation=example.com, other=example.org."),
        ("unknown", "{"),
    ])
    .unwrap();
    let stubs: Vec<String> =
        config_map.stub_domains.iter().map(|(domain, servers)| format!("{domain} {servers:?}")).collect();
    assert_eq!(stubs.len(), 2);
    assert_eq!(config_map.stub_domains["acme.local"][1], NameServer::Host("ns.acme.local".to_owned()));
    assert_eq!(config_map.upstreams.len(), 4, "kube-dns took three at most");
    let pair = |name: &str, domain: &str| (name.to_owned(), domain.to_owned());
    assert_eq!(config_map.federations, [pair("my-federation", "example.com"), pair("other", "example.org")]);
}

#[test]
fn missing_keys_have_the_default() {
    assert_eq!(read(&[]), Ok(ConfigMapSettings::default()));
    assert_eq!(read(&[(STUB_DOMAINS, " "), (UPSTREAMS, ""), (FEDERATIONS, "")]), Ok(ConfigMapSettings::default()));
}

#[test]
fn one_invalid_value_rejects_the_whole_config_map() {
    for (key, value, said) in [
        (STUB_DOMAINS, "{", "`stubDomains`: invalid JSON"),
        (STUB_DOMAINS, "{“acme.local”: [“1.2.3.4”]}", "`“` is an ordinary character there; use the straight quotes"),
        (UPSTREAMS, "['1.2.3.4']", "`'` is an ordinary character there"),
        (STUB_DOMAINS, r#"["a"]"#, "invalid JSON"),
        (STUB_DOMAINS, r#"{"a": "1.2.3.4"}"#, "invalid JSON"),
        (STUB_DOMAINS, r#"{"A.example": ["1.2.3.4"]}"#, "'A.example' is not a domain"),
        (STUB_DOMAINS, r#"{"": ["1.2.3.4"]}"#, "'' is not a domain"),
        (STUB_DOMAINS, r#"{"a { forward": ["1.2.3.4"]}"#, "is not a domain"),
        (STUB_DOMAINS, r#"{"a": ["ns.example.org:53"]}"#, "'ns.example.org:53' is not a valid name server"),
        (STUB_DOMAINS, r#"{"a": ["1.2.3.4:70000"]}"#, "is not a valid name server"),
        (UPSTREAMS, r#"["ns.example.org"]"#, "is not a valid name server"),
        (UPSTREAMS, r#"{"a": "b"}"#, "invalid JSON"),
        (UPSTREAMS, "8.8.8.8", "invalid JSON"),
        (FEDERATIONS, r#"{"a": ["example.com"]}"#, "invalid JSON"),
        (FEDERATIONS, r#"{"a.b": "example.com"}"#, "is not a pair"),
        (FEDERATIONS, "a", "'a' is not a pair"),
        (FEDERATIONS, "a.b=example.com", "is not a pair"),
    ] {
        let refused = read(&[(UPSTREAMS, r#"["8.8.8.8"]"#), (key, value)]).unwrap_err().to_string();
        assert!(refused.contains(said), "{value}: {refused}");
        assert!(!refused.contains('\n'), "{refused}");
    }
    let many = vec!["\"8.8.8.8\""; SERVERS_MAX + 1].join(",");
    assert!(read(&[(UPSTREAMS, &format!("[{many}]"))]).unwrap_err().to_string().contains("more than 15"));
}
