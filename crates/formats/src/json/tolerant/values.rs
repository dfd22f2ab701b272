//! The types of a tolerant record's fields.

use std::borrow::Cow;

use deloop_types::Millis;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer};
use serde_json::{Number as JsonNumber, Value};

use super::{Tolerant, deserialize_tolerantly};

/// A string, or the digits of a number, as some agents write ids.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

impl<'de> Tolerant<'de> for Text<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }

    fn number(number: JsonNumber) -> Self {
        Self(Some(Cow::Owned(number.to_string())))
    }
}

impl<'a> Text<'a> {
    /// Returns the text, empty if there is none.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the text, unless it is empty.
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// Takes the text, unless it is empty.
    pub(crate) fn take(self) -> Option<Cow<'a, str>> {
        self.0.filter(|text| !text.is_empty())
    }

    /// Takes the text as a `String`, unless it is empty.
    pub(crate) fn owned(self) -> Option<String> {
        self.take().map(Cow::into_owned)
    }
}

impl<'a> From<Cow<'a, str>> for Text<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self(Some(text))
    }
}

/// A number that is not negative, as counts of tokens are; anything else is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl<'de> Tolerant<'de> for Count {
    fn number(number: JsonNumber) -> Self {
        Self(number.as_u64().unwrap_or_else(|| Number(number.as_f64()).count()))
    }
}

/// Any number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Number(pub(crate) Option<f64>);

impl<'de> Tolerant<'de> for Number {
    fn number(number: JsonNumber) -> Self {
        Self(number.as_f64())
    }
}

impl Number {
    /// Returns the number.
    pub(crate) fn get(self) -> Option<f64> {
        self.0
    }

    /// Returns the number without its fraction.
    #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
    pub(crate) fn whole(self) -> Option<i64> {
        self.0.map(|number| number as i64)
    }

    /// Returns the number as a count: 0 when it is negative or absent.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from f64 saturates")]
    pub(crate) fn count(self) -> u64 {
        self.0.unwrap_or_default() as u64
    }
}

/// A boolean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) Option<bool>);

impl<'de> Tolerant<'de> for Flag {
    fn flag(flag: bool) -> Self {
        Self(Some(flag))
    }
}

impl Flag {
    /// Returns whether it is `true`.
    pub(crate) fn is_true(self) -> bool {
        self.0 == Some(true)
    }
}

/// A point in time: RFC 3339, with UTC where no zone is given, or milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Timestamp(pub(crate) Option<Millis>);

impl<'de> Tolerant<'de> for Timestamp {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Millis::parse(&text).or_else(|| Millis::parse(&format!("{text}Z"))))
    }

    fn number(number: JsonNumber) -> Self {
        Self(number.as_i64().or_else(|| Number(number.as_f64()).whole()).map(Millis))
    }
}

/// An object, read as `T`; nothing of anything else.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object<T>(pub(crate) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Tolerant<'de> for Object<T> {
    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(|value| Self(Some(value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        Self::any(de)
    }
}

/// The objects of an array, each read as `T`; a single object is a list of one, anything else is empty.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Objects<T>(pub(crate) Vec<T>);

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Tolerant<'de> for Objects<T> {
    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Object<T>>()? {
            list.extend(item.0);
        }
        Ok(Self(list))
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        Object::object(fields).map(|one: Object<T>| Self(one.0.into_iter().collect()))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Objects<T> {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        Self::any(de)
    }
}

/// A field whose shape varies.
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

impl<'de, T: Deserialize<'de>> Tolerant<'de> for Shaped<'de, T>
where
    Self: Default,
{
    fn text(text: Cow<'de, str>) -> Self {
        Self::Text(text)
    }

    fn list<A: SeqAccess<'de>>(items: A) -> Result<Self, A::Error> {
        Objects::list(items).map(|objects| Self::List(objects.0))
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Self::Object)
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Shaped<'a, T> {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        Shaped::<'de, T>::any(de)
    }
}

impl<T> Shaped<'_, T> {
    /// Takes the object, if it is one.
    pub(crate) fn object(self) -> Option<T> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }
}

/// Any JSON, kept as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Json(pub(crate) Value);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        Value::deserialize(de).map(Self)
    }
}

impl Json {
    /// Returns the arguments of a call, which some agents write as a string that holds an object.
    pub(crate) fn into_args(self) -> Value {
        match self.0 {
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(value @ Value::Object(_)) => value,
                _ => Value::String(text),
            },
            other => other,
        }
    }
}

/// Texts: a string, or a list of strings and of objects with a `text`; anything else in it is left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Prose<'a>(pub(crate) Vec<Cow<'a, str>>);

#[derive(Default, Deserialize)]
#[serde(default)]
struct TextObject<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

/// One text: a string or the `text` of an object.
#[derive(Default)]
struct OneText<'a>(Option<Cow<'a, str>>);

impl<'de> Tolerant<'de> for OneText<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        Object::object(fields).map(|object: Object<TextObject<'de>>| Self(object.0.and_then(|o| o.text.0)))
    }
}

impl<'de> Tolerant<'de> for Prose<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(vec![text])
    }

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut texts = Vec::new();
        while let Some(item) = items.next_element::<OneText<'de>>()? {
            texts.extend(item.0);
        }
        Ok(Self(texts))
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        OneText::object(fields).map(|one| Self(one.0.into_iter().collect()))
    }
}

impl Prose<'_> {
    /// Joins the texts, one a line.
    pub(crate) fn joined(&self) -> String {
        self.0.join("\n")
    }
}

deserialize_tolerantly!(Text<'a>, OneText<'a>, Prose<'a>, Count, Number, Flag, Timestamp);

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn a_shape_is_what_is_there() {
        let shape = |json: &str| match read::<Shaped<'_, TextObject<'_>>>(json.as_bytes()).unwrap() {
            Shaped::Nothing => "nothing".to_owned(),
            Shaped::Text(text) => format!("text {text}"),
            Shaped::Object(inner) => format!("object {}", inner.text.as_str()),
            Shaped::List(list) => format!("list of {}", list.len()),
        };
        assert_eq!(shape(r#""a\nb""#), "text a\nb");
        assert_eq!(shape(r#"{"text":"a"}"#), "object a");
        assert_eq!(shape(r#"[{"text":"a"},"x",[{}],null,{}]"#), "list of 2");
        assert_eq!(shape("3"), "nothing");
    }

    #[test]
    fn a_time_may_lack_its_zone() {
        let at = |ts: &str| read::<Timestamp>(ts.as_bytes()).unwrap().0;
        assert_eq!(at(r#""1970-01-01T00:00:01.5""#), Some(Millis(1500)));
        assert_eq!(at(r#""1970-01-01T00:00:01.5Z""#), Some(Millis(1500)));
        assert_eq!(at("1500"), Some(Millis(1500)));
        assert_eq!(at(r#""noon""#), None);
    }

    #[test]
    fn prose_is_a_string_or_a_list_of_texts() {
        let prose = |json: &str| read::<Prose<'_>>(json.as_bytes()).unwrap().joined();
        assert_eq!(prose(r#""a""#), "a");
        assert_eq!(prose(r#"["a",{"type":"text","text":"b"},{"type":"image"},7,null]"#), "a\nb");
        assert_eq!(prose(r#"{"text":"a"}"#), "a");
        assert_eq!(prose("7"), "");
    }

    #[test]
    fn arguments_in_a_string_are_unpacked() {
        assert_eq!(Json("{\"a\":1}".into()).into_args(), serde_json::json!({"a": 1}));
        assert_eq!(Json("ls -l".into()).into_args(), serde_json::json!("ls -l"));
        assert_eq!(Json("7".into()).into_args(), serde_json::json!("7"));
    }
}
