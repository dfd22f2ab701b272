//! Forks only while no thread decides. A lock that a thread holds at that moment would stay locked in the new process,
//! where the thread doesn't exist.

use std::cell::RefCell;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Read by whoever works without Python's lock, and so may hold locks of deloop's; written while a process is forked.
static WORK: RwLock<()> = RwLock::new(());

thread_local! {
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Does `work` without Python's lock. A fork waits until it is done.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let _working = WORK.read().unwrap_or_else(PoisonError::into_inner);
        work()
    })
}

/// Makes forks wait for work in progress, and work wait for forks.
pub(crate) fn wait_for_forks(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let os = module.py().import("os")?;
    if !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let handlers = PyDict::new(module.py());
    handlers.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    handlers.set_item("after_in_parent", wrap_pyfunction!(after_fork, module)?)?;
    handlers.set_item("after_in_child", wrap_pyfunction!(after_fork, module)?)?;
    os.call_method("register_at_fork", (), Some(&handlers))?;
    Ok(())
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    py.detach(|| {
        let forking = WORK.write().unwrap_or_else(PoisonError::into_inner);
        FORKING.set(Some(forking));
    });
}

#[pyfunction]
fn after_fork() {
    FORKING.set(None);
}
