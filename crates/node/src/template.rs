//! The Corefile that a template of node-cache makes, with what was found on the node put in for its `__PILLAR__` names.

use core::net::IpAddr;

use kubedns::{Dynamic, Hosts, NameServer, stub_blocks};

use crate::settings::Settings;

/// Who is asked about names outside when the ConfigMap does not say.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Stands for the upstream Service as long as nobody knows its address: nothing listens there, so what is asked fails at
/// once, and what was wrong shows in the log.
const NOBODY: &str = "127.0.0.1:9";

/// What was found on the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The template.
    pub template: String,
    /// The address of the upstream Service, if it is known.
    pub cluster_dns: Option<IpAddr>,
}

/// Makes the Corefile: the template, and a block for each stub domain.
#[must_use]
pub fn corefile(settings: &Settings, found: &Found, dynamic: &Dynamic, hosts: Hosts<'_>) -> String {
    let template =
        if dynamic.upstreams.is_empty() { found.template.clone() } else { without_force_tcp(&found.template) };
    let mut text = replace(settings, found, dynamic, &template);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&stub_blocks(&settings.local, settings.port, dynamic, hosts));
    text
}

const UPSTREAMS: &str = "__PILLAR__UPSTREAM__SERVERS__";

fn replace(settings: &Settings, found: &Found, dynamic: &Dynamic, template: &str) -> String {
    const LOCAL: &str = "__PILLAR__LOCAL__DNS__";
    let local: Vec<String> = settings.local.iter().map(ToString::to_string).collect();
    let first = settings.local.first().map_or(String::new(), |ip| match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    });
    let cluster_dns = found.cluster_dns.map_or(NOBODY.to_owned(), |ip| ip.to_string());
    let upstreams: Vec<String> =
        dynamic.upstreams.iter().map(|address| NameServer::Address(*address).to_string()).collect();
    let upstreams = if upstreams.is_empty() { RESOLV_CONF.to_owned() } else { upstreams.join(" ") };
    template
        // A page has one address: what stands before a port is that of the link.
        .replace(&format!("{LOCAL}:"), &format!("{first}:"))
        .replace(LOCAL, &local.join(" "))
        .replace("__PILLAR__DNS__SERVER__", "")
        .replace("__PILLAR__DNS__DOMAIN__", &settings.domain)
        .replace("__PILLAR__CLUSTER__DNS__", &cluster_dns)
        .replace(UPSTREAMS, &upstreams)
}

/// Name servers of the ConfigMap need not speak TCP: what goes to them goes as the client asked.
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
