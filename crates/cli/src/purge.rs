//! `deloop purge`: forgets what hooks remembered.

use std::io::Write;

use crate::args::PurgeArgs;
use crate::exit::{self, Failure};
use crate::state::State;

pub(crate) fn run(args: &PurgeArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let state = State::here()?;
    let gone = match state.existing()? {
        Some(store) => store.purge(args.session.as_deref()).map_err(|e| Failure::new(e.to_string()))?,
        None => 0,
    };
    match &args.session {
        Some(session) if gone == 0 => {
            return Err(Failure::new(format!(
                "no session `{session}` is remembered; `deloop log` shows which are"
            )));
        }
        Some(session) => writeln!(out, "forgot session {session}")?,
        None => {
            state.remove_log();
            writeln!(out, "forgot {gone} sessions, all decisions and the log")?;
        }
    }
    Ok(exit::OK)
}
