//! Decisions and sessions by the beginning of their names.

use deloop_live::{RecordedDecision, SqliteJournal};
use deloop_store::StoreError;

use crate::exit::Failure;
use crate::state::State;

/// The decision of this name, or the only one whose name begins so.
pub(crate) fn decision(prefix: &str) -> Result<(SqliteJournal, RecordedDecision), Failure> {
    let none = || Failure::new(format!("no decision `{prefix}`; `deloop log` lists the decisions"));
    let store = State::here()?.existing()?.ok_or_else(none)?;
    let mut found = store.decisions_named(prefix, 4).map_err(told)?;
    if let Some(at) = found.iter().position(|row| row.id == prefix) {
        found = vec![found.swap_remove(at)];
    }
    if found.len() > 1 {
        let names: Vec<&str> = found.iter().map(|row| row.id.as_str()).collect();
        let names = names.join(", ");
        return Err(Failure::new(format!("`{prefix}` is ambiguous: {names}")));
    }
    let row = found.pop().filter(|_| !prefix.is_empty()).ok_or_else(none)?;
    Ok((store, row))
}

/// The session of this name, or the only one whose name begins so.
pub(crate) fn session(store: &SqliteJournal, prefix: &str) -> Result<String, Failure> {
    let found = store.sources_named(prefix, 4).map_err(told)?;
    if found.iter().any(|name| name == prefix) {
        return Ok(prefix.to_owned());
    }
    match found.as_slice() {
        [one] if !prefix.is_empty() => Ok(one.clone()),
        [] | [_] => Err(Failure::new(format!("no session `{prefix}`; `deloop log` lists the sessions"))),
        more => {
            let names = more.join(", ");
            Err(Failure::new(format!("`{prefix}` is ambiguous: {names}")))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it by value")]
pub(crate) fn told(error: StoreError) -> Failure {
    Failure::new(error.to_string())
}
