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

const UPSTREAMS: &str = "__PILLAR__UPSTREAM__SERVERS__";

fn replace(settings: &Settings, inputs: &TemplateInputs, config_map: &ConfigMapSettings, template: &str) -> String {
    const LOCAL: &str = "__PILLAR__LOCAL__DNS__";
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
        .replace("__PILLAR__DNS__SERVER__", "")
        .replace("__PILLAR__DNS__DOMAIN__", &settings.domain)
        .replace("__PILLAR__CLUSTER__DNS__", &cluster_dns)
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
