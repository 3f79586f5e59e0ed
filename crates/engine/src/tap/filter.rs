//! Filters: which finished queries a tail shows. A filter is compiled once and runs in the workers, as a few compares.
//!
//! A value is a list with commas, and a query matches if it matches one of them. `!` before the list selects all other
//! queries. All conditions of a filter must be met.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;
use core::time::Duration;
use std::sync::Arc;

use ipnet::IpNet;
use wire::{NameRef, Rcode, Type};

use super::pattern::NamePattern;
use super::record::{Finished, Record, RecordFlags};
use super::ring::TAILS_MAX;

/// Maximum number of values of a condition. A worker may compare each of them for every query.
const VALUES_MAX: usize = 32;

/// Filters of all tails.
#[derive(Clone, Debug, Default)]
pub struct Filters([Option<Arc<Filter>>; TAILS_MAX]);

impl Filters {
    /// Puts a filter at a free place and returns it; `None` if all are taken. The search begins at `first`.
    pub fn add(&mut self, filter: Filter, first: usize) -> Option<usize> {
        let at = (first..first + TAILS_MAX).map(|at| at % TAILS_MAX).find(|at| self.0[*at].is_none())?;
        self.0[at] = Some(Arc::new(filter));
        Some(at)
    }

    /// Replaces or removes the filter at a place.
    pub fn put(&mut self, at: usize, filter: Option<Filter>) {
        self.0[at] = filter.map(Arc::new);
    }

    /// Returns true without a filter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Filters with their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Filter)> {
        self.0.iter().enumerate().filter_map(|(at, filter)| Some((at, filter.as_deref()?)))
    }
}

/// Filter: the conditions that a query must meet. The default selects every query.
///
/// ```
/// use engine::tap::Filter;
///
/// let mut filter = Filter::default();
/// filter.set("name", "*.corp.,db.shop.svc.cluster.local.").unwrap();
/// filter.set("rcode", "!NOERROR").unwrap();
/// filter.set("slow", "0.01").unwrap();
/// assert!(filter.set("rcode", "NOSUCH").is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    qtypes: OneOf<Type>,
    /// `DROPPED` is `None`.
    rcodes: OneOf<Option<Rcode>>,
    clients: OneOf<IpNet>,
    /// Addresses of selected pods, sorted.
    addresses: Option<Box<[IpAddr]>>,
    names: OneOf<NamePattern>,
    plugins: OneOf<Box<str>>,
    slower_than: Option<Duration>,
    every: u32,
}

/// Reason why a condition is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// There is no condition with this name.
    Key(String),
    /// A value is not what the condition needs.
    Value {
        /// Value.
        value: String,
        /// Description of what is expected.
        expected: &'static str,
    },
    /// The condition has too many values.
    TooMany,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Key(key) => write!(f, "there is no filter `{key}`"),
            FilterError::Value { value, expected } => write!(f, "`{value}` is not {expected}"),
            FilterError::TooMany => write!(f, "a filter has at most {VALUES_MAX} values"),
        }
    }
}

impl core::error::Error for FilterError {}

/// Word in `rcode` for queries without a response.
const DROPPED: &str = "DROPPED";

impl Filter {
    /// Adds a condition.
    ///
    /// | key | values |
    /// |---|---|
    /// | `name` | `NAME`, or `*.NAME` for all names below |
    /// | `zone` | zones: the name itself and all names below; in addition to those of `name` |
    /// | `type` | record types such as `AAAA` |
    /// | `rcode` | response codes such as `NXDOMAIN`, or `DROPPED` |
    /// | `plugin` | plugins that answered or failed |
    /// | `client` | IP addresses and networks such as `10.0.0.0/8` |
    /// | `slow` | minimum duration in seconds |
    /// | `sample` | number N, to show one of N |
    ///
    /// # Errors
    /// The key is unknown, or a value is invalid.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), FilterError> {
        match key {
            "name" => {
                self.names.add(value, "a domain name, or `*.` and a domain name", |text| NamePattern::parse(text).ok())
            }
            "zone" => self.names.add(value, "a domain name", |text| NamePattern::zone(text).ok()),
            "type" => self.qtypes.add(value, "a record type such as AAAA", parsed),
            "rcode" => self.rcodes.add(value, "a response code such as NXDOMAIN, or DROPPED", |text| {
                if text.eq_ignore_ascii_case(DROPPED) { Some(None) } else { parsed(text).map(Some) }
            }),
            "plugin" => self.plugins.add(value, "the name of a plugin", |text| Some(text.into())),
            "client" => self.clients.add(value, "an IP address or a network such as 10.0.0.0/8", network),
            "slow" => self.set_slow(value),
            "sample" => self.set_sample(value),
            _ => Err(FilterError::Key(key.to_owned())),
        }
    }

    fn set_slow(&mut self, value: &str) -> Result<(), FilterError> {
        let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        self.slower_than = Some(seconds.ok_or_else(|| invalid(value, "a number of seconds"))?);
        Ok(())
    }

    fn set_sample(&mut self, value: &str) -> Result<(), FilterError> {
        let every = value.parse().ok().filter(|every| (1..=SAMPLE_MAX).contains(every));
        self.every = every.ok_or_else(|| invalid(value, "a number from 1 to 1000000"))?;
        Ok(())
    }

    /// Selects only queries of clients with these addresses, from now on.
    pub fn set_addresses(&mut self, mut addresses: Vec<IpAddr>) {
        addresses.sort_unstable();
        self.addresses = Some(addresses.into());
    }

    /// Average distance of the queries that are shown of those selected; 1 shows all.
    #[must_use]
    pub fn every(&self) -> u32 {
        self.every.max(1)
    }

    /// Returns true if the filter has conditions on names.
    #[must_use]
    pub fn has_names(&self) -> bool {
        !self.names.values.is_empty()
    }

    /// Returns true if a recorded query meets all conditions. A name that was cut off meets no condition on names.
    #[must_use]
    pub fn selects_record(&self, record: &Record) -> bool {
        self.selects(record)
    }

    /// Returns true if a query meets all conditions. The cheap ones come first.
    pub(super) fn selects(&self, subject: &impl Subject) -> bool {
        self.rcodes.has(|known| *known == subject.rcode())
            && self.qtypes.has(|known| Some(*known) == subject.qtype())
            && self.clients.has(|network| network.contains(&subject.client()))
            && self.addresses.as_ref().is_none_or(|known| known.binary_search(&subject.client()).is_ok())
            && self.names.has(|pattern| subject.name().is_some_and(|name| pattern.matches(name)))
            && self.plugins.has(|known| **known == *subject.plugin())
            && self.slower_than.is_none_or(|duration| subject.took() >= duration)
    }
}

/// Query with its response, as a filter sees it.
pub(super) trait Subject {
    /// Response code; `None` without a response.
    fn rcode(&self) -> Option<Rcode>;
    /// Type; `None` for a message that could not be read.
    fn qtype(&self) -> Option<Type>;
    /// Name; `None` for a message that could not be read.
    fn name(&self) -> Option<NameRef<'_>>;
    /// Address of the client; IPv4 without its IPv6 form.
    fn client(&self) -> IpAddr;
    /// Plugin that answered or failed; empty if none did.
    fn plugin(&self) -> &str;
    /// Time from the arrival to the response.
    fn took(&self) -> Duration;
}

impl Subject for Finished<'_> {
    fn rcode(&self) -> Option<Rcode> {
        (!self.is_dropped()).then(|| self.transaction.response.rcode())
    }

    fn qtype(&self) -> Option<Type> {
        (!self.is_unread()).then_some(self.transaction.query.request.qtype)
    }

    fn name(&self) -> Option<NameRef<'_>> {
        (!self.is_unread()).then(|| self.transaction.query.request.name.as_ref())
    }

    fn client(&self) -> IpAddr {
        self.transaction.query.peer.address.ip().to_canonical()
    }

    fn plugin(&self) -> &str {
        self.answerer().map_or("", |(name, _)| name)
    }

    fn took(&self) -> Duration {
        Finished::took(self)
    }
}

impl Subject for Record {
    fn rcode(&self) -> Option<Rcode> {
        (!self.flags.has(RecordFlags::DROPPED)).then_some(self.rcode)
    }

    fn qtype(&self) -> Option<Type> {
        (!self.flags.has(RecordFlags::UNREAD)).then_some(self.qtype)
    }

    fn name(&self) -> Option<NameRef<'_>> {
        let is_unread = self.flags.has(RecordFlags::UNREAD);
        if is_unread { None } else { NameRef::from_bytes(self.name()).ok() }
    }

    fn client(&self) -> IpAddr {
        self.client.ip()
    }

    fn plugin(&self) -> &str {
        self.plugin()
    }

    fn took(&self) -> Duration {
        self.took
    }
}

/// Maximum of `sample`.
const SAMPLE_MAX: u32 = 1_000_000;

/// Values of a condition; none stands for no condition.
#[derive(Clone, Debug)]
struct OneOf<T> {
    values: Vec<T>,
    is_negated: bool,
}

impl<T> Default for OneOf<T> {
    fn default() -> Self {
        OneOf { values: Vec::new(), is_negated: false }
    }
}

impl<T> OneOf<T> {
    fn add(
        &mut self,
        text: &str,
        expected: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<(), FilterError> {
        let (list, is_negated) = text.strip_prefix('!').map_or((text, false), |list| (list, true));
        self.is_negated |= is_negated;
        for part in list.split(',') {
            let value = if part.is_empty() { None } else { parse(part) };
            self.values.push(value.ok_or_else(|| invalid(part, expected))?);
        }
        if self.values.len() > VALUES_MAX { Err(FilterError::TooMany) } else { Ok(()) }
    }

    fn has(&self, is_it: impl FnMut(&T) -> bool) -> bool {
        self.values.is_empty() || self.values.iter().any(is_it) != self.is_negated
    }
}

fn invalid(value: &str, expected: &'static str) -> FilterError {
    FilterError::Value { value: value.to_owned(), expected }
}

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(|address| address.to_canonical().into()))
}
