//! Servers under measurement, with their Corefile, certificate and upstream.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use super::super::Corefile;
use super::super::certificates::{AUTHORITY, CERTIFICATE, Certificates, KEY, SERVER_NAME};
use super::super::processes::{LOAD_CPU, Pinned, SERVER_CPU};
use super::client::Transport;
use super::work::Work;
use xtask::{Failed, server};

/// Listeners for idle connections. CoreDNS limits connections for each listener.
const IDLE_LISTENERS: usize = 4;
/// Schemes of keys in a Corefile beside `dns`.
const SCHEMES: [&str; 4] = ["tls", "https", "https3", "quic"];

/// Running server.
pub(crate) struct Site {
    pub(crate) server: Pinned,
    /// Schemes and ports of the listeners.
    listeners: Vec<(&'static str, u16)>,
    _corefile: Corefile,
    /// Server to which this one forwards.
    _upstream: Option<Box<Site>>,
}

impl Site {
    /// Starts a program for some work. If it needs an upstream, that is Portolan.
    pub(crate) fn start(
        work: &Work,
        program: &Path,
        portolan: &Path,
        certificates: &Certificates,
    ) -> Result<Site, Failed> {
        let block = local_block(certificates, program == portolan);
        match work {
            Work::Forward(transport) => Site::start_forwarding(*transport, program, portolan, certificates),
            Work::Idle(transport) => {
                let schemes = [scheme_of(*transport); IDLE_LISTENERS];
                Site::serve(SERVER_CPU, program, &schemes, &block)
            }
            _ => Site::serve(SERVER_CPU, program, &SCHEMES, &block),
        }
    }

    fn start_forwarding(
        transport: Transport,
        program: &Path,
        portolan: &Path,
        certificates: &Certificates,
    ) -> Result<Site, Failed> {
        let scheme = scheme_of(transport);
        let upstream = Site::serve(LOAD_CPU, portolan, &[scheme], &upstream_block(certificates))?;
        let port = upstream.ports_of(transport)[0];
        let block = format!(
            "forward . {scheme}://127.0.0.1:{port} {{\ntls {}\ntls_servername {SERVER_NAME}\n}}\n",
            certificates.path(AUTHORITY).display()
        );
        let site = Site::serve(SERVER_CPU, program, &[], &block)?;
        Ok(Site { _upstream: Some(Box::new(upstream)), ..site })
    }

    /// Starts a program with UDP, TCP and listeners of these schemes.
    fn serve(cpu: &str, program: &Path, schemes: &[&'static str], block: &str) -> Result<Site, Failed> {
        let mut listeners = Vec::new();
        for scheme in schemes {
            listeners.push((*scheme, server::free_port()?));
        }
        let corefile = Corefile::write(&corefile(&listeners, block), "", 0)?;
        listeners.push(("dns", corefile.port));
        let server = Pinned::serve_on(cpu, program, &corefile, Stdio::null())?;
        Ok(Site { server, listeners, _corefile: corefile, _upstream: None })
    }

    /// Returns the ports for a transport.
    pub(crate) fn ports_of(&self, transport: Transport) -> Vec<u16> {
        let scheme = scheme_of(transport);
        self.listeners.iter().filter(|(other, _)| *other == scheme).map(|(_, port)| *port).collect()
    }
}

fn scheme_of(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "dns",
        Transport::Tls => "tls",
        Transport::Http1 | Transport::Http2 => "https",
        Transport::Quic => "quic",
        Transport::Http3 => "https3",
    }
}

fn corefile(listeners: &[(&str, u16)], block: &str) -> String {
    let keys = listeners.iter().fold("dns://.:{PORT}".to_owned(), |mut keys, (scheme, port)| {
        let _ = write!(keys, " {scheme}://.:{port}");
        keys
    });
    format!("{keys} {{\nbind 127.0.0.1\n{block}}}\n")
}

/// Returns the content of a server block that answers from memory. All connections come from one address, so the limit
/// that Portolan has for their rate is off.
fn local_block(certificates: &Certificates, is_portolan: bool) -> String {
    let tls = tls_line(certificates);
    let tls = if is_portolan { format!("{} {{\nconnection_rate 0\n}}\n", tls.trim_end()) } else { tls };
    format!("{tls}timeouts {{\nidle 1h\n}}\nhosts /dev/null {{\n192.0.2.1 www.example.org\n}}\n")
}

/// Returns the content of a server block that answers for every name.
fn upstream_block(certificates: &Certificates) -> String {
    let tls = tls_line(certificates);
    format!("{tls}template IN A . {{\nanswer \"{{{{ .Name }}}} 60 IN A 192.0.2.1\"\n}}\n")
}

fn tls_line(certificates: &Certificates) -> String {
    format!("tls {} {}\n", certificates.path(CERTIFICATE).display(), certificates.path(KEY).display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_block_has_all_listeners() {
        let text = corefile(&[("tls", 853), ("tls", 854), ("quic", 853)], "whoami\n");
        let expected = "dns://.:{PORT} tls://.:853 tls://.:854 quic://.:853 {\nbind 127.0.0.1\nwhoami\n}\n";
        assert_eq!(text, expected);
    }
}
