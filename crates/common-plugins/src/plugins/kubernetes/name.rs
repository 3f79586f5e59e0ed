//! Parser for names in a zone of the cluster (Kubernetes DNS specification 1.1.0, §2).

use crate::shared::service_records::labels_of;

/// Maximum number of labels before the zone: port, protocol, service, namespace, kind. A topology zone may add more.
const LABELS_MAX: usize = 5;

/// Object that a name refers to. All labels are lowercase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target<'a> {
    /// Zone apex.
    Apex,
    /// `svc`, `pod` or `dns`: an empty non-terminal.
    Branch,
    /// `dns-version`: version of the specification.
    Version,
    /// `ns.dns`: name servers.
    NameServer,
    /// `NAMESPACE.svc`.
    Namespace(&'a [u8]),
    /// Service or part of it.
    Service { namespace: &'a [u8], service: &'a [u8], part: Part<'a> },
    /// `NAMESPACE.pod`.
    PodNamespace(&'a [u8]),
    /// `ADDRESS.NAMESPACE.pod`.
    Pod { namespace: &'a [u8], pod: &'a [u8] },
    /// Name of a form that cannot exist.
    Nothing,
}

/// Part of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Service itself.
    Whole,
    /// Everything the Service consists of, requested with `*`.
    Each,
    /// Endpoint.
    Endpoint(&'a [u8]),
    /// Endpoint in one of the clusters that export the Service.
    EndpointIn(&'a [u8], &'a [u8]),
    /// Endpoints in a topology zone, whose name is given as labels in wire format. If it has no endpoints, a `pinned`
    /// name has no records, and any other one has all endpoints.
    Zone { zone: &'a [u8], pinned: bool },
    /// `_PROTOCOL`: parent of the Service's ports.
    Protocol(&'a [u8]),
    /// `_PORT._PROTOCOL`. The underscores are optional. An empty string matches any.
    Port(&'a [u8], &'a [u8]),
}

/// Forms of names in a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Grammar {
    /// Names of the specification.
    #[default]
    Cluster,
    /// Names of the specification and of topology zones: `TOPOLOGY-ZONE.pin._zone.SERVICE.NAMESPACE.svc`, or `prefer`.
    Zonal,
    /// Names of ServiceImports, with endpoints called `ENDPOINT.CLUSTER`.
    Clusterset,
    /// Names of kube-dns: ports require their underscores, and `*` matches any Service, namespace or endpoint.
    KubeDns,
}

impl<'a> Target<'a> {
    /// Parses the labels before the zone, in wire format without the root label.
    pub(super) fn read(prefix: &'a [u8], grammar: Grammar) -> Target<'a> {
        let Some((rest, last)) = split_labels(prefix) else { return Target::Nothing };
        let mut labels: [&[u8]; LABELS_MAX] = [&[]; LABELS_MAX];
        let mut count = 0;
        for (slot, label) in labels.iter_mut().zip(labels_of(last)) {
            *slot = label;
            count += 1;
        }
        let labels = &labels[..count];
        match *labels {
            [how @ (b"pin" | b"prefer"), b"_zone", service, namespace, b"svc"]
                if grammar == Grammar::Zonal && !rest.is_empty() =>
            {
                Target::Service { namespace, service, part: Part::Zone { zone: rest, pinned: how == b"pin" } }
            }
            _ if rest.is_empty() => Target::from_labels(labels, grammar),
            _ => Target::Nothing,
        }
    }

    fn from_labels(labels: &[&'a [u8]], grammar: Grammar) -> Target<'a> {
        match *labels {
            // In kube-dns `*` in this place only matches `svc`, because it synthesises pod names.
            [ref before @ .., namespace, b"*"] if grammar == Grammar::KubeDns => match *before {
                [] => Target::Namespace(namespace),
                [ref before @ .., service] => Target::of_service(before, service, namespace, grammar),
            },
            [] => Target::Apex,
            [b"svc" | b"pod" | b"dns"] => Target::Branch,
            [b"dns-version"] => Target::Version,
            [b"ns", b"dns"] => Target::NameServer,
            [namespace, b"svc"] => Target::Namespace(namespace),
            [ref before @ .., service, namespace, b"svc"] => Target::of_service(before, service, namespace, grammar),
            [namespace, b"pod"] => Target::PodNamespace(namespace),
            // CoreDNS ignores up to two more labels, so clients may depend on that.
            [pod, namespace, b"pod"] => Target::Pod { namespace, pod },
            [_, pod, namespace, b"pod"] | [_, _, pod, namespace, b"pod"] if grammar != Grammar::KubeDns => {
                Target::Pod { namespace, pod }
            }
            _ => Target::Nothing,
        }
    }

    fn of_service(before: &[&'a [u8]], service: &'a [u8], namespace: &'a [u8], grammar: Grammar) -> Target<'a> {
        match Part::read(before, grammar) {
            Some(part) => Target::Service { namespace, service, part },
            None => Target::Nothing,
        }
    }
}

impl<'a> Part<'a> {
    /// Requested ports. Empty strings match any.
    pub(super) const fn ports(self) -> (&'a [u8], &'a [u8]) {
        if let Part::Port(name, protocol) = self { (name, protocol) } else { (b"", b"") }
    }

    fn read(labels: &[&'a [u8]], grammar: Grammar) -> Option<Part<'a>> {
        let bare = |label: &'a [u8]| label.strip_prefix(b"_").unwrap_or(label);
        match *labels {
            [] => Some(Part::Whole),
            [label @ [b'_', ..]] => Some(Part::Protocol(bare(label))),
            [_] if grammar == Grammar::Clusterset => None,
            [b"*"] if grammar == Grammar::KubeDns => Some(Part::Each),
            [endpoint, cluster]
                if grammar == Grammar::Clusterset && !endpoint.starts_with(b"_") && !cluster.starts_with(b"_") =>
            {
                Some(Part::EndpointIn(endpoint, cluster))
            }
            [label] => Some(Part::Endpoint(label)),
            [[b'_', port @ ..], [b'_', protocol @ ..]] if grammar == Grammar::KubeDns => {
                (!port.is_empty() && !protocol.is_empty()).then_some(Part::Port(port, protocol))
            }
            _ if grammar == Grammar::KubeDns => None,
            [port, protocol] => Some(Part::Port(bare(port), bare(protocol))),
            _ => None,
        }
    }
}

/// Returns a label as text, with control characters as in zone files (RFC 1035 §5.1).
pub(super) fn text(label: &[u8]) -> String {
    let text = String::from_utf8_lossy(label);
    if !text.bytes().any(|byte| byte.is_ascii_control()) {
        return text.into_owned();
    }
    let escaped = |letter: char| match letter {
        _ if letter.is_ascii_control() => format!("\\{:03}", u32::from(letter)),
        _ => letter.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Splits labels in wire format before the last [`LABELS_MAX`]. `None` if they are malformed.
fn split_labels(labels: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = labels_of(labels).count();
    let rest: usize = labels_of(labels).take(count.saturating_sub(LABELS_MAX)).map(|label| label.len() + 1).sum();
    labels.split_at_checked(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Name;

    fn read<R>(text: &str, grammar: Grammar, check: impl FnOnce(Target<'_>) -> R) -> R {
        let name = Name::from_text(text).unwrap();
        check(Target::read(&name.as_bytes()[..name.as_bytes().len() - 1], grammar))
    }

    #[test]
    fn parses_names() {
        let web = |part| Target::Service { namespace: b"prod", service: b"web", part };
        let cases = [
            (".", Target::Apex),
            ("svc.", Target::Branch),
            ("pod.", Target::Branch),
            ("dns.", Target::Branch),
            ("ns.dns.", Target::NameServer),
            ("x.ns.dns.", Target::Nothing),
            ("dns-version.", Target::Version),
            ("foo.", Target::Nothing),
            ("web.prod.foo.", Target::Nothing),
            ("prod.svc.", Target::Namespace(b"prod")),
            ("web.prod.svc.", web(Part::Whole)),
            ("w0.web.prod.svc.", web(Part::Endpoint(b"w0"))),
            ("_tcp.web.prod.svc.", web(Part::Protocol(b"tcp"))),
            ("_http._tcp.web.prod.svc.", web(Part::Port(b"http", b"tcp"))),
            ("http.tcp.web.prod.svc.", web(Part::Port(b"http", b"tcp"))),
            ("_._.web.prod.svc.", web(Part::Port(b"", b""))),
            ("a._http._tcp.web.prod.svc.", Target::Nothing),
            ("svc.svc.svc.", Target::Service { namespace: b"svc", service: b"svc", part: Part::Whole }),
            ("prod.pod.", Target::PodNamespace(b"prod")),
            ("1-2-3-4.prod.pod.", Target::Pod { namespace: b"prod", pod: b"1-2-3-4" }),
            ("a.b.1-2-3-4.prod.pod.", Target::Pod { namespace: b"prod", pod: b"1-2-3-4" }),
            ("a.b.c.1-2-3-4.prod.pod.", Target::Nothing),
        ];
        for (text, target) in cases {
            read(text, Grammar::Cluster, |read| assert_eq!(read, target, "{text}"));
        }
    }

    #[test]
    fn parses_names_with_topology_zones_and_clusters() {
        let web = |part| Target::Service { namespace: b"prod", service: b"web", part };
        let zone = |zone, pinned| web(Part::Zone { zone, pinned });
        for (text, grammar, target) in [
            ("eu-1.pin._zone.web.prod.svc.", Grammar::Zonal, zone(b"\x04eu-1", true)),
            ("a.b.c.prefer._zone.web.prod.svc.", Grammar::Zonal, zone(b"\x01a\x01b\x01c", false)),
            ("eu-1.near._zone.web.prod.svc.", Grammar::Zonal, Target::Nothing),
            ("eu-1.pin._zone.web.prod.pod.", Grammar::Zonal, Target::Nothing),
            ("pin._zone.web.prod.svc.", Grammar::Zonal, web(Part::Port(b"pin", b"zone"))),
            ("eu-1.pin._zone.web.prod.svc.", Grammar::Cluster, Target::Nothing),
            ("db-0.east.web.prod.svc.", Grammar::Clusterset, web(Part::EndpointIn(b"db-0", b"east"))),
            ("_http._tcp.web.prod.svc.", Grammar::Clusterset, web(Part::Port(b"http", b"tcp"))),
            ("db-0.web.prod.svc.", Grammar::Clusterset, Target::Nothing),
            ("web.prod.*.", Grammar::KubeDns, web(Part::Whole)),
            ("_http._tcp.web.prod.*.", Grammar::KubeDns, web(Part::Port(b"http", b"tcp"))),
            ("*.", Grammar::KubeDns, Target::Nothing),
            ("web.prod.*.", Grammar::Cluster, Target::Nothing),
        ] {
            read(text, grammar, |read| assert_eq!(read, target, "{text}"));
        }
    }
}
