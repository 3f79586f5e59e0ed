//! Host name lookup while a configuration is built, with the system's name servers or with those that the configuration
//! names.

use std::io;
use std::net::{IpAddr, SocketAddr};

use plugins::HostLookup;

/// Blocking lookup: a configuration cannot be built without the addresses of its upstreams.
pub struct Lookup;

impl HostLookup for Lookup {
    fn lookup(&self, host: &str, resolvers: &[SocketAddr]) -> io::Result<Vec<IpAddr>> {
        match resolvers {
            [] => stub_resolver::look_up_complete(host),
            _ => stub_resolver::look_up_at(host, resolvers),
        }
    }
}
