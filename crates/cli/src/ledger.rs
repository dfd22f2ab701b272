//! What is noted for people when an agent is spoken to by `deloop stream` and not by hooks.

use deloop_store::{Circumstances, SourceRow, SqliteStore};
use deloop_types::{Decision, Step};

use crate::exit::Failure;
use crate::hook::run_id;
use crate::state::{State, now};

/// Notes calls and decisions of one agent in the user's database. When that fails the agent goes on, and the log says why.
pub(crate) struct Ledger {
    agent: String,
    store: Option<SqliteStore>,
}

impl Ledger {
    pub(crate) fn open(agent: &str) -> Self {
        let store = State::here().and_then(|state| state.open());
        let store = store.map_err(|failure| log(agent, failure)).ok();
        Self { agent: agent.to_owned(), store }
    }

    /// Notes that a step came, and what was decided about it.
    pub(crate) fn write(&mut self, step: &Step, decision: &Decision) {
        let Some(store) = &mut self.store else { return };
        let (now, run) = (now(), run_id());
        let at = Circumstances {
            agent: &self.agent,
            subagent: step.agent.as_deref(),
            now,
            run: run.as_deref(),
            held: None,
            trail: "[]",
        };
        let source = SourceRow {
            session: step.session.to_string(),
            agent: self.agent.clone(),
            transcript: None,
            run: run.clone(),
        };
        let done = store.batch(|store| {
            store.called(&self.agent, now)?;
            store.note_source(&source, now)?;
            store.record(decision, &at)
        });
        if let Err(error) = done {
            log(&self.agent, Failure::new(error.to_string()));
            self.store = None;
        }
    }
}

fn log(agent: &str, failure: Failure) {
    if let (Ok(state), Failure::Told(why)) = (State::here(), failure) {
        state.log(agent, &why);
    }
}
