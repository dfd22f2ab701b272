//! Writes deloop's types as values of Python, with the names and the order of the wire.

use pyo3::BoundObject;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde::Serialize;
use serde::ser::{self, Impossible, Serializer};

use crate::failure::Failure;

/// Returns a value as dicts, lists, texts and numbers.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    Ok(value.serialize(PyWriter(py))?)
}

#[derive(Clone, Copy)]
struct PyWriter<'py>(Python<'py>);

type Written<'py> = Result<Bound<'py, PyAny>, Failure>;

impl<'py> PyWriter<'py> {
    fn put<T: IntoPyObject<'py>>(self, value: T) -> Written<'py>
    where
        T::Error: Into<PyErr>,
    {
        let object = value.into_pyobject(self.0).map_err(Into::into)?;
        Ok(object.into_any().into_bound())
    }
}

impl<'py> Serializer for PyWriter<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failure;
    type SerializeSeq = ListWriter<'py>;
    type SerializeTuple = ListWriter<'py>;
    type SerializeTupleStruct = ListWriter<'py>;
    type SerializeTupleVariant = Impossible<Bound<'py, PyAny>, Failure>;
    type SerializeMap = DictWriter<'py>;
    type SerializeStruct = DictWriter<'py>;
    type SerializeStructVariant = Impossible<Bound<'py, PyAny>, Failure>;

    fn serialize_bool(self, value: bool) -> Written<'py> {
        self.put(value)
    }

    fn serialize_i8(self, value: i8) -> Written<'py> {
        self.put(value)
    }

    fn serialize_i16(self, value: i16) -> Written<'py> {
        self.put(value)
    }

    fn serialize_i32(self, value: i32) -> Written<'py> {
        self.put(value)
    }

    fn serialize_i64(self, value: i64) -> Written<'py> {
        self.put(value)
    }

    fn serialize_u8(self, value: u8) -> Written<'py> {
        self.put(value)
    }

    fn serialize_u16(self, value: u16) -> Written<'py> {
        self.put(value)
    }

    fn serialize_u32(self, value: u32) -> Written<'py> {
        self.put(value)
    }

    fn serialize_u64(self, value: u64) -> Written<'py> {
        self.put(value)
    }

    fn serialize_f32(self, value: f32) -> Written<'py> {
        self.put(value)
    }

    fn serialize_f64(self, value: f64) -> Written<'py> {
        self.put(value)
    }

    fn serialize_char(self, value: char) -> Written<'py> {
        self.put(value)
    }

    fn serialize_str(self, value: &str) -> Written<'py> {
        self.put(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Written<'py> {
        self.put(value)
    }

    fn serialize_none(self) -> Written<'py> {
        Ok(self.0.None().into_bound(self.0))
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Written<'py> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written<'py> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Written<'py> {
        self.serialize_none()
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Written<'py> {
        self.put(variant)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _name: &'static str, value: &T) -> Written<'py> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Written<'py> {
        let dict = PyDict::new(self.0);
        dict.set_item(variant, value.serialize(self)?)?;
        Ok(dict.into_any())
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<ListWriter<'py>, Failure> {
        Ok(ListWriter(PyList::empty(self.0)))
    }

    fn serialize_tuple(self, _length: usize) -> Result<ListWriter<'py>, Failure> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<ListWriter<'py>, Failure> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeTupleVariant, Failure> {
        Err(ser::Error::custom(variant))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<DictWriter<'py>, Failure> {
        Ok(DictWriter { dict: PyDict::new(self.0), key: None })
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<DictWriter<'py>, Failure> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeStructVariant, Failure> {
        Err(ser::Error::custom(variant))
    }
}

/// A list that is being written.
struct ListWriter<'py>(Bound<'py, PyList>);

impl<'py> ListWriter<'py> {
    fn push<T: ?Sized + Serialize>(&self, value: &T) -> Result<(), Failure> {
        Ok(self.0.append(value.serialize(PyWriter(self.0.py()))?)?)
    }
}

impl<'py> ser::SerializeSeq for ListWriter<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failure;

    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        self.push(value)
    }

    fn end(self) -> Written<'py> {
        Ok(self.0.into_any())
    }
}

impl<'py> ser::SerializeTuple for ListWriter<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failure;

    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        self.push(value)
    }

    fn end(self) -> Written<'py> {
        Ok(self.0.into_any())
    }
}

impl<'py> ser::SerializeTupleStruct for ListWriter<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failure;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        self.push(value)
    }

    fn end(self) -> Written<'py> {
        Ok(self.0.into_any())
    }
}

/// A dict that is being written.
struct DictWriter<'py> {
    dict: Bound<'py, PyDict>,
    key: Option<Bound<'py, PyAny>>,
}

impl<'py> ser::SerializeMap for DictWriter<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failure;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Failure> {
        self.key = Some(key.serialize(PyWriter(self.dict.py()))?);
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        let key = self.key.take();
        Ok(self.dict.set_item(key, value.serialize(PyWriter(self.dict.py()))?)?)
    }

    fn end(self) -> Written<'py> {
        Ok(self.dict.into_any())
    }
}

impl<'py> ser::SerializeStruct for DictWriter<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failure;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Failure> {
        let py = self.dict.py();
        Ok(self.dict.set_item(PyString::new(py, key), value.serialize(PyWriter(py))?)?)
    }

    fn end(self) -> Written<'py> {
        Ok(self.dict.into_any())
    }
}
