//! Interfaces and their addresses as rtnetlink messages.

use core::net::IpAddr;

use crate::netlink::{ACK, CREATE, EXCLUSIVE, Messages, REPLACE, REQUEST};

/// Netlink protocol (`NETLINK_ROUTE`).
pub const PROTOCOL: i32 = 0;

const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;

const LINK_NAME: u16 = 3;
const LINK_INFO: u16 = 18;
const LINK_INFO_KIND: u16 = 1;
const LINK_FAMILIES: u16 = 26;
const LINK_V6_GENERATION: u16 = 8;

const ADDRESS: u16 = 1;
const ADDRESS_LOCAL: u16 = 2;
const ADDRESS_LIFETIME: u16 = 6;

const V4: u8 = 2;
const V6: u8 = 10;
const UP: u32 = 1;

fn request(kind: u16, flags: u16, write: impl FnOnce(&mut crate::netlink::Body<'_>)) -> Messages {
    let mut messages = Messages::default();
    messages.message(kind, REQUEST | flags, 1, write);
    messages
}

/// Builds a `struct ifinfomsg`: interface index (0 if the message has a name instead), flags, and the mask of the flags
/// to change.
fn head(index: u32, flags: u32) -> [u8; 16] {
    let mut head = [0; 16];
    for (place, value) in [(4, index), (8, flags), (12, flags)] {
        if let Some(place) = head.get_mut(place..place + 4) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
    }
    head
}

/// Creates an interface.
#[must_use]
pub fn make(name: &str, kind: &str) -> Messages {
    request(NEW_LINK, ACK | CREATE | EXCLUSIVE, |body| {
        body.raw(&head(0, 0)).text(LINK_NAME, name).nested(LINK_INFO, |body| {
            body.text(LINK_INFO_KIND, kind);
        });
    })
}

/// Removes an interface.
#[must_use]
pub fn remove(name: &str) -> Messages {
    request(DELETE_LINK, ACK, |body| {
        body.raw(&head(0, 0)).text(LINK_NAME, name);
    })
}

/// Requests information on an interface. [`index`] reads the response.
#[must_use]
pub fn look(name: &str) -> Messages {
    request(GET_LINK, 0, |body| {
        body.raw(&head(0, 0)).text(LINK_NAME, name);
    })
}

/// Returns the interface index in a message.
#[must_use]
pub fn index(message: &crate::netlink::Message<'_>) -> Option<u32> {
    let bytes = message.body.get(4..8)?.try_into().ok()?;
    (message.kind == NEW_LINK).then(|| u32::from_ne_bytes(bytes))
}

/// Disables the automatic IPv6 link-local address of an interface. It would only send packets that nothing receives.
#[must_use]
pub fn silence(index: u32) -> Messages {
    const NO_ADDRESS: u8 = 1;
    request(NEW_LINK, ACK, |body| {
        body.raw(&head(index, 0)).nested(LINK_FAMILIES, |body| {
            body.nested(u16::from(V6), |body| {
                body.attribute(LINK_V6_GENERATION, &[NO_ADDRESS]);
            });
        });
    })
}

/// Sets an interface up.
#[must_use]
pub fn up(index: u32) -> Messages {
    request(NEW_LINK, ACK, |body| {
        body.raw(&head(index, UP));
    })
}

/// Adds an address to an interface for a number of seconds, or without limit. An existing address gets the new
/// lifetime.
#[must_use]
pub fn address(index: u32, ip: IpAddr, seconds: Option<u32>) -> Messages {
    // The address is unique to the node, so duplicate address detection would only delay the start.
    const NO_DETECTION: u8 = 2;
    const FOR_EVER: u32 = u32::MAX;
    let (family, length, bytes) = match ip {
        IpAddr::V4(ip) => (V4, 32, ip.octets().to_vec()),
        IpAddr::V6(ip) => (V6, 128, ip.octets().to_vec()),
    };
    let lifetime = seconds.unwrap_or(FOR_EVER).to_ne_bytes();
    request(NEW_ADDRESS, ACK | CREATE | REPLACE, |body| {
        body.raw(&[family, length, NO_DETECTION, 0]).raw(&index.to_ne_bytes());
        body.attribute(ADDRESS_LOCAL, &bytes).attribute(ADDRESS, &bytes);
        // Preferred and valid lifetime are equal. The kernel ignores the two timestamps.
        body.attribute(ADDRESS_LIFETIME, &[lifetime, lifetime, [0; 4], [0; 4]].concat());
    })
}
