//! Interfaces and their addresses as messages to the kernel (rtnetlink).

use core::net::IpAddr;

use crate::netlink::{ACK, CREATE, EXCLUSIVE, Messages, REPLACE, REQUEST};

/// The part of the kernel that takes these.
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

/// What every message about an interface begins with: its number, or 0 where a name says which, and what is to be set.
fn head(index: u32, flags: u32) -> [u8; 16] {
    let mut head = [0; 16];
    for (place, value) in [(4, index), (8, flags), (12, flags)] {
        if let Some(place) = head.get_mut(place..place + 4) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
    }
    head
}

/// Makes an interface.
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

/// Asks about an interface; [`index`] reads what comes.
#[must_use]
pub fn look(name: &str) -> Messages {
    request(GET_LINK, 0, |body| {
        body.raw(&head(0, 0)).text(LINK_NAME, name);
    })
}

/// The number of the interface that a message is about.
#[must_use]
pub fn index(message: &crate::netlink::Message<'_>) -> Option<u32> {
    let octets = message.body.get(4..8)?.try_into().ok()?;
    (message.kind == NEW_LINK).then(|| u32::from_ne_bytes(octets))
}

/// Has an interface give itself no address of IPv6: it would send packets that nobody reads.
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

/// Puts an interface up.
#[must_use]
pub fn up(index: u32) -> Messages {
    request(NEW_LINK, ACK, |body| {
        body.raw(&head(index, UP));
    })
}

/// Gives an interface an address, for so many seconds, or for ever; one that it has gets the new time.
#[must_use]
pub fn address(index: u32, ip: IpAddr, seconds: Option<u32>) -> Messages {
    // Nobody else has it: looking whether somebody does would only delay the start.
    const NO_DETECTION: u8 = 2;
    const FOR_EVER: u32 = u32::MAX;
    let (family, length, octets) = match ip {
        IpAddr::V4(ip) => (V4, 32, ip.octets().to_vec()),
        IpAddr::V6(ip) => (V6, 128, ip.octets().to_vec()),
    };
    let lifetime = seconds.unwrap_or(FOR_EVER).to_ne_bytes();
    request(NEW_ADDRESS, ACK | CREATE | REPLACE, |body| {
        body.raw(&[family, length, NO_DETECTION, 0]).raw(&index.to_ne_bytes());
        body.attribute(ADDRESS_LOCAL, &octets).attribute(ADDRESS, &octets);
        // Preferred and valid for as long; when it was made and changed the kernel knows.
        body.attribute(ADDRESS_LIFETIME, &[lifetime, lifetime, [0; 4], [0; 4]].concat());
    })
}
