//! deloop for Python. The Python part of the package is in `python/deloop`, and `_deloop.pyi` describes this module.

mod decision;
mod failure;
mod fork;
mod from_python;
mod guard;
mod json_text;
mod plain;
mod step;
mod step_file;
mod to_python;

use pyo3::prelude::*;

/// The native part of the package `deloop`.
#[pymodule]
fn _deloop(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<guard::PyGuard>()?;
    module.add_class::<decision::PyDecision>()?;
    module.add_class::<step::PyStep>()?;
    module.add_class::<step::PyCall>()?;
    module.add_class::<step_file::PyStepFile>()?;
    fork::wait_for_forks(module)
}
