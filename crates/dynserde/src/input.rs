//! The side of types: each is compiled once, for any deserializer.

use core::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};

use crate::fault::Fault;
use crate::interface::{Choice, Content, Entries, Given, Hint, Items, Seed, Source, Target};

/// Seed of a type, and then its value.
pub(crate) struct Growing<'de, S: DeserializeSeed<'de>> {
    seed: Option<S>,
    value: Option<S::Value>,
}

impl<'de, S: DeserializeSeed<'de>> Growing<'de, S> {
    pub(crate) fn new(seed: S) -> Growing<'de, S> {
        Growing { seed: Some(seed), value: None }
    }

    pub(crate) fn take(&mut self) -> Option<S::Value> {
        self.value.take()
    }

    fn finish(mut self) -> Result<S::Value, Fault> {
        self.take().ok_or_else(no_value)
    }
}

impl<'de, S: DeserializeSeed<'de>> Seed<'de> for Growing<'de, S> {
    fn read(&mut self, source: &mut dyn Source<'de>) -> Result<(), Fault> {
        let seed = self.seed.take().ok_or_else(no_value)?;
        self.value = Some(seed.deserialize(DeserializerOf(source))?);
        Ok(())
    }
}

/// Visitor of a type, and then its value.
struct Filling<'de, V: Visitor<'de>> {
    visitor: Option<V>,
    value: Option<V::Value>,
}

impl<'de, V: Visitor<'de>> Filling<'de, V> {
    /// Returns the value with which `fill` fills a place.
    fn value(visitor: V, fill: impl FnOnce(&mut dyn Target<'de>) -> Result<(), Fault>) -> Result<V::Value, Fault> {
        let mut filling = Filling { visitor: Some(visitor), value: None };
        fill(&mut filling)?;
        filling.value.ok_or_else(no_value)
    }
}

impl<'de, V: Visitor<'de>> Target<'de> for Filling<'de, V> {
    fn visit(&mut self, given: Given<'_, 'de>) -> Result<(), Fault> {
        let visitor = self.visitor.take().ok_or_else(no_value)?;
        self.value = Some(visit(visitor, given)?);
        Ok(())
    }

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.as_ref().map_or(Ok(()), |visitor| visitor.expecting(out))
    }
}

fn visit<'de, V: Visitor<'de>>(visitor: V, given: Given<'_, 'de>) -> Result<V::Value, Fault> {
    match given {
        Given::Unit => visitor.visit_unit(),
        Given::None => visitor.visit_none(),
        Given::Bool(value) => visitor.visit_bool(value),
        Given::Signed(value) => visitor.visit_i64(value),
        Given::Unsigned(value) => visitor.visit_u64(value),
        Given::Float(value) => visitor.visit_f64(value),
        Given::Str(value) => visitor.visit_str(value),
        Given::Some(source) => visitor.visit_some(DeserializerOf(source)),
        Given::Newtype(source) => visitor.visit_newtype_struct(DeserializerOf(source)),
        Given::Seq(items) => visitor.visit_seq(SeqOf(items)),
        Given::Map(entries) => visitor.visit_map(MapOf(entries)),
        Given::Enum(choice) => visitor.visit_enum(EnumOf(choice)),
    }
}

#[cold]
fn no_value() -> Fault {
    Fault::custom("no value")
}

/// Deserializer for a type.
struct DeserializerOf<'a, 'de>(&'a mut dyn Source<'de>);

/// Methods of a deserializer, each with its hint.
macro_rules! hints {
    ($($method:ident($($argument:ident: $type:ty),*) $hint:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, Fault> {
            Filling::value(visitor, |target| self.0.read($hint, target))
        })*
    };
}

impl<'de> Deserializer<'de> for DeserializerOf<'_, 'de> {
    type Error = Fault;

    hints! {
        deserialize_any() Hint::Any;
        deserialize_bool() Hint::Bool;
        deserialize_i8() Hint::I8;
        deserialize_i16() Hint::I16;
        deserialize_i32() Hint::I32;
        deserialize_i64() Hint::I64;
        deserialize_u8() Hint::U8;
        deserialize_u16() Hint::U16;
        deserialize_u32() Hint::U32;
        deserialize_u64() Hint::U64;
        deserialize_f32() Hint::F32;
        deserialize_f64() Hint::F64;
        deserialize_char() Hint::Char;
        deserialize_str() Hint::Str;
        deserialize_string() Hint::String;
        deserialize_option() Hint::Option;
        deserialize_unit() Hint::Unit;
        deserialize_seq() Hint::Seq;
        deserialize_map() Hint::Map;
        deserialize_identifier() Hint::Identifier;
        deserialize_ignored_any() Hint::IgnoredAny;
        deserialize_unit_struct(name: &'static str) Hint::UnitStruct(name);
        deserialize_newtype_struct(name: &'static str) Hint::NewtypeStruct(name);
        deserialize_tuple(length: usize) Hint::Tuple(length);
        deserialize_tuple_struct(name: &'static str, length: usize) Hint::TupleStruct(name, length);
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) Hint::Struct(name, fields);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) Hint::Enum(name, variants);
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fault> {
        Err(Fault::custom("bytes are not supported"))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_bytes(visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

struct SeqOf<'a, 'de>(&'a mut dyn Items<'de>);

impl<'de> SeqAccess<'de> for SeqOf<'_, 'de> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Fault> {
        let mut item = Growing::new(seed);
        if self.0.item(&mut item)? { item.finish().map(Some) } else { Ok(None) }
    }
}

struct MapOf<'a, 'de>(&'a mut dyn Entries<'de>);

impl<'de> MapAccess<'de> for MapOf<'_, 'de> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Fault> {
        let mut key = Growing::new(seed);
        if self.0.key(&mut key)? { key.finish().map(Some) } else { Ok(None) }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let mut value = Growing::new(seed);
        self.0.value(&mut value)?;
        value.finish()
    }
}

/// Enum, and its content after its name.
struct EnumOf<'a, 'de>(&'a mut dyn Choice<'de>);

impl<'de> EnumAccess<'de> for EnumOf<'_, 'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        let mut name = Growing::new(seed);
        self.0.name(&mut name)?;
        Ok((name.finish()?, self))
    }
}

impl<'de> VariantAccess<'de> for EnumOf<'_, 'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        self.0.content(Content::Unit)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        let mut value = Growing::new(seed);
        self.0.content(Content::Newtype(&mut value))?;
        value.finish()
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Fault> {
        Filling::value(visitor, |target| self.0.content(Content::Tuple(length, target)))
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        Filling::value(visitor, |target| self.0.content(Content::Struct(fields, target)))
    }
}
