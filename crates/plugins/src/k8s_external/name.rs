//! What a name below an external zone stands for.

use crate::service_records::{PortNames, labels_of};

/// The label of the one name server.
pub(super) const NAME_SERVER: &[u8] = b"ns1";
/// Labels before the zone in the longest name: port, protocol, service, namespace.
const LABELS_MAX: usize = 4;

/// What a name stands for; all labels are in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target<'a> {
    /// The zone itself.
    Apex,
    /// The label below which the name server is.
    Branch,
    /// The name server.
    NameServer,
    /// A namespace.
    Namespace(&'a [u8]),
    /// A service, or a part of it.
    Service { namespace: &'a [u8], service: &'a [u8], part: Part<'a> },
    /// No name of this form exists.
    Nothing,
}

/// Which part of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// The service.
    Whole,
    /// An endpoint; the service itself if that has an external address.
    Endpoint(&'a [u8]),
    /// Its ports of this name and protocol.
    Port(PortNames<'a>),
}

impl<'a> Target<'a> {
    /// Reads the labels before the zone, in wire form without a root label; `apex` is that of the name server.
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
    /// The ports that are meant.
    pub(super) const fn ports(self) -> PortNames<'a> {
        if let Part::Port(ports) = self { ports } else { (b"", b"") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Name;

    #[test]
    fn names_and_what_they_stand_for() {
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
            assert_eq!(Target::read(&name.octets()[..name.octets().len() - 1], b"dns"), target, "{text}");
        }
    }
}
