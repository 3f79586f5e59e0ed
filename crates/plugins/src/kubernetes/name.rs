//! What a name below a zone of the cluster stands for (Kubernetes DNS specification 1.1.0, §2).

/// Labels before the zone in the longest name that can exist: port, protocol, service, namespace, kind; pods may have
/// one more.
const LABELS_MAX: usize = 5;

/// What a name stands for; all labels are in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target<'a> {
    /// The zone itself.
    Apex,
    /// `svc`, `pod` or `dns`: names exist below, nothing at it.
    Branch,
    /// `dns-version`: the version of the specification.
    Version,
    /// `ns.dns`: the name servers.
    NameServer,
    /// `NAMESPACE.svc`.
    Namespace(&'a [u8]),
    /// A service, or a part of it.
    Service { namespace: &'a [u8], service: &'a [u8], part: Part<'a> },
    /// `NAMESPACE.pod`.
    PodNamespace(&'a [u8]),
    /// `ADDRESS.NAMESPACE.pod`.
    Pod { namespace: &'a [u8], pod: &'a [u8] },
    /// No name of this form exists.
    Nothing,
}

/// Which part of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// The service.
    Whole,
    /// An endpoint.
    Endpoint(&'a [u8]),
    /// `_PROTOCOL`: the branch on which its ports are.
    Protocol(&'a [u8]),
    /// `_PORT._PROTOCOL`; the underscores may be missing, and an empty text means any.
    Port(&'a [u8], &'a [u8]),
}

impl<'a> Target<'a> {
    /// Reads the labels before the zone, in wire form without a root label.
    pub(super) fn read(prefix: &'a [u8]) -> Target<'a> {
        let mut labels: [&[u8]; LABELS_MAX] = [&[]; LABELS_MAX];
        let mut count = 0;
        let mut rest = prefix;
        while let Some((&length, after)) = rest.split_first() {
            let (Some((label, after)), Some(slot)) =
                (after.split_at_checked(usize::from(length)), labels.get_mut(count))
            else {
                return Target::Nothing;
            };
            *slot = label;
            count += 1;
            rest = after;
        }
        Target::from_labels(&labels[..count])
    }

    fn from_labels(labels: &[&'a [u8]]) -> Target<'a> {
        match *labels {
            [] => Target::Apex,
            [b"svc" | b"pod" | b"dns"] => Target::Branch,
            [b"dns-version"] => Target::Version,
            [b"ns", b"dns"] => Target::NameServer,
            [namespace, b"svc"] => Target::Namespace(namespace),
            [ref before @ .., service, namespace, b"svc"] => match Part::read(before) {
                Some(part) => Target::Service { namespace, service, part },
                None => Target::Nothing,
            },
            [namespace, b"pod"] => Target::PodNamespace(namespace),
            // CoreDNS answers the same for up to two labels more, and somebody may ask so.
            [pod, namespace, b"pod"] | [_, pod, namespace, b"pod"] | [_, _, pod, namespace, b"pod"] => {
                Target::Pod { namespace, pod }
            }
            _ => Target::Nothing,
        }
    }
}

impl<'a> Part<'a> {
    fn read(labels: &[&'a [u8]]) -> Option<Part<'a>> {
        let bare = |label: &'a [u8]| label.strip_prefix(b"_").unwrap_or(label);
        match *labels {
            [] => Some(Part::Whole),
            [label @ [b'_', ..]] => Some(Part::Protocol(bare(label))),
            [label] => Some(Part::Endpoint(label)),
            [port, protocol] => Some(Part::Port(bare(port), bare(protocol))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Name;

    fn read<R>(text: &str, check: impl FnOnce(Target<'_>) -> R) -> R {
        let name = Name::from_text(text).unwrap();
        check(Target::read(&name.octets()[..name.octets().len() - 1]))
    }

    #[test]
    fn names_and_what_they_stand_for() {
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
            read(text, |read| assert_eq!(read, target, "{text}"));
        }
    }
}
