//! Interfaces and their addresses as rtnetlink messages.

use core::net::IpAddr;

use crate::net::netlink::MessageBuffer;
use crate::net::uapi::{
    AF_INET, AF_INET6, IFA_ADDRESS, IFA_CACHEINFO, IFA_F_NODAD, IFA_LOCAL, IFF_UP, IFLA_AF_SPEC, IFLA_IFNAME,
    IFLA_INET6_ADDR_GEN_MODE, IFLA_INFO_KIND, IFLA_LINKINFO, IN6_ADDR_GEN_MODE_NONE, INFINITY_LIFE_TIME, NLM_F_ACK,
    NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, RTM_DELLINK, RTM_GETLINK, RTM_NEWADDR, RTM_NEWLINK,
};

/// Netlink protocol (`NETLINK_ROUTE`).
pub const PROTOCOL: i32 = libc::NETLINK_ROUTE;

fn request(kind: u16, flags: u16, write: impl FnOnce(&mut crate::net::netlink::PayloadWriter<'_>)) -> MessageBuffer {
    let mut messages = MessageBuffer::default();
    messages.push(kind, NLM_F_REQUEST | flags, 1, write);
    messages
}

/// Builds a `struct ifinfomsg`: interface index (0 if the message has a name instead), flags, and the mask of the flags
/// to change.
fn ifinfomsg(index: u32, flags: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (offset, value) in [(4, index), (8, flags), (12, flags)] {
        if let Some(field) = bytes.get_mut(offset..offset + 4) {
            field.copy_from_slice(&value.to_ne_bytes());
        }
    }
    bytes
}

/// Creates an interface.
#[must_use]
pub fn create(name: &str, kind: &str) -> MessageBuffer {
    request(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, |body| {
        body.bytes(&ifinfomsg(0, 0)).string(IFLA_IFNAME, name).nested(IFLA_LINKINFO, |body| {
            body.string(IFLA_INFO_KIND, kind);
        });
    })
}

/// Removes an interface.
#[must_use]
pub fn delete(name: &str) -> MessageBuffer {
    request(RTM_DELLINK, NLM_F_ACK, |body| {
        body.bytes(&ifinfomsg(0, 0)).string(IFLA_IFNAME, name);
    })
}

/// Requests information on an interface. [`index`] reads the response.
#[must_use]
pub fn get(name: &str) -> MessageBuffer {
    request(RTM_GETLINK, 0, |body| {
        body.bytes(&ifinfomsg(0, 0)).string(IFLA_IFNAME, name);
    })
}

/// Returns the interface index in a message.
#[must_use]
pub fn index(message: &crate::net::netlink::Message<'_>) -> Option<u32> {
    let bytes = message.payload.get(4..8)?.try_into().ok()?;
    (message.message_type == RTM_NEWLINK).then(|| u32::from_ne_bytes(bytes))
}

/// Disables the automatic IPv6 link-local address of an interface. It would only send packets that nothing receives.
#[must_use]
pub fn disable_ipv6_link_local(index: u32) -> MessageBuffer {
    request(RTM_NEWLINK, NLM_F_ACK, |body| {
        body.bytes(&ifinfomsg(index, 0)).nested(IFLA_AF_SPEC, |body| {
            body.nested(u16::from(AF_INET6), |body| {
                body.attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE]);
            });
        });
    })
}

/// Sets an interface up.
#[must_use]
pub fn set_up(index: u32) -> MessageBuffer {
    request(RTM_NEWLINK, NLM_F_ACK, |body| {
        body.bytes(&ifinfomsg(index, IFF_UP));
    })
}

/// Adds an address to an interface for a number of seconds, or without limit. An existing address gets the new
/// lifetime.
#[must_use]
pub fn add_address(index: u32, ip: IpAddr, seconds: Option<u32>) -> MessageBuffer {
    // The address is unique to the node, so duplicate address detection would only delay the start.
    let (family, length, bytes) = match ip {
        IpAddr::V4(ip) => (AF_INET, 32, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AF_INET6, 128, ip.octets().to_vec()),
    };
    let lifetime = seconds.unwrap_or(INFINITY_LIFE_TIME).to_ne_bytes();
    request(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, |body| {
        body.bytes(&[family, length, IFA_F_NODAD, 0]).bytes(&index.to_ne_bytes());
        body.attribute(IFA_LOCAL, &bytes).attribute(IFA_ADDRESS, &bytes);
        // Preferred and valid lifetime are equal. The kernel ignores the two timestamps.
        body.attribute(IFA_CACHEINFO, &[lifetime, lifetime, [0; 4], [0; 4]].concat());
    })
}
