//! Server with one address and its pages, together with a client.

use std::net::SocketAddr;

use wire::Type;

use super::{Client, Folder, Server, page, wait_until};

/// Server for one Corefile, and a client.
pub(crate) struct Served {
    pub(crate) server: Server,
    /// Address for queries.
    pub(crate) address: SocketAddr,
    pub(crate) client: Client,
    /// Address of the pages for metrics and readiness.
    pub(crate) pages: SocketAddr,
    pub(crate) folder: Folder,
}

impl Served {
    /// Serves a Corefile from a new folder of this name. It must have one address for queries, and its pages on
    /// `localhost:0`.
    pub(crate) fn start(name: &str, corefile: &str) -> Served {
        Served::start_in(Folder::new(name), corefile)
    }

    /// Serves a Corefile from an existing folder.
    pub(crate) fn start_in(folder: Folder, corefile: &str) -> Served {
        let mut server = Server::start(&folder.write("Corefile", corefile));
        let address = server.address_of("dns://");
        let pages = server.address_of("localhost:0");
        Served { server, address, client: Client::new(address), pages, folder }
    }

    /// Replaces the Corefile. The server applies it a moment later.
    pub(crate) fn reload(&self, corefile: &str) {
        self.folder.write("Corefile", corefile);
        self.server.signal("USR1");
    }

    /// Returns the IPv4 addresses of a name; empty if there is no answer.
    pub(crate) fn addresses(&mut self, name: &str) -> Vec<String> {
        let answer = self.client.ask(name, Type::A);
        answer.map_or(Vec::new(), |answer| answer.addresses().iter().map(ToString::to_string).collect())
    }

    pub(crate) fn wait_for_addresses(&mut self, name: &str, expected: &[&str]) {
        wait_until(&format!("{name} has {expected:?}"), || self.addresses(name) == expected);
    }

    pub(crate) fn is_ready(&self) -> bool {
        page(self.pages, "/ready").is_some_and(|(status, _)| status == 200)
    }

    pub(crate) fn wait_until_ready(&self) {
        wait_until("it is ready", || self.is_ready());
    }

    /// Returns the metrics page.
    pub(crate) fn metrics(&self) -> String {
        page(self.pages, "/metrics").expect("metrics").1
    }
}
