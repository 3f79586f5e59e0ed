//! Answers with the client's address and port, in the class of the query.

use core::net::IpAddr;

use config::options::{Manifest, Role};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use wire::{Name, NameRef, Owner, Section, Type};

pub static MANIFEST: Manifest<()> =
    Manifest::new("whoami", "answer with the IP address and port of the client", || (), build)
        .role(|_| Role::answers(&[], &[]));

fn build(_: Vec<()>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(Some(Part::new(Whoami, Hooks::DOWN)))
}

struct Whoami;

impl Plugin for Whoami {
    fn reads_client(&self, _: &Query) -> bool {
        true
    }

    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        let peer = query.peer.address;
        response.set_authoritative(true);
        response.set_local();
        let class = query.qclass;
        let message = &mut response.message;
        match peer.ip().to_canonical() {
            IpAddr::V4(v4) => message.push(Section::Additional, Owner::Question, (Type::A, class, 0), |rdata| {
                rdata.bytes(&v4.octets());
            }),
            IpAddr::V6(v6) => message.push(Section::Additional, Owner::Question, (Type::AAAA, class, 0), |rdata| {
                rdata.bytes(&v6.octets());
            }),
        };
        let label: &[u8] = if query.peer.transport.label() == "udp" { b"_udp" } else { b"_tcp" };
        let mut owner = Name::root();
        // If the name is too long for another label, the response only has the address.
        if owner.push_label(label).and_then(|()| owner.append(query.name())).is_ok() {
            response.message.push(Section::Additional, Owner::Name(owner.as_ref()), (Type::SRV, class, 0), |rdata| {
                rdata.u32(0);
                rdata.u16(peer.port());
                rdata.plain_name(NameRef::ROOT);
            });
        }
        Verdict::Done
    }
}
