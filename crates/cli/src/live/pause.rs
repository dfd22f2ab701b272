//! `deloop pause` and `deloop resume`.

use std::io::Write;

use deloop_types::Millis;

use super::args::{PauseArgs, ResumeArgs};
use super::named::{self, told};
use super::words::{short, time};
use crate::exit::{self, Failure};
use crate::sessions::since::since;
use crate::state::{State, now};

pub(crate) fn pause(args: &PauseArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let now = now();
    // As long ahead as `--since` is back.
    let until = since(&args.time, now).ok().map(|back| Millis(now.0 + (now.0 - back.0))).filter(|t| *t > now);
    let until = until.ok_or_else(|| Failure::new("`--for` takes a duration such as 30m, 2h, 1d or 2w"))?;
    let store = State::here()?.open()?;
    let session = args.session.as_deref().map(|name| named::session(&store, name)).transpose()?;
    store.pause(session.as_deref(), until).map_err(told)?;
    let who = session.map_or_else(|| "all sessions".to_owned(), |s| format!("session {}", short(&s)));
    writeln!(out, "Paused: {who}, until {}. `deloop resume` ends it.", time(until))?;
    Ok(exit::OK)
}

pub(crate) fn resume(args: &ResumeArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let ended = match State::here()?.existing()? {
        Some(store) => {
            let session = args.session.as_deref().map(|name| named::session(&store, name)).transpose()?;
            store.resume(session.as_deref()).map_err(told)?
        }
        None => 0,
    };
    writeln!(out, "{}", if ended == 0 { "Nothing was paused." } else { "Resumed." })?;
    Ok(exit::OK)
}
