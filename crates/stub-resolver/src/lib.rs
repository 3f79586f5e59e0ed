//! Stub resolver: addresses of the host names that this process connects to or listens on.
//!
//! The C library's `getaddrinfo` loads shared objects at run time (nsswitch.conf(5)), so a static binary cannot use
//! it. This crate reads `/etc/hosts` and `/etc/resolv.conf` and asks the name servers, as `getaddrinfo` does with the
//! usual `hosts: files dns`. Both files may be missing. They are read for each lookup, so a change takes effect at
//! once.
//!
//! Lookups are rare (startup, a new connection to an API server), so they block, and nothing is cached.
//!
//! ```
//! let addresses = stub_resolver::resolve("localhost:9153")?;
//! assert!(addresses.contains(&([127, 0, 0, 1], 9153).into()));
//! # std::io::Result::Ok(())
//! ```
#![allow(clippy::disallowed_methods, reason = "this crate is at the edge: it reads files and opens sockets")]

pub mod exchange;
mod hosts;
mod order;
mod query;
mod resolv_conf;

use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, SocketAddr};

use resolv_conf::ResolvConf;
use wire::Name;

/// File with host names and their addresses, hosts(5).
const HOSTS: &str = "/etc/hosts";
/// File with name servers and search list, resolv.conf(5).
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Resolves `HOST:PORT` like [`std::net::ToSocketAddrs`]. IPv6 addresses are written in brackets. Blocks.
///
/// # Errors
/// Another form, a failed lookup, or a host without addresses.
pub fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let (host, port) = split(address)?;
    Ok(look_up(host)?.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

/// Resolves `HOST:PORT` on a blocking thread of tokio's runtime; see [`resolve`].
///
/// # Errors
/// Fails like [`resolve`].
pub async fn resolve_async(address: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let (host, port) = split(address)?;
    Ok(look_up_async(host).await?.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

fn split(address: &str) -> io::Result<(&str, u16)> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let form = || io::Error::new(io::ErrorKind::InvalidInput, format!("`{address}` is not of the form HOST:PORT"));
    parts.ok_or_else(form)
}

/// Looks up a host on a blocking thread of tokio's runtime; see [`look_up`].
///
/// # Errors
/// Fails like [`look_up`].
pub async fn look_up_async(host: &str) -> io::Result<Vec<IpAddr>> {
    if let Ok(ip) = host.parse() {
        return Ok(vec![ip]);
    }
    let host = host.to_owned();
    let lookup = tokio::task::spawn_blocking(move || look_up(&host));
    lookup.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Looks up a host with the configuration of the system. Blocks. The addresses come in the order in which a client
/// should try them (RFC 6724).
///
/// # Errors
/// A failed lookup, or a host without addresses.
pub fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    if let Ok(ip) = host.parse() {
        return Ok(vec![ip]);
    }
    let mut found = hosts::addresses(&std::fs::read(HOSTS).unwrap_or_default(), host);
    if found.is_empty() {
        found = from_servers(host, &ResolvConf::parse(&std::fs::read(RESOLV_CONF).unwrap_or_default()))?;
    }
    order::sort(&mut found);
    Ok(found)
}

/// Looks up a host like [`look_up`], but without a search list: the name is complete, also without a final dot. Blocks.
///
/// # Errors
/// Fails like [`look_up`].
pub fn look_up_complete(host: &str) -> io::Result<Vec<IpAddr>> {
    look_up(&complete(host))
}

/// Returns a host name with a final dot, so that no search domain is appended. An IP address stays as it is.
fn complete(host: &str) -> Cow<'_, str> {
    let is_complete = host.ends_with('.') || host.parse::<IpAddr>().is_ok();
    if is_complete { Cow::Borrowed(host) } else { Cow::Owned(format!("{host}.")) }
}

/// Looks up a host at these name servers, without hosts(5) and without a search list. Blocks.
///
/// # Errors
/// A failed lookup, or a host without addresses.
pub fn look_up_at(host: &str, servers: &[SocketAddr]) -> io::Result<Vec<IpAddr>> {
    from_servers(host, &ResolvConf::with_servers(servers))
}

/// Asks for the names that a host name may mean, until one of them exists.
fn from_servers(host: &str, conf: &ResolvConf) -> io::Result<Vec<IpAddr>> {
    let mut outcome = Err(no_such_host(host));
    for name in conf.candidates(host) {
        match query::addresses(&name, conf) {
            Ok(found) if found.is_empty() => {}
            Ok(found) => return Ok(found),
            // A server that does not answer for one name may know the next: report the failure only if none exists.
            Err(error) => outcome = Err(error),
        }
    }
    outcome
}

fn no_such_host(host: &str) -> io::Error {
    let what = if Name::from_text(host).is_ok() { "no such host" } else { "not a valid host name" };
    io::Error::new(io::ErrorKind::NotFound, format!("lookup {host}: {what}"))
}

#[cfg(test)]
mod tests;
