//! Traits between deserializers and types.
//!
//! | serde | here | made of |
//! |---|---|---|
//! | `Deserializer` | [`Source`] | a deserializer |
//! | `SeqAccess`, `MapAccess`, `EnumAccess` | [`Items`], [`Entries`], [`Choice`] | those of a deserializer |
//! | `Visitor` | [`Target`] | a visitor of a type |
//! | `DeserializeSeed` | [`Seed`] | a type |
//!
//! A deserializer or an access keeps its error while [`Fault::Kept`] passes through the code of the type.

use core::fmt;

use crate::fault::Fault;

/// Deserializer, used once.
pub(crate) trait Source<'de> {
    fn read(&mut self, hint: Hint, target: &mut dyn Target<'de>) -> Result<(), Fault>;

    fn is_human_readable(&self) -> bool;
}

/// Items of a sequence.
pub(crate) trait Items<'de> {
    /// Reads the next item. Returns false at the end.
    fn item(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Fault>;
}

/// Entries of a map.
pub(crate) trait Entries<'de> {
    /// Reads the next key. Returns false at the end.
    fn key(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Fault>;

    fn value(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Fault>;
}

/// Variant of an enum: first its name, then its content.
pub(crate) trait Choice<'de> {
    fn name(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Fault>;

    fn content(&mut self, content: Content<'_, 'de>) -> Result<(), Fault>;
}

/// Place for a value.
pub(crate) trait Target<'de> {
    fn visit(&mut self, given: Given<'_, 'de>) -> Result<(), Fault>;

    /// Writes what the place is for.
    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// Place for a value that knows how to read it.
pub(crate) trait Seed<'de> {
    fn read(&mut self, source: &mut dyn Source<'de>) -> Result<(), Fault>;
}

/// Value from a deserializer. There are few kinds, since each is code of each type.
pub(crate) enum Given<'a, 'de> {
    Unit,
    None,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Str(&'a str),
    Some(&'a mut dyn Source<'de>),
    Newtype(&'a mut dyn Source<'de>),
    Seq(&'a mut dyn Items<'de>),
    Map(&'a mut dyn Entries<'de>),
    Enum(&'a mut dyn Choice<'de>),
}

/// Content of a variant.
pub(crate) enum Content<'a, 'de> {
    Unit,
    Newtype(&'a mut dyn Seed<'de>),
    Tuple(usize, &'a mut dyn Target<'de>),
    Struct(&'static [&'static str], &'a mut dyn Target<'de>),
}

/// Kind of value that a type asks the deserializer for.
#[derive(Clone, Copy)]
pub(crate) enum Hint {
    Any,
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    Char,
    Str,
    String,
    Option,
    Unit,
    Seq,
    Map,
    Identifier,
    IgnoredAny,
    UnitStruct(&'static str),
    NewtypeStruct(&'static str),
    Tuple(usize),
    TupleStruct(&'static str, usize),
    Struct(&'static str, &'static [&'static str]),
    Enum(&'static str, &'static [&'static str]),
}
