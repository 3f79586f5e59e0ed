//! Weights from a file. A line with a name starts a section, followed by lines with an address and a weight.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;
use std::path::Path;

use arc_swap::ArcSwap;
use engine::{Query, Response, Worker};
use wire::{Name, Section};

use super::order;

/// Weight of an address that the file does not list.
const WEIGHT_DEFAULT: u8 = 1;

type ByAddress = HashMap<IpAddr, u8>;
type ByName = HashMap<Box<[u8]>, ByAddress>;

/// Current weights, replaced when the file changes.
#[derive(Default)]
pub(super) struct Weights {
    by_name: ArcSwap<ByName>,
}

impl Weights {
    /// Parses a file and replaces the weights. On error the weights stay, and the text has file and line.
    pub(super) fn read(&self, bytes: &[u8], path: &Path) -> Result<(), String> {
        let mut by_name = ByName::new();
        let mut section: Option<&mut ByAddress> = None;
        for (number, line) in String::from_utf8_lossy(bytes).lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let wrong = |what: &str| format!("{}:{}: {what}", path.display(), number + 1);
            match words[..] {
                [] => {}
                [name] => {
                    let name = Name::from_text(name).map_err(|error| wrong(&error.to_string()))?.into_lowercase();
                    section = Some(by_name.entry(name.octets().into()).or_default());
                }
                [address, weight] => {
                    let section = section.as_mut().ok_or_else(|| wrong("address before the first name"))?;
                    let address = address.parse().map_err(|_| wrong("not an address"))?;
                    let weight = weight.parse().ok().filter(|weight| *weight > 0);
                    section.insert(address, weight.ok_or_else(|| wrong("the weight must be a number from 1 to 255"))?);
                }
                _ => return Err(wrong("expected a name, or an address and a weight")),
            }
        }
        self.by_name.store(by_name.into());
        Ok(())
    }

    /// Chooses one address of the answer section and one of the additional section by weight. Each swaps places with
    /// the first one. The weight is looked up by the record's own owner name, so also after CNAME records and for SRV
    /// targets, as in CoreDNS.
    pub(super) fn put_chosen_first(&self, query: &Query, response: &mut Response, worker: &mut Worker) {
        let by_name = self.by_name.load();
        for section in [Section::Answer, Section::Additional] {
            let Some((first, chosen)) = choose(section, &by_name, response, worker) else { continue };
            if first != chosen {
                order::swap(first, chosen, query, response, worker);
            }
        }
    }
}

/// Index of the first address of a section, and of the chosen one. `None` if there is no address.
fn choose(section: Section, by_name: &ByName, response: &Response, worker: &mut Worker) -> Option<(usize, usize)> {
    let marks = response.message.marks();
    let places = || (0..marks.len()).filter(|at| marks[*at].section == section && marks[*at].rtype.is_address());
    let first = places().next()?;
    let weight = |at: &usize| u64::from(weight_of(response, *at, by_name));
    let total: u64 = places().map(|at| weight(&at)).sum();
    let mut drawn = worker.random_below(usize::try_from(total).unwrap_or(1)) as u64;
    let chosen = places().find(|at| {
        let own = weight(at);
        let hit = drawn < own;
        drawn = drawn.saturating_sub(own);
        hit
    });
    Some((first, chosen?))
}

fn weight_of(response: &Response, at: usize, by_name: &ByName) -> u8 {
    let mark = response.message.marks()[at];
    let owner = response.message.owner(mark).ok().map(Name::into_lowercase);
    let weights = owner.and_then(|owner| by_name.get(owner.octets()));
    let address = address(response.message.octets_at(mark.rdata_range()));
    weights.zip(address).and_then(|(weights, address)| weights.get(&address)).copied().unwrap_or(WEIGHT_DEFAULT)
}

/// Address in the data of an A or AAAA record.
pub(super) fn address(rdata: &[u8]) -> Option<IpAddr> {
    match rdata.len() {
        4 => rdata.first_chunk::<4>().map(|bytes| Ipv4Addr::from(*bytes).into()),
        16 => rdata.first_chunk::<16>().map(|bytes| Ipv6Addr::from(*bytes).into()),
        _ => None,
    }
}
