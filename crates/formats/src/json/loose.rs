//! JSON in which any field may be missing, null or of another type than expected: such a field is as good as absent,
//! and the rest of its record is still read.

use std::borrow::Cow;
use std::marker::PhantomData;

use deloop_types::Millis;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

/// How deep a value may nest. sonic-rs skips unknown fields recursively and without a limit of its own.
const DEEPEST: usize = 512;

/// Reads one JSON value. Lone surrogates and invalid UTF-8, which agents write where they cut a text in two,
/// become U+FFFD.
pub(crate) fn from_slice<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, String> {
    if nests_deeper_than(DEEPEST, json) {
        return Err(format!("nests deeper than {DEEPEST} levels"));
    }
    sonic_rs::from_slice(json).or_else(|_| {
        let mut lossy = sonic_rs::Deserializer::from_slice(json).utf8_lossy();
        let value = lossy.deserialize().map_err(|e| e.to_string())?;
        lossy.end().map_err(|e| e.to_string())?;
        Ok(value)
    })
}

fn nests_deeper_than(limit: usize, json: &[u8]) -> bool {
    if json.len() <= limit || memchr::memchr2_iter(b'[', b'{', json).nth(limit).is_none() {
        return false;
    }
    let mut depth = 0_usize;
    let mut rest = json.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => rest = after_string(rest.as_slice()).iter(),
            _ => {}
        }
    }
    false
}

/// What follows the end of a string that these bytes are inside of; nothing if it does not end.
pub(crate) fn after_string(mut inside: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', inside) {
        let (escape, rest) = (inside[at] == b'\\', &inside[at + 1..]);
        if !escape {
            return rest;
        }
        inside = rest.get(1..).unwrap_or_default();
    }
    &[]
}

/// A type that can be made of any JSON value, at worst the one that says "nothing of use".
pub(crate) trait Loose<'de>: Sized + Default {
    /// Of a string.
    fn text(_text: Cow<'de, str>) -> Self {
        Self::default()
    }

    /// Of a number.
    fn number(_number: Number) -> Self {
        Self::default()
    }

    /// Of a boolean.
    fn flag(_flag: bool) -> Self {
        Self::default()
    }

    /// Of an array; must read it to its end.
    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    /// Of an object; must read it to its end.
    fn object<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    /// Reads it; what `Deserialize` of the type calls.
    fn read<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        de.deserialize_any(Any(PhantomData))
    }
}

struct Any<T>(PhantomData<T>);

impl<'de, T: Loose<'de>> Visitor<'de> for Any<T> {
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
        Ok(Number::from_f64(number).map_or_else(T::default, T::number))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<T, E> {
        Ok(T::flag(flag))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_none<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, de: D) -> Result<T, D::Error> {
        T::read(de)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<T, A::Error> {
        T::list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::object(fields)
    }
}

/// Makes `Deserialize` of [`Loose`] types; `Name<'a>` of those that borrow.
macro_rules! deserialize_loosely {
    ($($name:ident $(<$life:lifetime>)?),+ $(,)?) => {$(
        deserialize_loosely!(@one $name $($life)?);
    )+};
    (@one $name:ident) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
                <Self as $crate::json::loose::Loose<'de>>::read(de)
            }
        }
    };
    (@one $name:ident $life:lifetime) => {
        impl<'de: $life, $life> serde::Deserialize<'de> for $name<$life> {
            fn deserialize<D: serde::Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
                <$name<'de> as $crate::json::loose::Loose<'de>>::read(de)
            }
        }
    };
}
pub(crate) use deserialize_loosely;

/// A string, or a number as one (ids); nothing of anything else.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

impl<'de> Loose<'de> for Text<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }

    fn number(number: Number) -> Self {
        Self(Some(Cow::Owned(number.to_string())))
    }
}

impl Text<'_> {
    /// The text, empty if there is none.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The text, if it says anything.
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// The text as one of its own, if it says anything.
    pub(crate) fn owned(self) -> Option<String> {
        self.0.filter(|text| !text.is_empty()).map(Cow::into_owned)
    }
}

/// A number that is not negative, as counts of tokens are; anything else counts as none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl<'de> Loose<'de> for Count {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from f64 saturates")]
    fn number(number: Number) -> Self {
        Self(number.as_u64().or_else(|| number.as_f64().map(|f| f as u64)).unwrap_or(0))
    }
}

/// Any number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Real(pub(crate) Option<f64>);

impl<'de> Loose<'de> for Real {
    fn number(number: Number) -> Self {
        Self(number.as_f64())
    }
}

/// A boolean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) Option<bool>);

impl<'de> Loose<'de> for Flag {
    fn flag(flag: bool) -> Self {
        Self(Some(flag))
    }
}

/// A point in time: RFC 3339, with UTC where no zone is given, or milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Option<Millis>);

impl<'de> Loose<'de> for Time {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Millis::parse(&text).or_else(|| Millis::parse(&format!("{text}Z"))))
    }

    #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
    fn number(number: Number) -> Self {
        Self(number.as_i64().or_else(|| number.as_f64().map(|f| f as i64)).map(Millis))
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

impl<'de, T: Deserialize<'de>> Loose<'de> for Object<T> {
    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(|value| Self(Some(value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        Self::read(de)
    }
}

/// The objects of an array, each read as `T`; a single object is a list of one, other things are nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Objects<T>(pub(crate) Vec<T>);

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Loose<'de> for Objects<T> {
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
        Self::read(de)
    }
}

/// Any JSON at all, kept as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Json(pub(crate) Value);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        Value::deserialize(de).map(Self)
    }
}

impl Json {
    /// Arguments of a call, which some agents write as a string that holds JSON.
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

/// Texts: a string, or a list of strings and of objects with a `text`; other things in it are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Prose<'a>(pub(crate) Vec<Cow<'a, str>>);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spoken<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

/// One text: a string or the `text` of an object.
#[derive(Default)]
struct OneText<'a>(Option<Cow<'a, str>>);

impl<'de> Loose<'de> for OneText<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        Object::object(fields)
            .map(|spoken: Object<Spoken<'de>>| Self(spoken.0.and_then(|spoken| spoken.text.0)))
    }
}

impl<'de> Loose<'de> for Prose<'de> {
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
    /// The texts, one below the other.
    pub(crate) fn joined(&self) -> String {
        self.0.join("\n")
    }
}

deserialize_loosely!(Text<'a>, OneText<'a>, Prose<'a>, Count, Real, Flag, Time);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Record<'a> {
        #[serde(borrow)]
        id: Text<'a>,
        tokens: Count,
        cost: Real,
        ok: Flag,
        ts: Time,
        #[serde(borrow)]
        inner: Object<Inner<'a>>,
        #[serde(borrow)]
        list: Objects<Inner<'a>>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Inner<'a> {
        #[serde(borrow)]
        name: Text<'a>,
    }

    fn read(json: &str) -> Record<'_> {
        from_slice(json.as_bytes()).unwrap()
    }

    #[test]
    fn fields_of_another_type_are_absent_and_lose_nothing_else() {
        let others = ["null", "true", "-1.5", "\"x\"", "[[1],{}]", "{\"name\":[1]}"];
        let fields = ["tokens", "cost", "ok", "ts", "inner", "list"];
        for field in fields {
            for other in others {
                let json = format!(r#"{{"{field}":{other},"id":"a"}}"#);
                assert_eq!(read(&json).id.as_str(), "a", "{json}");
            }
        }
        let record = read(r#"{"id":7,"tokens":12.0,"cost":1,"list":[1,{"name":"b"}],"inner":[]}"#);
        assert_eq!((record.id.as_str(), record.tokens, record.cost), ("7", Count(12), Real(Some(1.0))));
        assert_eq!((record.list.0.len(), record.inner.0), (1, None));
    }

    #[test]
    fn a_time_may_lack_its_zone() {
        let at = |ts: &str| read(&format!(r#"{{"ts":{ts}}}"#)).ts.0;
        assert_eq!(at(r#""1970-01-01T00:00:01.5""#), Some(Millis(1500)));
        assert_eq!(at(r#""1970-01-01T00:00:01.5Z""#), Some(Millis(1500)));
        assert_eq!(at("1500"), Some(Millis(1500)));
        assert_eq!(at(r#""noon""#), None);
    }

    #[test]
    fn prose_is_a_string_or_a_list_of_texts() {
        let prose = |json: &str| from_slice::<Prose<'_>>(json.as_bytes()).unwrap().joined();
        assert_eq!(prose(r#""a""#), "a");
        assert_eq!(prose(r#"["a",{"type":"text","text":"b"},{"type":"image"},7,null]"#), "a\nb");
        assert_eq!(prose(r#"{"text":"a"}"#), "a");
        assert_eq!(prose("7"), "");
    }

    #[test]
    fn a_text_cut_inside_a_character_is_still_read() {
        assert_eq!(read(r#"{"id":"a\ud83d"}"#).id.as_str(), "a\u{fffd}");
        let json: &[u8] = b"{\"id\":\"a\xf0\x9f\",\"tokens\":1}";
        assert_eq!(from_slice::<Record<'_>>(json).unwrap().tokens, Count(1));
    }

    #[test]
    fn deep_nesting_is_refused_and_brackets_in_strings_are_not_nesting() {
        let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(from_slice::<Record<'_>>(deep.as_bytes()).is_err());
        let flat = format!(r#"{{"id":"\"{}","x":[{}1]}}"#, "[".repeat(2_000), "[],".repeat(2_000));
        assert_eq!(read(&flat).id.as_str().len(), 2_001);
    }

    #[test]
    fn arguments_in_a_string_are_unpacked() {
        assert_eq!(Json("{\"a\":1}".into()).into_args(), serde_json::json!({"a": 1}));
        assert_eq!(Json("ls -l".into()).into_args(), serde_json::json!("ls -l"));
        assert_eq!(Json("7".into()).into_args(), serde_json::json!("7"));
    }
}
