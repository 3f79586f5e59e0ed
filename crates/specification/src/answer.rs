//! Expected answers, and what of them the standards leave open.

use crate::record::Record;

/// Response code (RFC 1035 §4.1.1, RFC 2136 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rcode {
    /// No error.
    NoError,
    /// The server failed.
    ServFail,
    /// The name does not exist.
    NxDomain,
    /// The server refuses to answer.
    Refused,
    /// The name would be too long after the substitution of a DNAME (RFC 6672 §2.2).
    YxDomain,
    /// Another code.
    Other(u8),
}

impl Rcode {
    /// Returns the response code with this number.
    #[must_use]
    pub const fn from_code(code: u8) -> Rcode {
        match code {
            0 => Rcode::NoError,
            2 => Rcode::ServFail,
            3 => Rcode::NxDomain,
            5 => Rcode::Refused,
            6 => Rcode::YxDomain,
            other => Rcode::Other(other),
        }
    }

    /// Returns the name, as tools print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Rcode::NoError => "NOERROR",
            Rcode::ServFail => "SERVFAIL",
            Rcode::NxDomain => "NXDOMAIN",
            Rcode::Refused => "REFUSED",
            Rcode::YxDomain => "YXDOMAIN",
            Rcode::Other(_) => "another code",
        }
    }
}

/// Content of the authority section.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Authority {
    /// Nothing, or the NS records of this zone: the end of an answer with records (RFC 1034 §6.2.1).
    Positive(String),
    /// SOA record of this zone (RFC 2308 §3).
    Soa(String),
    /// Exactly these NS records (RFC 1034 §4.3.2 step 3b).
    Referral(Vec<Record>),
    /// Nothing is said about it.
    Open,
}

/// Expected answer. Record sets have no order and no duplicates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    /// Response code: one of these. With SERVFAIL, no record is required.
    pub rcodes: Vec<Rcode>,
    /// AA flag; `None` if either is right.
    pub authoritative: Option<bool>,
    /// Records that the answer section must have.
    pub required: Vec<Record>,
    /// Records that the answer section may have in addition. It must not have any other.
    pub permitted: Vec<Record>,
    /// True if the answer section must have at least one record.
    pub is_some: bool,
    /// True if the answer section may have any other records.
    pub is_open: bool,
    /// Authority section.
    pub authority: Authority,
    /// Records that the additional section must have.
    pub glue: Vec<Record>,
}

impl Answer {
    /// Creates an authoritative answer without records.
    pub(crate) fn new() -> Answer {
        Answer {
            rcodes: vec![Rcode::NoError],
            authoritative: Some(true),
            required: Vec::new(),
            permitted: Vec::new(),
            is_some: false,
            is_open: false,
            authority: Authority::Open,
            glue: Vec::new(),
        }
    }

    /// Adds a required record, once (RFC 2181 §5).
    pub(crate) fn require(&mut self, record: Record) {
        if !self.required.contains(&record) {
            self.required.push(record);
        }
    }

    /// Permits another response code.
    pub(crate) fn allow(&mut self, rcode: Rcode) {
        if !self.rcodes.contains(&rcode) {
            self.rcodes.push(rcode);
        }
    }
}
