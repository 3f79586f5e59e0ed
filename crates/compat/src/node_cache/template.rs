//! Builds the Corefile from a template of node-cache by replacing its `__PILLAR__` placeholders.

use core::net::IpAddr;

use crate::kube_dns::{ConfigMapSettings, HostNames, NameServer, stub_blocks};

use crate::node_cache::settings::Settings;

/// Upstreams for outside names if the ConfigMap names none.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Placeholder for the upstream Service while its address is unknown. Nothing listens there, so queries fail at once
/// and the log shows the problem.
const UNREACHABLE: &str = "127.0.0.1:9";

/// Facts found on the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateInputs {
    /// Template of the Corefile.
    pub template: String,
    /// Address of the upstream Service, if known.
    pub cluster_dns: Option<IpAddr>,
}

/// Builds the Corefile: the filled template and a block for each stub domain.
#[must_use]
pub fn corefile(
    settings: &Settings,
    inputs: &TemplateInputs,
    config_map: &ConfigMapSettings,
    hosts: HostNames<'_>,
) -> String {
    let template =
        if config_map.upstreams.is_empty() { inputs.template.clone() } else { without_force_tcp(&inputs.template) };
    let mut text = replace(settings, inputs, config_map, &template);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&stub_blocks(&settings.local, settings.port, config_map, hosts));
    text
}

const LOCAL: &str = "__PILLAR__LOCAL__DNS__";
const SERVER: &str = "__PILLAR__DNS__SERVER__";
const DOMAIN: &str = "__PILLAR__DNS__DOMAIN__";
const CLUSTER_DNS: &str = "__PILLAR__CLUSTER__DNS__";
const UPSTREAMS: &str = "__PILLAR__UPSTREAM__SERVERS__";

/// Placeholders with values to check a template with, before anyone has decided the real ones.
const EXAMPLES: [(&str, &str); 5] = [
    (LOCAL, "169.254.20.10"),
    (SERVER, "10.96.0.10"),
    (DOMAIN, "cluster.local"),
    (CLUSTER_DNS, "10.96.0.11"),
    (UPSTREAMS, RESOLV_CONF),
];

/// Replaces the placeholders of a template by example values. Returns the text, and the placeholders that it had with
/// their values; `None` if the text has no placeholder.
#[must_use]
pub fn with_examples(template: &str) -> Option<(String, Vec<(&'static str, &'static str)>)> {
    let used: Vec<_> = EXAMPLES.into_iter().filter(|(placeholder, _)| template.contains(placeholder)).collect();
    let replace = |text: String, (placeholder, value): &(&str, &str)| text.replace(placeholder, value);
    (!used.is_empty()).then(|| (used.iter().fold(template.to_owned(), replace), used))
}

fn replace(settings: &Settings, inputs: &TemplateInputs, config_map: &ConfigMapSettings, template: &str) -> String {
    let local: Vec<String> = settings.local.iter().map(ToString::to_string).collect();
    let first = settings.local.first().map_or(String::new(), |ip| match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    });
    let cluster_dns = inputs.cluster_dns.map_or(UNREACHABLE.to_owned(), |ip| ip.to_string());
    let upstreams: Vec<String> =
        config_map.upstreams.iter().map(|address| NameServer::Address(*address).to_string()).collect();
    let upstreams = if upstreams.is_empty() { RESOLV_CONF.to_owned() } else { upstreams.join(" ") };
    template
        // A health endpoint has a single address, so before a port only the link-local one is inserted.
        .replace(&format!("{LOCAL}:"), &format!("{first}:"))
        .replace(LOCAL, &local.join(" "))
        .replace(SERVER, "")
        .replace(DOMAIN, &settings.domain)
        .replace(CLUSTER_DNS, &cluster_dns)
        .replace(UPSTREAMS, &upstreams)
}

/// Removes `force_tcp` from blocks that forward to the ConfigMap's name servers, because these may not support TCP.
fn without_force_tcp(template: &str) -> String {
    let mut is_within = false;
    let kept = template.lines().filter(|line| {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("forward") => is_within = words.any(|word| word == UPSTREAMS) && line.trim_end().ends_with('{'),
            Some("}") => is_within = false,
            Some("force_tcp") if is_within => return false,
            _ => {}
        }
        true
    });
    kept.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
