//! Names, records and questions, as text.
//!
//! A name is an absolute name in lower case, with its final dot: `www.example.`. No label contains a dot.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Type of a record or of a question, with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// IPv4 address (RFC 1035 §3.4.1).
    A,
    /// Name server (RFC 1035 §3.3.11).
    Ns,
    /// Alias (RFC 1035 §3.3.1).
    Cname,
    /// Start of authority (RFC 1035 §3.3.13).
    Soa,
    /// Name of an address (RFC 1035 §3.3.12).
    Ptr,
    /// Text (RFC 1035 §3.3.14).
    Txt,
    /// IPv6 address (RFC 3596 §2.1).
    Aaaa,
    /// Location of a service (RFC 2782).
    Srv,
    /// Alias of a subtree (RFC 6672 §2.1).
    Dname,
    /// Delegation signer (RFC 4034 §5).
    Ds,
    /// All types, as a question (RFC 1035 §3.2.3).
    Any,
    /// Another type.
    Other(u16),
}

/// Types with a name: the name and the code.
const TYPES: [(Type, &str, u16); 11] = [
    (Type::A, "A", 1),
    (Type::Ns, "NS", 2),
    (Type::Cname, "CNAME", 5),
    (Type::Soa, "SOA", 6),
    (Type::Ptr, "PTR", 12),
    (Type::Txt, "TXT", 16),
    (Type::Aaaa, "AAAA", 28),
    (Type::Srv, "SRV", 33),
    (Type::Dname, "DNAME", 39),
    (Type::Ds, "DS", 43),
    (Type::Any, "ANY", 255),
];

impl Type {
    /// Returns the code in messages.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            Type::Other(code) => code,
            _ => TYPES.iter().find(|(known, ..)| *known == self).map_or(0, |(.., code)| *code),
        }
    }

    /// Returns the type with this code.
    #[must_use]
    pub fn from_code(code: u16) -> Type {
        TYPES.iter().find(|(.., known)| *known == code).map_or(Type::Other(code), |(rtype, ..)| *rtype)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TYPES.iter().find(|(known, ..)| known == self) {
            Some((_, name, _)) => f.write_str(name),
            None => write!(f, "TYPE{}", self.code()),
        }
    }
}

/// Data of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Data {
    /// IPv4 address.
    A(Ipv4Addr),
    /// IPv6 address.
    Aaaa(Ipv6Addr),
    /// Target of an alias.
    Cname(String),
    /// Target of the alias of a subtree.
    Dname(String),
    /// Name server.
    Ns(String),
    /// Name of an address.
    Ptr(String),
    /// Text of one string.
    Txt(String),
    /// Port and target. The priority and the weight are not compared.
    Srv(u16, String),
    /// Key tag; the other fields are not compared.
    Ds(u16),
    /// Start of authority. Its fields are not compared.
    Soa,
    /// Record of another type, whose data are not compared.
    Other(u16),
}

impl Data {
    /// Returns the type.
    #[must_use]
    pub const fn rtype(&self) -> Type {
        match self {
            Data::A(_) => Type::A,
            Data::Aaaa(_) => Type::Aaaa,
            Data::Cname(_) => Type::Cname,
            Data::Dname(_) => Type::Dname,
            Data::Ns(_) => Type::Ns,
            Data::Ptr(_) => Type::Ptr,
            Data::Txt(_) => Type::Txt,
            Data::Srv(..) => Type::Srv,
            Data::Ds(_) => Type::Ds,
            Data::Soa => Type::Soa,
            Data::Other(code) => Type::Other(*code),
        }
    }
}

/// Record of class IN.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    /// Owner name.
    pub owner: String,
    /// Type and data.
    pub data: Data,
}

impl Record {
    /// Creates a record.
    #[must_use]
    pub fn new(owner: impl Into<String>, data: Data) -> Record {
        Record { owner: owner.into(), data }
    }
}

impl fmt::Display for Record {
    /// Formats the record as in a zone file, without class and TTL: `a.example. A 192.0.2.1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.owner, self.data.rtype())?;
        match &self.data {
            Data::A(address) => write!(f, " {address}"),
            Data::Aaaa(address) => write!(f, " {address}"),
            Data::Cname(name) | Data::Dname(name) | Data::Ns(name) | Data::Ptr(name) => write!(f, " {name}"),
            Data::Txt(text) => write!(f, " {text:?}"),
            Data::Srv(port, target) => write!(f, " 0 0 {port} {target}"),
            Data::Ds(tag) => write!(f, " {tag} 8 2 {}", "00".repeat(32)),
            Data::Soa | Data::Other(_) => Ok(()),
        }
    }
}

/// Question of class IN.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question {
    /// QNAME, in the case of its letters that the client sends.
    pub name: String,
    /// QTYPE.
    pub qtype: Type,
}

/// Returns true if a name is `zone` or below it.
#[must_use]
pub fn is_within(name: &str, zone: &str) -> bool {
    let above = name.strip_suffix(zone);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.') || zone == ".")
}

/// Returns the name without its first label. The parent of the root is the root.
#[must_use]
pub fn parent(name: &str) -> &str {
    match name.split_once('.') {
        Some((_, above)) if !above.is_empty() => above,
        _ => ".",
    }
}

/// Returns the length of a name in messages, in bytes (RFC 1035 §3.1).
#[must_use]
pub fn wire_len(name: &str) -> usize {
    if name == "." { 1 } else { name.len() + 1 }
}
