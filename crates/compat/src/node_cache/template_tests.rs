use std::collections::BTreeMap;

use crate::kube_dns::CommandLine;

use super::*;
use crate::node_cache::FLAGS;

const TEMPLATE: &str = "\
__PILLAR__DNS__DOMAIN__:53 {
    errors
    cache {
        success 9984 30
        denial 9984 5
    }
    reload
    loop
    bind __PILLAR__LOCAL__DNS__ __PILLAR__DNS__SERVER__
    forward . __PILLAR__CLUSTER__DNS__ {
        force_tcp
    }
    prometheus :9253
    health __PILLAR__LOCAL__DNS__:8080
}
.:53 {
    errors
    cache 30
    bind __PILLAR__LOCAL__DNS__ __PILLAR__DNS__SERVER__
    forward  .   __PILLAR__UPSTREAM__SERVERS__   {
        force_tcp
    }
}
";

fn settings(text: &str) -> Settings {
    let words = CommandLine::parse_with(FLAGS, text.split(' ').map(str::to_owned), &[]).unwrap();
    Settings::read(&words, &|_| false).unwrap()
}

fn made(config: &[(&str, &str)], cluster_dns: Option<&str>) -> String {
    let data: BTreeMap<String, String> = config.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let inputs =
        TemplateInputs { template: TEMPLATE.to_owned(), cluster_dns: cluster_dns.map(|ip| ip.parse().unwrap()) };
    let settings = settings("-localip 169.254.20.10,10.96.0.10");
    corefile(&settings, &inputs, &ConfigMapSettings::parse(&data).unwrap(), HostNames::Unresolved)
}

#[test]
fn replaces_the_placeholders() {
    let text = made(&[], Some("10.96.0.99"));
    for line in [
        "cluster.local:53 {",
        "    bind 169.254.20.10 10.96.0.10 ",
        "    forward . 10.96.0.99 {",
        "    health 169.254.20.10:8080",
        "    forward  .   /etc/resolv.conf   {",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
    assert_eq!(text.matches("force_tcp").count(), 2);
    assert!(!text.contains("__PILLAR__"), "{text}");
}

#[test]
fn drops_force_tcp_for_name_servers_of_the_config_map() {
    let text = made(&[("upstreamNameservers", r#"["192.0.2.1", "192.0.2.2:5353"]"#)], Some("10.96.0.99"));
    assert!(text.contains("forward  .   192.0.2.1 192.0.2.2:5353   {\n    }\n"), "{text}");
    assert_eq!(text.matches("force_tcp").count(), 1, "only the cluster's: {text}");
}

#[test]
fn each_stub_domain_has_a_block() {
    let text =
        made(&[("stubDomains", r#"{"corp.example": ["192.0.2.3", "ns.example.org"], "none.example": []}"#)], None);
    let (_, block) = text.split_once("corp.example:53 {").expect(&text);
    for part in ["errors", "cache 30", "bind 169.254.20.10 10.96.0.10", "forward . 192.0.2.3 ns.example.org\n}"] {
        assert!(block.contains(part), "{part} is not in\n{block}");
    }
    assert!(!text.contains("none.example"), "no server to query: {text}");
}

#[test]
fn an_unknown_upstream_service_fails_at_once() {
    assert!(made(&[], None).contains("forward . 127.0.0.1:9 {"));
}

#[test]
fn ipv6_addresses_have_brackets_before_a_port() {
    let inputs = TemplateInputs {
        template: "health __PILLAR__LOCAL__DNS__:8080 __PILLAR__LOCAL__DNS__".to_owned(),
        ..TemplateInputs::default()
    };
    let text = corefile(&settings("-localip fd00::10"), &inputs, &ConfigMapSettings::default(), HostNames::Unresolved);
    assert_eq!(text, "health [fd00::10]:8080 fd00::10\n");
}

#[test]
fn fills_in_examples_for_the_placeholders_that_a_template_has() {
    let (text, used) = with_examples("__PILLAR__DNS__DOMAIN__:53 {\n    bind __PILLAR__LOCAL__DNS__\n}\n").unwrap();
    assert_eq!(text, "cluster.local:53 {\n    bind 169.254.20.10\n}\n");
    assert_eq!(used, [("__PILLAR__LOCAL__DNS__", "169.254.20.10"), ("__PILLAR__DNS__DOMAIN__", "cluster.local")]);
    assert_eq!(with_examples(". {\n    whoami\n}\n"), None);
    assert!(with_examples(TEMPLATE).is_some_and(|(text, used)| used.len() == 5 && !text.contains("__PILLAR__")));
}
