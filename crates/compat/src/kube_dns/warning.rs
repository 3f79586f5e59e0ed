//! Warnings about command lines that are valid.

use core::fmt;

/// Warning about flags or arguments of dnsmasq.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Flags of a container without an effect: their names, and the reason or the replacement.
    IgnoredFlags(Vec<&'static str>, &'static str),
    /// Argument of dnsmasq without an effect: its name and the reason.
    IgnoredArgument(String, &'static str),
    /// Unknown argument of dnsmasq: its name.
    UnknownArgument(String),
    /// Flag or argument that has an effect, but not quite the original one: its name and the difference.
    Differs(String, &'static str),
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::IgnoredFlags(names, reason) => write!(out, "--{} does nothing here: {reason}", names.join(", --")),
            Warning::IgnoredArgument(name, reason) => write!(out, "dnsmasq's --{name} does nothing here: {reason}"),
            Warning::UnknownArgument(name) => write!(out, "dnsmasq's --{name} is not known here and does nothing"),
            Warning::Differs(what, difference) => write!(out, "{what}: {difference}"),
        }
    }
}
