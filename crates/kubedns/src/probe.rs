//! `--probe LABEL,SERVER,NAME[,SECONDS[,TYPE]]` of the sidecar.

use core::net::{Ipv4Addr, SocketAddr};

use crate::name_server::read_address;
use crate::names::is_loose_domain;

/// Seconds between two questions, without anything said.
const SECONDS: u32 = 5;
/// The types that may be asked for.
const TYPES: [&str; 4] = ["ANY", "A", "AAAA", "SRV"];

/// A question that is asked again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// How it is called: letters, digits and `_`.
    pub label: String,
    /// Who is asked.
    pub server: SocketAddr,
    /// For which name.
    pub name: String,
    /// How often.
    pub seconds: u32,
    /// For which type; ANY if none was given.
    pub qtype: &'static str,
}

impl Probe {
    /// Reads a probe.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(text: &str) -> Result<Probe, String> {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let [label, server, name, rest @ ..] = fields.as_slice() else {
            return Err(format!("'{text}' is not LABEL,SERVER,NAME[,SECONDS[,TYPE]]"));
        };
        if rest.len() > 2 {
            return Err(format!("'{text}' has more than five parts"));
        }
        if label.is_empty() || !label.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'_') {
            return Err(format!("the label '{label}' is not of letters, digits and _"));
        }
        let server = server_of(server).ok_or_else(|| format!("'{server}' is no address"))?;
        if !is_loose_domain(name) {
            return Err(format!("'{name}' is no domain"));
        }
        let seconds = rest.first().map_or(Ok(SECONDS), |text| match text.parse() {
            Ok(seconds) if seconds > 0 => Ok(seconds),
            _ => Err(format!("'{text}' is no number of seconds")),
        })?;
        let qtype = rest.get(1).map_or(Ok("ANY"), |text| {
            TYPES
                .into_iter()
                .find(|known| known == text)
                .ok_or_else(|| format!("'{text}' is none of {}", TYPES.join(", ")))
        })?;
        let name = name.trim_end_matches('.').to_owned();
        Ok(Probe { label: (*label).to_owned(), server, name, seconds, qtype })
    }
}

/// An address with or without a port. As in Go, an IPv4 address may have brackets too.
fn server_of(text: &str) -> Option<SocketAddr> {
    let in_brackets = text.strip_prefix('[').and_then(|text| text.split_once(']'));
    let v4 = in_brackets.and_then(|(ip, port)| Some((ip.parse::<Ipv4Addr>().ok()?, port.strip_prefix(':')?)));
    match v4 {
        Some((ip, port)) => Some(SocketAddr::from((ip, port.parse().ok()?))),
        None => read_address(text, ':'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_read_as_the_sidecar_did() {
        for (text, read) in [
            ("kubedns,127.0.0.1:10053,kubernetes.default.svc.cluster.local,5,SRV", Some((5, "SRV"))),
            ("dnsmasq,127.0.0.1,kubernetes.default.svc.cluster.local.,10", Some((10, "ANY"))),
            ("a_1,[::1]:53,example.org", Some((5, "ANY"))),
            ("a,[127.0.0.1]:10053,example.org,5,A", Some((5, "A"))),
            ("a,::1,example.org,5,ANY", Some((5, "ANY"))),
            ("a,::1,example.org,5,A", Some((5, "A"))),
            ("a,127.0.0.1", None),
            ("a-b,127.0.0.1,x", None),
            (",127.0.0.1,x", None),
            ("a,localhost,x", None),
            ("a,127.0.0.1,", None),
            ("a,127.0.0.1,x,0", None),
            ("a,127.0.0.1,x,many", None),
            ("a,127.0.0.1,x,5,TXT", None),
            ("a,127.0.0.1,x,5,A,more", None),
        ] {
            let got = Probe::read(text);
            assert_eq!(got.clone().ok().map(|probe| (probe.seconds, probe.qtype)), read, "{text}: {got:?}");
        }
    }
}
