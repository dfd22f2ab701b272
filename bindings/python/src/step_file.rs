use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use deloop_bind::{StepFile, StepFileError};
use pyo3::prelude::*;

use crate::failure::{contained, value_error};
use crate::fork::detached;
use crate::to_python::to_python;

/// Iterates over the Steps of a session file, as dicts.
#[pyclass(name = "StepFile", module = "deloop", frozen)]
pub(crate) struct PyStepFile(Mutex<StepFile>);

#[pymethods]
impl PyStepFile {
    #[new]
    #[pyo3(signature = (path, format=None))]
    #[expect(clippy::needless_pass_by_value, reason = "a path is converted from what Python passes")]
    fn new(py: Python<'_>, path: PathBuf, format: Option<&str>) -> PyResult<Self> {
        let file = detached(py, || StepFile::open(&path, format)).map_err(told)?;
        Ok(Self(Mutex::new(file)))
    }

    /// What couldn't be read, once the file is over.
    #[getter]
    fn notes(&self, py: Python<'_>) -> Vec<String> {
        detached(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).notes().to_vec())
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        contained(|| {
            let step = detached(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).next());
            step.transpose().map_err(told)?.map(|step| to_python(py, &step)).transpose()
        })
    }
}

fn told(error: StepFileError) -> PyErr {
    match error {
        StepFileError::Io(error) => error.into(),
        StepFileError::Format(error) => value_error(error),
    }
}
