//! The side of deserializers: each is compiled once, for any type.

use core::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};

use crate::fault::Fault;
use crate::interface::{Choice, Content, Entries, Given, Hint, Items, Seed, Source, Target};

/// Seed for a deserializer.
pub(crate) struct SeedOf<'a, 'de>(pub(crate) &'a mut dyn Seed<'de>);

impl<'de> DeserializeSeed<'de> for SeedOf<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        with_source(deserializer, |source| self.0.read(source))
    }
}

/// Calls `read` with a deserializer as a source.
fn with_source<'de, D: Deserializer<'de>>(
    deserializer: D,
    read: impl FnOnce(&mut dyn Source<'de>) -> Result<(), Fault>,
) -> Result<(), D::Error> {
    let mut source = SourceOf { deserializer: Some(deserializer), error: None };
    read(&mut source).map_err(|fault| fault.into_error(source.error))
}

/// Keeps an error and returns the fault that says so.
fn keep<T, E>(result: Result<T, E>, error: &mut Option<E>) -> Result<T, Fault> {
    result.map_err(|failed| {
        *error = Some(failed);
        Fault::Kept
    })
}

/// Returns what is used once.
fn once<T>(place: &mut Option<T>) -> Result<T, Fault> {
    place.take().ok_or_else(|| Fault::custom("value read twice"))
}

struct SourceOf<'de, D: Deserializer<'de>> {
    deserializer: Option<D>,
    error: Option<D::Error>,
}

impl<'de, D: Deserializer<'de>> Source<'de> for SourceOf<'de, D> {
    fn read(&mut self, hint: Hint, target: &mut dyn Target<'de>) -> Result<(), Fault> {
        let given = deserialize(once(&mut self.deserializer)?, hint, TargetOf(target));
        keep(given, &mut self.error)
    }

    fn is_human_readable(&self) -> bool {
        self.deserializer.as_ref().is_none_or(Deserializer::is_human_readable)
    }
}

fn deserialize<'de, D: Deserializer<'de>>(from: D, hint: Hint, target: TargetOf<'_, 'de>) -> Result<(), D::Error> {
    match hint {
        Hint::Any => from.deserialize_any(target),
        Hint::Bool => from.deserialize_bool(target),
        Hint::I8 => from.deserialize_i8(target),
        Hint::I16 => from.deserialize_i16(target),
        Hint::I32 => from.deserialize_i32(target),
        Hint::I64 => from.deserialize_i64(target),
        Hint::U8 => from.deserialize_u8(target),
        Hint::U16 => from.deserialize_u16(target),
        Hint::U32 => from.deserialize_u32(target),
        Hint::U64 => from.deserialize_u64(target),
        Hint::F32 => from.deserialize_f32(target),
        Hint::F64 => from.deserialize_f64(target),
        Hint::Char => from.deserialize_char(target),
        Hint::Str => from.deserialize_str(target),
        Hint::String => from.deserialize_string(target),
        Hint::Option => from.deserialize_option(target),
        Hint::Unit => from.deserialize_unit(target),
        Hint::Seq => from.deserialize_seq(target),
        Hint::Map => from.deserialize_map(target),
        Hint::Identifier => from.deserialize_identifier(target),
        Hint::IgnoredAny => from.deserialize_ignored_any(target),
        Hint::UnitStruct(name) => from.deserialize_unit_struct(name, target),
        Hint::NewtypeStruct(name) => from.deserialize_newtype_struct(name, target),
        Hint::Tuple(length) => from.deserialize_tuple(length, target),
        Hint::TupleStruct(name, length) => from.deserialize_tuple_struct(name, length, target),
        Hint::Struct(name, fields) => from.deserialize_struct(name, fields, target),
        Hint::Enum(name, variants) => from.deserialize_enum(name, variants, target),
    }
}

/// Visitor for a deserializer.
struct TargetOf<'a, 'de>(&'a mut dyn Target<'de>);

/// Visitor methods for values without parts.
macro_rules! plain {
    ($($method:ident($type:ty) $given:ident)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<(), E> {
            self.0.visit(Given::$given(value)).map_err(|fault| fault.into_error(None))
        })*
    };
}

impl<'de> Visitor<'de> for TargetOf<'_, 'de> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(out)
    }

    plain! {
        visit_bool(bool) Bool
        visit_i64(i64) Signed
        visit_u64(u64) Unsigned
        visit_f64(f64) Float
        visit_str(&str) Str
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.visit(Given::Unit).map_err(|fault| fault.into_error(None))
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.0.visit(Given::None).map_err(|fault| fault.into_error(None))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        with_source(deserializer, |source| self.0.visit(Given::Some(source)))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        with_source(deserializer, |source| self.0.visit(Given::Newtype(source)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<(), A::Error> {
        let mut items = ItemsOf { access, error: None };
        self.0.visit(Given::Seq(&mut items)).map_err(|fault| fault.into_error(items.error))
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<(), A::Error> {
        let mut entries = EntriesOf { access, error: None };
        self.0.visit(Given::Map(&mut entries)).map_err(|fault| fault.into_error(entries.error))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<(), A::Error> {
        let mut choice = ChoiceOf { access: Some(access), variant: None, error: None };
        self.0.visit(Given::Enum(&mut choice)).map_err(|fault| fault.into_error(choice.error))
    }
}

struct ItemsOf<'de, A: SeqAccess<'de>> {
    access: A,
    error: Option<A::Error>,
}

impl<'de, A: SeqAccess<'de>> Items<'de> for ItemsOf<'de, A> {
    fn item(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Fault> {
        let item = self.access.next_element_seed(SeedOf(seed));
        keep(item, &mut self.error).map(|item| item.is_some())
    }
}

struct EntriesOf<'de, A: MapAccess<'de>> {
    access: A,
    error: Option<A::Error>,
}

impl<'de, A: MapAccess<'de>> Entries<'de> for EntriesOf<'de, A> {
    fn key(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Fault> {
        let key = self.access.next_key_seed(SeedOf(seed));
        keep(key, &mut self.error).map(|key| key.is_some())
    }

    fn value(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Fault> {
        let value = self.access.next_value_seed(SeedOf(seed));
        keep(value, &mut self.error)
    }
}

struct ChoiceOf<'de, A: EnumAccess<'de>> {
    access: Option<A>,
    variant: Option<A::Variant>,
    error: Option<A::Error>,
}

impl<'de, A: EnumAccess<'de>> Choice<'de> for ChoiceOf<'de, A> {
    fn name(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Fault> {
        let variant = once(&mut self.access)?.variant_seed(SeedOf(seed));
        let ((), variant) = keep(variant, &mut self.error)?;
        self.variant = Some(variant);
        Ok(())
    }

    fn content(&mut self, content: Content<'_, 'de>) -> Result<(), Fault> {
        let variant = once(&mut self.variant)?;
        let read = match content {
            Content::Unit => variant.unit_variant(),
            Content::Newtype(seed) => variant.newtype_variant_seed(SeedOf(seed)),
            Content::Tuple(length, target) => variant.tuple_variant(length, TargetOf(target)),
            Content::Struct(fields, target) => variant.struct_variant(fields, TargetOf(target)),
        };
        keep(read, &mut self.error)
    }
}
