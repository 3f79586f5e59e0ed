//! Weights from a file. A line with a name starts a section, followed by lines with an address and a weight.

use core::error::Error;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use engine::{Query, Response, Worker};
use wire::{Name, NameError, Section};

use super::order;

/// Weight of an address that the file does not list.
const WEIGHT_DEFAULT: u8 = 1;

type ByAddress = HashMap<IpAddr, u8>;
type ByName = HashMap<Box<[u8]>, ByAddress>;

/// Invalid line of a file of weights.
#[derive(Debug)]
pub(super) struct WeightsError {
    path: PathBuf,
    /// Line, counted from 1.
    line: usize,
    problem: WeightsProblem,
}

/// Problem with a line of a file of weights.
#[derive(Debug)]
enum WeightsProblem {
    /// The word is not a domain name.
    Name(NameError),
    /// The address belongs to no name.
    NoName,
    /// The first of two words is not an IP address.
    Address,
    /// The second of two words is not a weight.
    Weight,
    /// The line has more than two words.
    ManyWords,
}

impl fmt::Display for WeightsError {
    /// Writes `FILE:LINE: PROBLEM`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.path.display(), self.line)?;
        match &self.problem {
            WeightsProblem::Name(error) => error.fmt(f),
            WeightsProblem::NoName => f.write_str("address before the first name"),
            WeightsProblem::Address => f.write_str("not an address"),
            WeightsProblem::Weight => f.write_str("the weight must be a number from 1 to 255"),
            WeightsProblem::ManyWords => f.write_str("expected a name, or an address and a weight"),
        }
    }
}

impl Error for WeightsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.problem {
            WeightsProblem::Name(error) => Some(error),
            _ => None,
        }
    }
}

/// Current weights, replaced when the file changes.
#[derive(Default)]
pub(super) struct Weights {
    by_name: ArcSwap<ByName>,
    is_read: AtomicBool,
}

impl Weights {
    /// Parses a file and replaces the weights. If a line is invalid, the weights stay.
    pub(super) fn read(&self, bytes: &[u8], path: &Path) -> Result<(), WeightsError> {
        let mut by_name = ByName::new();
        let mut section: Option<&mut ByAddress> = None;
        for (number, line) in String::from_utf8_lossy(bytes).lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let invalid = |problem| WeightsError { path: path.to_owned(), line: number + 1, problem };
            match words[..] {
                [] => {}
                [name] => {
                    let name =
                        Name::from_text(name).map_err(|error| invalid(WeightsProblem::Name(error)))?.into_lowercase();
                    section = Some(by_name.entry(name.as_bytes().into()).or_default());
                }
                [address, weight] => {
                    let section = section.as_mut().ok_or_else(|| invalid(WeightsProblem::NoName))?;
                    let address = address.parse().map_err(|_| invalid(WeightsProblem::Address))?;
                    let weight = weight.parse().ok().filter(|weight| *weight > 0);
                    section.insert(address, weight.ok_or_else(|| invalid(WeightsProblem::Weight))?);
                }
                _ => return Err(invalid(WeightsProblem::ManyWords)),
            }
        }
        self.by_name.store(by_name.into());
        self.is_read.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns true once a file has been read.
    pub(super) fn are_read(&self) -> bool {
        self.is_read.load(Ordering::Relaxed)
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
    let weight = |at: &usize| usize::from(weight_of(response, *at, by_name));
    let total: usize = places().map(|at| weight(&at)).sum();
    let mut drawn = worker.random_below(total);
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
    let weights = owner.and_then(|owner| by_name.get(owner.as_bytes()));
    let address = address(response.message.bytes_at(mark.rdata_range()));
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
