//! Port numbers in manifests, with messages for people instead of those of the parser.

use core::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Target port of a Service port: a number, or the name of a container port.
#[derive(Clone, Debug)]
pub enum TargetPort {
    Number(u16),
    Name(String),
}

/// Deserializes a port number that may be absent.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    match Port::deserialize(deserializer)? {
        Port::None => Ok(None),
        Port::Number(number) => Ok(Some(number)),
        Port::Name(name) => Err(D::Error::custom(format!("`{name}` is not a port; use a number from 1 to 65535"))),
    }
}

impl<'de> Deserialize<'de> for TargetPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TargetPort, D::Error> {
        match Port::deserialize(deserializer)? {
            Port::None => Ok(TargetPort::Number(0)),
            Port::Number(number) => Ok(TargetPort::Number(number)),
            Port::Name(name) => Ok(TargetPort::Name(name)),
        }
    }
}

/// Value where a port is expected.
enum Port {
    None,
    Number(u16),
    Name(String),
}

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Port, D::Error> {
        deserializer.deserialize_any(PortVisitor)
    }
}

struct PortVisitor;

impl<'de> Visitor<'de> for PortVisitor {
    type Value = Port;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a port from 1 to 65535")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Port, E> {
        let number = u16::try_from(number)
            .map_err(|_| E::custom(format!("`{number}` is too large for a port; the maximum is {}", u16::MAX)))?;
        Ok(Port::Number(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Port, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::custom(format!("`{number}` is not a port; use a number from 1 to 65535"))),
        }
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Port, E> {
        Ok(Port::Name(name.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Port, E> {
        Ok(Port::None)
    }

    fn visit_none<E: Error>(self) -> Result<Port, E> {
        Ok(Port::None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Port, D::Error> {
        Port::deserialize(deserializer)
    }
}
