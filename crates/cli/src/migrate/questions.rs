//! Queries for the comparison of two servers: from lines `NAME TYPE`, from a query log, or from the Services of a
//! cluster.

use serde_json::Value;
use wire::{Name, Type};

use crate::command_error::{QueryError, QueryLineError};

/// Address types to query for a Service.
const ADDRESSES: [Type; 2] = [Type::A, Type::AAAA];

/// Parses the Kubernetes objects in YAML or JSON, with lists flattened; `None` if the text is something else.
pub(super) fn documents(text: &str) -> Option<Vec<Value>> {
    let read: Vec<Value> = dynserde::yaml_documents(text).ok()?;
    let is_object = |object: &Value| object["kind"].is_string();
    if read.is_empty() || !read.iter().all(is_object) {
        return None;
    }
    let items = |object: Value| match object["items"].as_array() {
        Some(items) => items.clone(),
        None => vec![object],
    };
    Some(read.into_iter().flat_map(items).collect())
}

/// Parses queries: about the Services in manifests, from lines `NAME TYPE`, or from a query log of Portolan or CoreDNS.
/// Other lines of a log, such as the startup banner, are skipped.
///
/// # Errors
/// Fails at the first invalid line of a text that is not a log.
pub(super) fn read(text: &str, zone: &str) -> Result<Vec<(Name, Type)>, QueryError> {
    if let Some(objects) = documents(text) {
        return Ok(objects.iter().flat_map(|object| of_service(object, zone)).collect());
    }
    if text.lines().any(is_of_log) {
        return Ok(text.lines().filter_map(of_log).collect());
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|(at, line)| of_line(line).map_err(|error| QueryError { line: at + 1, error })).collect()
}

/// Returns true if a line comes from a log: it has a `[LEVEL]`, possibly after a time or a Pod's name, or is a logged
/// query.
fn is_of_log(line: &str) -> bool {
    line.starts_with('[') || line.contains(" [INFO] ") || of_log(line).is_some()
}

/// Returns the query in a log line of the common format: `… "TYPE CLASS NAME PROTOCOL …`.
fn of_log(line: &str) -> Option<(Name, Type)> {
    let (_, quoted) = line.split_once(" \"")?;
    let mut words = quoted.split(' ');
    let (qtype, name) = (words.next()?, words.nth(1)?);
    question(name, qtype).ok()
}

fn of_line(line: &str) -> Result<(Name, Type), QueryLineError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [name, qtype] => question(name, qtype),
        _ => Err(QueryLineError::Form(line.to_owned())),
    }
}

fn question(name: &str, qtype: &str) -> Result<(Name, Type), QueryLineError> {
    let read = Name::from_text(name).map_err(|error| QueryLineError::Name(name.to_owned(), error))?;
    let qtype = qtype.to_ascii_uppercase().parse().map_err(|_| QueryLineError::Type(qtype.to_owned()))?;
    Ok((read.into_lowercase(), qtype))
}

/// Returns the queries about a Service: for its addresses, its named ports, and the PTR record of its cluster IP.
fn of_service(object: &Value, zone: &str) -> Vec<(Name, Type)> {
    let (name, namespace) = (&object["metadata"]["name"], &object["metadata"]["namespace"]);
    let (Some("Service"), Some(name), Some(namespace)) = (object["kind"].as_str(), name.as_str(), namespace.as_str())
    else {
        return Vec::new();
    };
    let host = format!("{name}.{namespace}.svc.{}.", zone.trim_end_matches('.'));
    let mut questions: Vec<(String, Type)> = ADDRESSES.map(|qtype| (host.clone(), qtype)).to_vec();
    for port in object["spec"]["ports"].as_array().into_iter().flatten() {
        if let Some(port_name) = port["name"].as_str() {
            let protocol = port["protocol"].as_str().unwrap_or("TCP").to_ascii_lowercase();
            questions.push((format!("_{port_name}._{protocol}.{host}"), Type::SRV));
        }
    }
    if let Some(ip) = object["spec"]["clusterIP"].as_str().and_then(|text| text.parse().ok()) {
        questions.push((reverse_name(ip), Type::PTR));
    }
    questions
        .into_iter()
        .filter_map(|(name, qtype)| Some((Name::from_text(&name).ok()?.into_lowercase(), qtype)))
        .collect()
}

/// Returns the reverse-lookup name of an address (RFC 1035 §3.5, RFC 3596 §2.5).
fn reverse_name(ip: std::net::IpAddr) -> String {
    match ip {
        std::net::IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa.")
        }
        std::net::IpAddr::V6(ip) => {
            let nibbles = ip.octets().into_iter().rev().flat_map(|byte| [byte & 15, byte >> 4]);
            nibbles.map(|nibble| format!("{nibble:x}.")).collect::<String>() + "ip6.arpa."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> Result<Vec<String>, String> {
        let read = read(text, "cluster.local").map_err(|error| error.to_string())?;
        Ok(read.iter().map(|(name, qtype)| format!("{name} {qtype}")).collect())
    }

    #[test]
    fn parses_queries_from_lines_logs_and_services() {
        assert_eq!(
            read_all("# all\nWWW.example.org A\nx.test. srv\n"),
            Ok(vec!["www.example.org. A".into(), "x.test. SRV".into()])
        );
        let log = "[INFO] 10.0.0.1:4 - 5 \"A IN a.test. udp 30 false 512\" NOERROR qr 60 0.1s\n[INFO] Reloading\n";
        assert_eq!(read_all(log), Ok(vec!["a.test. A".to_owned()]));
        let banner = ".:53\n[INFO] plugin/reload: Running configuration SHA512 = 1b\nCoreDNS-1.11.1\n\
                      linux/amd64, go1.20.7, ae2bbc2\n";
        assert_eq!(read_all(&format!("{banner}{log}")), Ok(vec!["a.test. A".to_owned()]));
        let of_pod = "2026-01-02T03:04:05Z [INFO] plugin/ready: Still waiting on: \"kubernetes\"\nstrange\n";
        assert_eq!(read_all(of_pod), Ok(Vec::new()));
        let service = "kind: List\nitems:\n- kind: Service\n  metadata: {name: web, namespace: shop}\n  \
                       spec: {clusterIP: 10.0.0.1, ports: [{name: http, port: 80}, {port: 81}]}\n";
        let wanted = [
            "web.shop.svc.cluster.local. A",
            "web.shop.svc.cluster.local. AAAA",
            "_http._tcp.web.shop.svc.cluster.local. SRV",
            "1.0.0.10.in-addr.arpa. PTR",
        ];
        assert_eq!(read_all(service), Ok(wanted.map(str::to_owned).to_vec()));
        assert!(read_all("one two three\n").is_err());
        assert!(read_all("a.test WHAT\n").is_err());
    }
}
