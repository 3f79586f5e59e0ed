//! Signing records (RFC 4034), for *dnssec* and *sign*: keys from files, and what they make of record sets.

mod key;
mod private;

pub(crate) use key::{Key, Life, Set};

#[cfg(test)]
mod tests;
