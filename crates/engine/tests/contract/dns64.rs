//! Synthesizes AAAA records from A records (RFC 6147), with a subquery on the way up.

use core::net::Ipv6Addr;

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use wire::{Owner, Rcode, Section, Type};

pub static MANIFEST: Manifest<()> = Manifest::new("dns64", "synthesizes AAAA records", || (), build);

/// Well-known prefix (RFC 6052 §2.1).
const PREFIX: [u8; 12] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];

fn build(_: Vec<()>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(Some(Part::new(Dns64, Hooks::UP)))
}

struct Dns64;

impl Plugin for Dns64 {
    fn on_response(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        let has_one = response.message.marks().iter().any(|mark| mark.rtype == Type::AAAA);
        let denied = response.rcode() == Rcode::NXDOMAIN;
        if query.qtype != Type::AAAA || has_one || denied {
            return Verdict::Pass;
        }
        Verdict::Subquery(Box::new(Subquery {
            name: query.name().to_name(),
            qtype: Type::A,
            target: SubqueryTarget::Top,
        }))
    }

    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        _: &mut Worker,
    ) -> Verdict {
        let message = &sub.message;
        if !message.section(Section::Answer).any(|mark| mark.rtype == Type::A) {
            return Verdict::Pass;
        }
        response.begin(query);
        for mark in message.section(Section::Answer) {
            let record = message.record(mark);
            let Ok(owner) = record.owner() else { continue };
            match record.rdata().first_chunk::<4>().filter(|_| mark.rtype == Type::A) {
                Some(address) => {
                    let mut bytes = [0; 16];
                    bytes[..PREFIX.len()].copy_from_slice(&PREFIX);
                    bytes[PREFIX.len()..].copy_from_slice(address);
                    let owner = Owner::Name(owner.as_ref());
                    response.message.push_aaaa(Section::Answer, owner, record.ttl(), Ipv6Addr::from(bytes));
                }
                None => {
                    let _ = response.message.push_record(Section::Answer, &record);
                }
            }
        }
        Verdict::Done
    }
}
