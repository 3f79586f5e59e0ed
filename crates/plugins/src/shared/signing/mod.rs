//! Signatures over records (RFC 4034) for *dnssec* and *sign*: loads keys from files and signs RRsets.

mod key;
mod private;

pub(crate) use key::{Key, Set, ValidityPeriod};

#[cfg(test)]
mod tests;
