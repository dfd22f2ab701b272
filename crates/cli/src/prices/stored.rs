//! The table that replaces the built-in one, in the user's state folder.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deloop_policy::{Price, PriceTable, Prices};

use crate::exit::Failure;
use crate::state::State;

/// The name of the table in the state folder.
const FILE: &str = "prices.tsv";

/// Returns the prices that apply: the user's own, and the table of the last `deloop prices update` or the built-in one.
pub(crate) fn in_use(own: BTreeMap<String, Price>) -> Prices {
    let stored = State::here().ok().and_then(|state| state.read(FILE)).map(PriceTable::from_text);
    // A table without a date was damaged.
    let stored = stored.filter(|table| !table.date().is_empty());
    Prices::with_table(own, stored.unwrap_or_default())
}

/// Stores a table and returns its file.
pub(super) fn store(table: &PriceTable) -> Result<PathBuf, Failure> {
    State::here()?.write(FILE, table.to_text().as_bytes())
}

/// Deletes the stored table. Returns whether there was one.
pub(super) fn delete() -> Result<bool, Failure> {
    let path = State::here()?.folder().join(FILE);
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::new(format!("{}: {error}", path.display()))),
    }
}
