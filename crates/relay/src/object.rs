//! Stored objects: key and resource version from their metadata, and their bytes in two forms.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use host::invariant::{Expected as _, holds};

use crate::strip::{leave_out_pods, strip};
use crate::table::Kind;
use crate::wire::{Field, Fields, Value, WireError, entry, put_bytes};

/// Field numbers of ObjectMeta.
const NAME: u64 = 1;
const NAMESPACE: u64 = 3;
const UID: u64 = 5;
const VERSION: u64 = 6;
const LABELS: u64 = 11;

/// Namespace and name. The namespace is empty for objects without one.
pub type Key = (Arc<str>, Arc<str>);

/// Object that cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// The bytes are not a message of the kind.
    #[error("{0}")]
    Wire(#[from] WireError),
    /// The object has no name.
    #[error("it has no name")]
    Unnamed,
    /// The resource version is not a number. Positions of a relay must be comparable (KEP-5504).
    #[error("its resource version is not a number")]
    Version,
}

/// Object in two forms.
#[derive(Clone, Debug)]
pub struct Stored {
    pub(crate) key: Key,
    pub(crate) version: u64,
    /// Bytes as the API server sent them.
    pub(crate) full: Bytes,
    /// Fields of the profile `dns-1` alone.
    pub(crate) stripped: Bytes,
}

impl Stored {
    /// Creates an object from its bytes.
    pub(crate) fn new(kind: Kind, bytes: &[u8]) -> Result<Stored, ObjectError> {
        let (mut name, mut namespace, mut version) = ("", "", "");
        each_of_metadata(bytes, |field| {
            match field.number {
                NAME => name = field.value.text()?,
                NAMESPACE => namespace = field.value.text()?,
                VERSION => version = field.value.text()?,
                _ => {}
            }
            Ok(())
        })?;
        if name.is_empty() {
            return Err(ObjectError::Unnamed);
        }
        let version = number(version).ok_or(ObjectError::Version)?;
        let stripped = leave_out_pods(kind, &strip(kind, bytes)?)?.into();
        Ok(Stored { key: (namespace.into(), name.into()), version, full: Bytes::copy_from_slice(bytes), stripped })
    }

    /// Returns the object with another resource version.
    pub(crate) fn with_version(&self, version: u64) -> Stored {
        let replace = |bytes: &Bytes| {
            let replaced = replace_version(bytes, version).ok().expected("an object that was valid when it was stored");
            replaced.map_or_else(|| bytes.clone(), Bytes::from)
        };
        Stored { key: self.key.clone(), version, full: replace(&self.full), stripped: replace(&self.stripped) }
    }

    /// Returns true if this is a state of the same object, and not of a later one with its name.
    pub(crate) fn is_same(self: &Arc<Self>, other: &Arc<Stored>) -> bool {
        Arc::ptr_eq(self, other) || self.uid() == other.uid()
    }

    /// Returns the UID. It is empty without one, which the API server does not send.
    pub(crate) fn uid(&self) -> &str {
        self.text_in(1, UID)
    }

    /// Size of the bytes in both forms.
    pub(crate) fn size(&self) -> usize {
        self.full.len() + self.stripped.len()
    }

    /// Returns the value of a label.
    pub(crate) fn label(&self, wanted: &str) -> Option<&str> {
        let mut found = None;
        let read = each_of_metadata(&self.full, |field| {
            if field.number == LABELS {
                let (key, value) = entry(field.value.bytes()?)?;
                if key == wanted {
                    found = Some(value);
                }
            }
            Ok(())
        });
        holds(read.is_ok(), "the labels were valid when the object was stored");
        found
    }

    /// Returns a text in a message of the object, such as `status.phase` of a Pod, by the numbers of both fields.
    pub(crate) fn text_in(&self, message: u64, number: u64) -> &str {
        let inner = last(&self.full, message).and_then(|value| value.bytes().ok()).unwrap_or_default();
        last(inner, number).and_then(|value| value.text().ok()).unwrap_or_default()
    }
}

fn last(message: &[u8], number: u64) -> Option<Value<'_>> {
    Fields::of(message).map_while(Result::ok).filter(|field| field.number == number).last().map(|field| field.value)
}

/// Parses a resource version. The API server writes them without leading zeros.
pub(crate) fn number(version: &str) -> Option<u64> {
    version.bytes().all(|byte| byte.is_ascii_digit()).then(|| version.parse().ok())?
}

fn each_of_metadata<'a>(
    object: &'a [u8],
    mut each: impl FnMut(Field<'a>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    for field in Fields::of(object) {
        let field = field?;
        if field.number == 1 {
            Fields::of(field.value.bytes()?).try_for_each(|field| each(field?))?;
        }
    }
    Ok(())
}

fn replace_version(object: &[u8], version: u64) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::with_capacity(object.len() + 8);
    for field in Fields::of(object) {
        let field = field?;
        if field.number != 1 {
            out.extend_from_slice(field.raw);
            continue;
        }
        let mut metadata = Vec::new();
        for field in Fields::of(field.value.bytes()?) {
            let field = field?;
            if field.number == VERSION {
                put_bytes(&mut metadata, VERSION, version.to_string().as_bytes());
            } else {
                metadata.extend_from_slice(field.raw);
            }
        }
        put_bytes(&mut out, 1, &metadata);
    }
    Ok(out)
}

/// Orders objects as lists of the API server do: by namespace and name.
pub(crate) fn by_key(left: &Stored, right: &Stored) -> Ordering {
    left.key.cmp(&right.key)
}
