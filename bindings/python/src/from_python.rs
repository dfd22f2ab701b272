//! Reads values of Python into deloop's types in one pass, without a text in between.

use pyo3::prelude::*;
use pyo3::types::dict::BoundDictIterator;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde::de::value::{StrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::failure::Failure;
use crate::plain::{Plain, key_of, resolved, text_of};

/// Deeper values take the long way, which has no recursion.
const DEPTH: usize = 64;

/// How much may still be read, in bytes of JSON, more or less.
pub(crate) struct Room(std::cell::Cell<usize>);

impl Room {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(std::cell::Cell::new(bytes))
    }

    fn take(&self, bytes: usize) -> Result<(), Failure> {
        let left = self.0.get().checked_sub(bytes).ok_or(Failure::Large)?;
        self.0.set(left);
        Ok(())
    }
}

/// A value of Python, as something that can be read.
pub(crate) struct PyValue<'a, 'py> {
    pub(crate) value: &'a Bound<'py, PyAny>,
    pub(crate) room: &'a Room,
    pub(crate) depth: usize,
}

impl<'a, 'py> PyValue<'a, 'py> {
    pub(crate) fn new(value: &'a Bound<'py, PyAny>, room: &'a Room) -> Self {
        Self { value, room, depth: 0 }
    }

    fn visit<'de, V: Visitor<'de>>(&self, found: Plain<'_, 'py>, visitor: V) -> Result<V::Value, Failure> {
        if self.depth > DEPTH {
            return Err(Failure::Large);
        }
        self.room.take(4)?;
        let (room, depth) = (self.room, self.depth + 1);
        match found {
            Plain::Nothing => visitor.visit_unit(),
            Plain::Bool(flag) => visitor.visit_bool(flag),
            Plain::Unsigned(number) => visitor.visit_u64(number),
            Plain::Signed(number) => visitor.visit_i64(number),
            Plain::Float(number) => visitor.visit_f64(number),
            Plain::Text(text) => {
                room.take(text.len())?;
                visitor.visit_str(&text)
            }
            Plain::List(list) => visitor.visit_seq(Items { items: Elements::List(list), at: 0, room, depth }),
            Plain::Tuple(tuple) => {
                visitor.visit_seq(Items { items: Elements::Tuple(tuple), at: 0, room, depth })
            }
            Plain::Dict(dict) => visitor.visit_map(Entries::new(dict, room, depth)),
            Plain::Other(_) => Err(Failure::type_error("can't read this value")),
        }
    }
}

impl<'de> Deserializer<'de> for PyValue<'_, '_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        resolved(self.value, |found| self.visit(found, visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if is_null(self.value) { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        resolved(self.value, |found| match found {
            Plain::Text(text) => visitor.visit_enum(IntoDeserializer::<Failure>::into_deserializer(&*text)),
            other => self.visit(other, visitor),
        })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct identifier
    }
}

/// Returns whether a value is null in JSON: also one that JSON has no number for.
fn is_null(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.cast::<PyFloat>().is_ok_and(|number| !number.value().is_finite())
        || value.cast::<PyInt>().is_ok_and(|number| number.extract::<f64>().is_err())
}

enum Elements<'a, 'py> {
    List(&'a Bound<'py, PyList>),
    Tuple(&'a Bound<'py, PyTuple>),
}

struct Items<'a, 'py> {
    items: Elements<'a, 'py>,
    at: usize,
    room: &'a Room,
    depth: usize,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        // Asked for its length each time: other code may change it.
        let item = match &self.items {
            Elements::List(list) if self.at < list.len() => list.get_item(self.at)?,
            Elements::Tuple(tuple) if self.at < tuple.len() => tuple.get_item(self.at)?,
            _ => return Ok(None),
        };
        let at = self.at;
        self.at += 1;
        let read = seed.deserialize(PyValue { value: &item, room: self.room, depth: self.depth });
        read.map(Some).map_err(|failure| failure.at(|| format!("[{at}]")))
    }
}

struct Entries<'a, 'py> {
    entries: BoundDictIterator<'py>,
    next: Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    room: &'a Room,
    depth: usize,
}

impl<'a, 'py> Entries<'a, 'py> {
    fn new(dict: &Bound<'py, PyDict>, room: &'a Room, depth: usize) -> Self {
        Self { entries: dict.iter(), next: None, room, depth }
    }
}

impl<'de> MapAccess<'de> for Entries<'_, '_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        let read = match key.cast::<PyString>() {
            Ok(text) => {
                let text = text_of(text)?;
                self.room.take(text.len() + 4)?;
                seed.deserialize(StrDeserializer::<Failure>::new(&text))
            }
            Err(_) => {
                let text = key_of(&key)?;
                self.room.take(text.len() + 4)?;
                seed.deserialize(StringDeserializer::<Failure>::new(text))
            }
        };
        self.next = Some((key, value));
        read.map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let Some((key, value)) = self.next.take() else {
            return Err(Failure::value_error("a value without a key"));
        };
        let read = seed.deserialize(PyValue { value: &value, room: self.room, depth: self.depth });
        read.map_err(|failure| failure.at(|| key_of(&key).unwrap_or_default()))
    }
}
