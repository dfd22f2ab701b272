//! How often force-done fired in a session of the behavioral hook. Its tasks have files of their own, so that a session
//! with several tasks needs one for the count.

use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::exit::Failure;
use crate::safe_file::{self, Target};

/// More digits aren't a count that deloop wrote.
const LONGEST: u64 = 20;

/// Adds one to the count of a session and returns it.
///
/// # Errors
/// When the file can't be opened or written.
pub(super) fn count(state: &Path, session: &str) -> Result<u64, Failure> {
    let name = deloop_detect::Fingerprint::of_call("forced ends", &session.into());
    let path = format!("behavioral/{name}.json");
    let add = || -> std::io::Result<u64> {
        safe_file::private_folder(state)?;
        let mut file = Target::below(state, Path::new(&path))?.edit()?;
        file.lock()?;
        let mut text = String::new();
        // What can't be read starts anew.
        let _ = (&mut file).take(LONGEST).read_to_string(&mut text);
        let times = text.trim().parse::<u64>().unwrap_or(0).saturating_add(1);
        let text = times.to_string();
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        file.set_len(text.len() as u64)?;
        Ok(times)
    };
    add().map_err(|e| Failure::new(format!("{}: {e}", state.join(&path).display())))
}
