//! YAML and JSON into types, with little code per type.
//!
//! serde compiles the code of a type once per deserializer. The one of YAML is large: each struct takes 14 KB of the
//! binary. Here a type is compiled once, against an interface (`Source`), and each deserializer once, against another
//! one (`Target`). Reading takes some more calls and the results are the same, errors and their places included.
//! Manifests and the files of commands are read like this. Events of a watch are not: they must be fast.
//!
//! Not for types with `#[serde(flatten)]` or `#[serde(untagged)]` if YAML tags matter: they do not see the tags. Not
//! for types with borrowed texts, bytes or numbers of 128 bits either.
//!
//! ```
//! #[derive(serde::Deserialize)]
//! struct Port { name: String, port: u16 }
//!
//! let port: Port = dynserde::yaml("name: dns\nport: 53\n").unwrap();
//! assert_eq!((port.name.as_str(), port.port), ("dns", 53));
//! let error = dynserde::yaml::<Port>("name: dns\nport: x\n").err().unwrap();
//! assert_eq!(error.location().unwrap().line(), 2);
//! ```

mod fault;
mod input;
mod interface;
mod output;

use serde::Deserializer;
use serde::de::{Deserialize, DeserializeOwned, DeserializeSeed, Error};
use serde_saphyr::Options;

/// Error of the functions for YAML.
pub use serde_saphyr::Error as YamlError;

use crate::input::Growing;
use crate::interface::Seed;
use crate::output::SeedOf;

/// Reads one YAML document.
///
/// # Errors
/// Invalid YAML, or a value that does not fit the type.
pub fn yaml<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    yaml_with(text, Options::default())
}

/// Reads one YAML document with these options.
///
/// # Errors
/// Invalid YAML, or a value that does not fit the type.
pub fn yaml_with<T: DeserializeOwned>(text: &str, options: Options) -> Result<T, YamlError> {
    read(|seed| yaml_into(text, options, seed))
}

/// Reads all YAML documents of a text that are not empty.
///
/// # Errors
/// Invalid YAML, or a value that does not fit the type.
pub fn yaml_documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, YamlError> {
    let documents: Vec<Document<T>> = serde_saphyr::from_multiple(text)?;
    Ok(documents.into_iter().map(|document| document.0).collect())
}

/// Reads a value from any deserializer.
///
/// # Errors
/// Invalid input, or a value that does not fit the type, as the deserializer reports it.
pub fn from<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    read(|seed| SeedOf(seed).deserialize(deserializer))
}

/// Reads one JSON value.
///
/// # Errors
/// Invalid JSON, or a value that does not fit the type.
pub fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    read(|seed| json_into(bytes, seed))
}

/// Document of a text with several.
struct Document<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Document<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Document<T>, D::Error> {
        from(deserializer).map(Document)
    }
}

fn read<'de, T: Deserialize<'de>, E: Error>(fill: impl FnOnce(&mut dyn Seed<'de>) -> Result<(), E>) -> Result<T, E> {
    let mut value = Growing::new(core::marker::PhantomData::<T>);
    fill(&mut value)?;
    value.take().ok_or_else(|| E::custom("no value"))
}

fn yaml_into<'de>(text: &'de str, options: Options, seed: &mut dyn Seed<'de>) -> Result<(), YamlError> {
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |document| SeedOf(seed).deserialize(document))
}

fn json_into<'de>(bytes: &'de [u8], seed: &mut dyn Seed<'de>) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    SeedOf(seed).deserialize(&mut deserializer)?;
    deserializer.end()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
