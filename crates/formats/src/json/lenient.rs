//! JSON that nobody vouches for: a field of another type than expected counts as absent, and does not cost the
//! record it stands in.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::json::nesting::is_too_deep;

/// Reads one JSON value, of which strings may hold half surrogate pairs and broken UTF-8, as programs write them
/// that cut text anywhere.
///
/// # Errors
/// When it is not one JSON value, or nests too deeply.
pub(crate) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    // The parser skips what it does not need by recursion without a limit.
    if is_too_deep(bytes) {
        return Err("nested too deeply".to_owned());
    }
    let mut de = sonic_rs::Deserializer::from_slice(bytes).utf8_lossy();
    let value = de.deserialize().map_err(|e| e.to_string())?;
    de.end().map_err(|e| e.to_string())?;
    Ok(value)
}

/// A string, or nothing.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(Option<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// The string, unless it is empty.
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// The string, or an empty one.
    pub(crate) fn or_empty(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The string, unless it is empty.
    pub(crate) fn take(self) -> Option<Cow<'a, str>> {
        self.0.filter(|text| !text.is_empty())
    }
}

impl<'a> From<Cow<'a, str>> for Text<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self(Some(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        Ok(match Scalar::deserialize(de)? {
            Scalar::Text(text) => Self(Some(text)),
            _ => Self(None),
        })
    }
}

/// Whether a field is `true`.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Flag(pub(crate) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        Ok(Self(matches!(Scalar::deserialize(de)?, Scalar::Bool(true))))
    }
}

/// A number, or nothing.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Number(Option<f64>);

impl Number {
    /// The number.
    pub(crate) fn get(self) -> Option<f64> {
        self.0
    }

    /// The number without what follows its point.
    #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
    pub(crate) fn whole(self) -> Option<i64> {
        self.0.map(|number| number as i64)
    }

    /// The number as a count, which is never below zero.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from f64 saturates")]
    pub(crate) fn count(self) -> u64 {
        self.0.unwrap_or_default() as u64
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        Ok(match Scalar::deserialize(de)? {
            Scalar::Number(number) => Self(Some(number)),
            _ => Self(None),
        })
    }
}

enum Scalar<'a> {
    Other,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        de.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

#[expect(clippy::cast_precision_loss, reason = "a count of tokens or milliseconds fits")]
impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar::Other)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Scalar::Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Scalar::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Scalar::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Borrowed(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        skip_seq(seq).map(|()| Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        skip_map(map).map(|()| Scalar::Other)
    }
}

/// What a field holds whose shape varies.
#[derive(Debug, Default)]
pub(crate) enum Shaped<'a, T> {
    /// None of the others.
    #[default]
    Nothing,
    /// A string.
    Text(Cow<'a, str>),
    /// An object.
    Object(T),
    /// The objects of a list.
    List(Vec<T>),
}

impl<T> Shaped<'_, T> {
    /// The object, if it is one.
    pub(crate) fn object(self) -> Option<T> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Shaped<'a, T> {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        de.deserialize_any(ShapedVisitor(PhantomData))
    }
}

struct ShapedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ShapedVisitor<T> {
    type Value = Shaped<'de, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Shaped::Nothing)
    }

    fn visit_bool<E>(self, _value: bool) -> Result<Self::Value, E> {
        Ok(Shaped::Nothing)
    }

    fn visit_u64<E>(self, _value: u64) -> Result<Self::Value, E> {
        Ok(Shaped::Nothing)
    }

    fn visit_i64<E>(self, _value: i64) -> Result<Self::Value, E> {
        Ok(Shaped::Nothing)
    }

    fn visit_f64<E>(self, _value: f64) -> Result<Self::Value, E> {
        Ok(Shaped::Nothing)
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Shaped::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Shaped::Text(Cow::Borrowed(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut objects = Vec::new();
        while let Some(item) = seq.next_element::<Shaped<'de, T>>()? {
            objects.extend(item.object());
        }
        Ok(Shaped::List(objects))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Shaped::Object)
    }
}

fn skip_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Record<'a> {
        #[serde(borrow)]
        text: Text<'a>,
        flag: Flag,
        number: Number,
        #[serde(borrow)]
        shaped: Shaped<'a, Inner>,
    }

    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Inner {
        number: Number,
    }

    #[test]
    fn a_field_of_another_type_is_absent() {
        for odd in ["null", "[1,[2]]", r#"{"a":{}}"#, "-1.5", "true", "18446744073709551616", r#""""#] {
            let line = format!(r#"{{"text":{odd},"flag":{odd},"number":{odd},"shaped":{odd},"last":1}}"#);
            let record: Record<'_> = read(line.as_bytes()).unwrap();
            assert_eq!((record.text.get(), record.flag.0), (None, odd == "true"), "{odd}");
            assert_eq!(record.number.count() > 0, odd.starts_with('1'), "{odd}");
        }
    }

    #[test]
    fn a_shape_is_what_is_there() {
        let shape = |json: &str| match read::<Record<'_>>(json.as_bytes()).unwrap().shaped {
            Shaped::Nothing => "nothing".to_owned(),
            Shaped::Text(text) => format!("text {text}"),
            Shaped::Object(inner) => format!("object {}", inner.number.count()),
            Shaped::List(list) => format!("list of {}", list.len()),
        };
        assert_eq!(shape(r#"{"shaped":"a\nb"}"#), "text a\nb");
        assert_eq!(shape(r#"{"shaped":{"number":3}}"#), "object 3");
        assert_eq!(shape(r#"{"shaped":[{"number":3},"x",[{}],null,{}]}"#), "list of 2");
        assert_eq!(shape(r#"{"shaped":3}"#), "nothing");
    }

    #[test]
    fn broken_text_is_replaced() {
        let record: Record<'_> = read(br#"{"text":"cut \ud83d here"}"#).unwrap();
        assert_eq!(record.text.get(), Some("cut \u{fffd} here"));
        let record: Record<'_> = read(b"{\"text\":\"cut \xf0\x9f here\"}").unwrap();
        assert!(record.text.or_empty().starts_with("cut \u{fffd}"));
    }

    #[test]
    fn deep_nesting_is_refused() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let nested = |n: usize| format!(r#"{{"x":{}1{}}}"#, open.repeat(n), close.repeat(n));
            assert!(read::<Record<'_>>(nested(400).as_bytes()).is_ok());
            assert!(read::<Record<'_>>(nested(1_000_000).as_bytes()).is_err());
            assert!(read::<Record<'_>>(open.repeat(1_000_000).as_bytes()).is_err());
        }
        let text = format!(r#"{{"text":"{}\"["}}"#, "[{".repeat(5000));
        assert_eq!(read::<Record<'_>>(text.as_bytes()).unwrap().text.or_empty().len(), 10_002);
    }

    #[test]
    fn rubbish_is_an_error() {
        for rubbish in ["", "{", "nope", r#"{"text":"a"} x"#, r#"{"text":"\u12"}"#, r#"{"text"}"#] {
            assert!(read::<Record<'_>>(rubbish.as_bytes()).is_err(), "{rubbish}");
        }
    }
}
