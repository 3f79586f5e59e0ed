//! Parser for names in an external zone.

use common_plugins::shared::service_records::{PortNames, labels_of};

/// Label of the only name server.
pub(super) const NAME_SERVER: &[u8] = b"ns1";
/// Maximum number of labels before the zone: port, protocol, service, namespace.
const LABELS_MAX: usize = 4;

/// Object that a name refers to. All labels are lowercase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target<'a> {
    /// Zone apex.
    Apex,
    /// Label above the name server.
    Branch,
    /// Name server.
    NameServer,
    /// Namespace.
    Namespace(&'a [u8]),
    /// Service or part of it.
    Service { namespace: &'a [u8], service: &'a [u8], part: Part<'a> },
    /// Name of a form that cannot exist.
    Nothing,
}

/// Part of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Service itself.
    Whole,
    /// Endpoint; the Service itself if it has an external address.
    Endpoint(&'a [u8]),
    /// Ports with this name and protocol.
    Port(PortNames<'a>),
}

impl<'a> Target<'a> {
    /// Parses the labels before the zone, in wire format without the root label. `apex` is the label above the name
    /// server.
    pub(super) fn read(prefix: &'a [u8], apex: &[u8]) -> Target<'a> {
        let mut labels: [&[u8]; LABELS_MAX] = [&[]; LABELS_MAX];
        let count = labels_of(prefix).count();
        if count > LABELS_MAX {
            return Target::Nothing;
        }
        labels.iter_mut().zip(labels_of(prefix)).for_each(|(slot, label)| *slot = label);
        let bare = |label: &'a [u8]| label.strip_prefix(b"_").unwrap_or(label);
        let service = |namespace, service, part| Target::Service { namespace, service, part };
        match labels[..count] {
            [] => Target::Apex,
            [last] if last == apex => Target::Branch,
            [NAME_SERVER, last] if last == apex => Target::NameServer,
            [.., last] if last == apex => Target::Nothing,
            [namespace] => Target::Namespace(namespace),
            [name, namespace] => service(namespace, name, Part::Whole),
            [endpoint, name, namespace] => service(namespace, name, Part::Endpoint(bare(endpoint))),
            [port, protocol, name, namespace] => service(namespace, name, Part::Port((bare(port), bare(protocol)))),
            _ => Target::Nothing,
        }
    }
}

impl<'a> Part<'a> {
    /// Requested ports. Empty if any.
    pub(super) const fn ports(self) -> PortNames<'a> {
        if let Part::Port(ports) = self { ports } else { (b"", b"") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Name;

    #[test]
    fn parses_names() {
        let lb = |part| Target::Service { namespace: b"prod", service: b"lb", part };
        for (text, target) in [
            (".", Target::Apex),
            ("dns.", Target::Branch),
            ("ns1.dns.", Target::NameServer),
            ("ns2.dns.", Target::Nothing),
            ("a.ns1.dns.", Target::Nothing),
            ("prod.", Target::Namespace(b"prod")),
            ("lb.prod.", lb(Part::Whole)),
            ("any.lb.prod.", lb(Part::Endpoint(b"any"))),
            ("_any.lb.prod.", lb(Part::Endpoint(b"any"))),
            ("_http._tcp.lb.prod.", lb(Part::Port((b"http", b"tcp")))),
            ("http.tcp.lb.prod.", lb(Part::Port((b"http", b"tcp")))),
            ("a._http._tcp.lb.prod.", Target::Nothing),
        ] {
            let name = Name::from_text(text).unwrap();
            assert_eq!(Target::read(&name.as_bytes()[..name.as_bytes().len() - 1], b"dns"), target, "{text}");
        }
    }
}
