//! Reads JSON in which any field may be missing, null or of another type than expected: such a field counts as absent,
//! and the rest of its record is still read.

mod parser;
mod values;

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number as JsonNumber;

use self::parser::Parser;
pub(crate) use values::{Count, Flag, Json, Number, Object, Objects, Prose, Shaped, Text, Timestamp};

/// Reads one JSON value. Lone surrogates and invalid UTF-8, which programs write where they cut a text in two, become
/// U+FFFD.
///
/// # Errors
/// When it is not one JSON value, or what is read of it nests more than 512 levels deep.
pub(crate) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    let mut parser = Parser::new(bytes);
    let value = T::deserialize(&mut parser).map_err(|error| error.to_string())?;
    parser.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// A type that any JSON value can be read as; a value it has no use for gives the default.
pub(crate) trait Tolerant<'de>: Sized + Default {
    /// Reads a string.
    fn text(_text: Cow<'de, str>) -> Self {
        Self::default()
    }

    /// Reads a number.
    fn number(_number: JsonNumber) -> Self {
        Self::default()
    }

    /// Reads a boolean.
    fn flag(_flag: bool) -> Self {
        Self::default()
    }

    /// Reads an array, to its end.
    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    /// Reads an object, to its end.
    fn object<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    /// Reads any value; `Deserialize` of the type calls this.
    fn any<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        de.deserialize_any(AnyValue(PhantomData))
    }
}

struct AnyValue<T>(PhantomData<T>);

impl<'de, T: Tolerant<'de>> Visitor<'de> for AnyValue<T> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<T, E> {
        Ok(T::text(Cow::Owned(text)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(T::number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<T, E> {
        Ok(T::number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<T, E> {
        Ok(JsonNumber::from_f64(number).map_or_else(T::default, T::number))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<T, E> {
        Ok(T::flag(flag))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<T, A::Error> {
        T::list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::object(fields)
    }
}

/// Implements `Deserialize` for [`Tolerant`] types; `Name<'a>` for those that borrow.
macro_rules! deserialize_tolerantly {
    ($($name:ident $(<$life:lifetime>)?),+ $(,)?) => {$(
        deserialize_tolerantly!(@one $name $($life)?);
    )+};
    (@one $name:ident) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
                <Self as $crate::json::tolerant::Tolerant<'de>>::any(de)
            }
        }
    };
    (@one $name:ident $life:lifetime) => {
        impl<'de: $life, $life> serde::Deserialize<'de> for $name<$life> {
            fn deserialize<D: serde::Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
                <$name<'de> as $crate::json::tolerant::Tolerant<'de>>::any(de)
            }
        }
    };
}
pub(crate) use deserialize_tolerantly;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Record<'a> {
        #[serde(borrow)]
        id: Text<'a>,
        tokens: Count,
        cost: Number,
        ok: Flag,
        ts: Timestamp,
        #[serde(borrow)]
        inner: Object<Inner<'a>>,
        #[serde(borrow)]
        list: Objects<Inner<'a>>,
        #[serde(borrow)]
        shaped: Shaped<'a, Inner<'a>>,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Inner<'a> {
        #[serde(borrow)]
        name: Text<'a>,
    }

    fn record(json: &str) -> Record<'_> {
        read(json.as_bytes()).unwrap()
    }

    #[test]
    fn fields_of_another_type_are_absent_and_lose_nothing_else() {
        let others = [
            "null",
            "true",
            "-1.5",
            "\"x\"",
            "[[1],{}]",
            "{\"name\":[1]}",
            "18446744073709551616",
            "[1,[2]]",
        ];
        for field in ["tokens", "cost", "ok", "ts", "inner", "list", "shaped", "unknown"] {
            for other in others {
                let json = format!(r#"{{"{field}":{other},"id":"a"}}"#);
                assert_eq!(record(&json).id.as_str(), "a", "{json}");
            }
        }
        let record = record(r#"{"id":7,"tokens":12.0,"cost":1,"list":[1,{"name":"b"}],"inner":[]}"#);
        assert_eq!((record.id.as_str(), record.tokens, record.cost.get()), ("7", Count(12), Some(1.0)));
        assert_eq!((record.list.0.len(), record.inner.0.is_none()), (1, true));
    }

    #[test]
    fn a_text_cut_inside_a_character_is_still_read() {
        assert_eq!(record(r#"{"id":"cut \ud83d here"}"#).id.as_str(), "cut \u{fffd} here");
        let record: Record<'_> = read(b"{\"id\":\"cut \xf0\x9f here\",\"tokens\":1}").unwrap();
        assert!(record.id.as_str().starts_with("cut \u{fffd}") && record.tokens == Count(1));
    }

    #[test]
    fn deep_nesting_is_skipped_or_refused_and_brackets_in_strings_are_not_nesting() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let nested = |n: usize| format!(r#"{{"x":{}1{}}}"#, open.repeat(n), close.repeat(n));
            assert!(read::<Record<'_>>(nested(1_000_000).as_bytes()).is_ok());
            assert!(read::<Record<'_>>(open.repeat(1_000_000).as_bytes()).is_err());
            assert!(read::<Json>(nested(400).as_bytes()).is_ok());
            assert!(read::<Json>(nested(1_000_000).as_bytes()).is_err());
        }
        let flat = format!(r#"{{"id":"\"{}","x":[{}1]}}"#, "[{".repeat(2_000), "[],".repeat(2_000));
        assert_eq!(record(&flat).id.as_str().len(), 4_001);
    }

    #[test]
    fn what_is_not_json_is_an_error() {
        for text in ["", "{", "nope", r#"{"id":"a"} x"#, r#"{"id":"\u12"}"#, r#"{"id"}"#] {
            assert!(read::<Record<'_>>(text.as_bytes()).is_err(), "{text}");
        }
    }
}
