//! `deloop allow`: calls that are not looked at.

use std::io::Write;

use deloop_live::Journal;

use super::args::AllowArgs;
use crate::exit::{self, Failure};
use crate::state::{State, now};

pub(crate) fn run(args: &AllowArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let state = State::here()?;
    let told = |e: deloop_store::StoreError| Failure::new(e.to_string());
    let Some(pattern) = &args.pattern else {
        let allowed = match state.existing()? {
            Some(store) => store.allowed().map_err(told)?,
            None => Vec::new(),
        };
        for pattern in &allowed {
            writeln!(out, "{}", deloop_detect::clean(pattern, 400))?;
        }
        if allowed.is_empty() {
            writeln!(out, "No calls are ignored.")?;
        }
        return Ok(exit::OK);
    };
    let store = state.open()?;
    if args.remove {
        if !store.disallow(pattern).map_err(told)? {
            return Err(Failure::new(format!(
                "no pattern `{pattern}`; `deloop allow --list` lists the patterns"
            )));
        }
        writeln!(out, "deloop checks calls of `{pattern}` again.")?;
        return Ok(exit::OK);
    }
    deloop_live::check_pattern(pattern).map_err(|e| Failure::new(e.to_string()))?;
    store.allow(pattern, now()).map_err(told)?;
    writeln!(out, "deloop ignores calls of `{pattern}`. Undo with: deloop allow --remove '{pattern}'")?;
    Ok(exit::OK)
}
