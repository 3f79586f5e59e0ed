//! Weights from a file: a line with a name begins a section, lines with an address and a weight follow.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use engine::{Query, Response, Worker};
use wire::{Name, Section, Type};

use super::order;

/// The weight of an address that the file does not list.
const WEIGHT_DEFAULT: u8 = 1;
/// Octets of the fixed part of SRV data, before the target.
const SRV_FIXED_LEN: usize = 6;

type ByAddress = HashMap<IpAddr, u8>;

/// The weights that hold now.
#[derive(Default)]
pub(super) struct Weights {
    by_name: RwLock<HashMap<Box<[u8]>, ByAddress>>,
}

impl Weights {
    /// Takes over the text of a file, or says where and what is wrong with it and changes nothing.
    pub(super) fn read(&self, octets: &[u8], path: &Path) -> Result<(), String> {
        let mut by_name: HashMap<Box<[u8]>, ByAddress> = HashMap::new();
        let mut section: Option<&mut ByAddress> = None;
        for (number, line) in String::from_utf8_lossy(octets).lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let wrong = |what: &str| format!("{}:{}: {what}", path.display(), number + 1);
            match words[..] {
                [] => {}
                [name] => {
                    let name = Name::from_text(name).map_err(|error| wrong(&error.to_string()))?.into_lowercase();
                    section = Some(by_name.entry(name.octets().into()).or_default());
                }
                [address, weight] => {
                    let section = section.as_mut().ok_or_else(|| wrong("an address stands before the first name"))?;
                    let address = address.parse().map_err(|_| wrong("not an address"))?;
                    let weight = weight.parse().ok().filter(|weight| *weight > 0);
                    section.insert(address, weight.ok_or_else(|| wrong("a weight is a number from 1 to 255"))?);
                }
                _ => return Err(wrong("a line is a name, or an address and a weight")),
            }
        }
        *self.by_name.write().unwrap_or_else(PoisonError::into_inner) = by_name;
        Ok(())
    }

    /// Chooses one address or SRV record of the answer by weight and puts it first; the others keep their order.
    pub(super) fn put_chosen_first(&self, query: &Query, response: &mut Response, worker: &mut Worker) {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        let weights = by_name.get(query.key().octets());
        let marks = response.message.marks();
        let of = |rtype| marks.iter().position(|mark| mark.section == Section::Answer && mark.rtype == rtype);
        // SRV records of a name without a section keep their order, as in CoreDNS.
        let of_srv = || weights.and_then(|_| of(Type::SRV));
        let Some(first) = of(Type::A).or_else(|| of(Type::AAAA)).or_else(of_srv) else { return };
        let Some(set) = order::set_at(response, first) else { return };
        let weight = |at: usize| u64::from(weight_of(response, at, weights));
        let total: u64 = set.clone().map(weight).sum();
        let mut drawn = worker.random_below(usize::try_from(total).unwrap_or(1)) as u64;
        let chosen = set.clone().find(|at| {
            let own = weight(*at);
            let hit = drawn < own;
            drawn = drawn.saturating_sub(own);
            hit
        });
        if let Some(chosen) = chosen {
            order::put_first(chosen, &set, query, response, worker);
        }
    }
}

/// The weight of an address record, or of an SRV record by the address of its target in the additional section.
fn weight_of(response: &Response, at: usize, weights: Option<&ByAddress>) -> u8 {
    let mark = response.message.marks()[at];
    let found = match mark.rtype {
        Type::SRV => response.message.name_in(mark, SRV_FIXED_LEN).ok().and_then(|target| {
            let additional = response.message.section(Section::Additional);
            let mut of_target =
                additional.filter(|mark| response.message.owner(*mark).is_ok_and(|name| name == target));
            of_target.find_map(|mark| address(response.message.octets_at(mark.rdata_range())))
        }),
        _ => address(response.message.octets_at(mark.rdata_range())),
    };
    weights.zip(found).and_then(|(weights, address)| weights.get(&address)).copied().unwrap_or(WEIGHT_DEFAULT)
}

/// The address that the data of an A or AAAA record is.
pub(super) fn address(rdata: &[u8]) -> Option<IpAddr> {
    match rdata.len() {
        4 => rdata.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets).into()),
        16 => rdata.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets).into()),
        _ => None,
    }
}
