//! The person beside a run: says before or during it what `deloop pause`, `allow` and `wrong` are for.

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use super::cases::Case;
use super::place::Place;

/// How often the log is looked at.
const BEAT: Duration = Duration::from_millis(30);

pub(super) struct Person {
    watches: Option<JoinHandle<bool>>,
    over: Arc<AtomicBool>,
}

impl Person {
    /// Says what the case asks for before the run, or begins to watch it.
    pub(super) fn new(case: Case, place: &Place) -> Result<Self, String> {
        let over = Arc::new(AtomicBool::new(false));
        let says = |words: &[&str]| {
            let output = deloop(place, words)?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(format!("deloop {words:?}: {said}")) }
        };
        let mut watches = None;
        match case {
            Case::Paused => says(&["pause", "--for", "1h"])?,
            Case::Allowed => says(&["allow", "* *check*"])?,
            Case::Wrong => {
                let (place, over) = (place.clone(), Arc::clone(&over));
                watches = Some(thread::spawn(move || calls_the_first_wrong(&place, &over)));
            }
            _ => {}
        }
        Ok(Self { watches, over })
    }

    /// Ends with the run. Returns whether a decision was called wrong.
    pub(super) fn leave(self) -> bool {
        self.over.store(true, Ordering::Relaxed);
        self.watches.is_some_and(|watch| watch.join().unwrap_or(false))
    }
}

fn calls_the_first_wrong(place: &Place, over: &AtomicBool) -> bool {
    while !over.load(Ordering::Relaxed) {
        thread::sleep(BEAT);
        let Ok(log) = deloop(place, &["log", "--json"]) else { continue };
        let log = String::from_utf8_lossy(&log.stdout).into_owned();
        let first = log.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
        if let Some(id) = first.as_ref().and_then(|decision| decision["id"].as_str()) {
            return deloop(place, &["wrong", id, "--was", "legit"]).is_ok_and(|done| done.status.success());
        }
    }
    false
}

fn deloop(place: &Place, words: &[&str]) -> Result<Output, String> {
    let mut command = Command::new(place.deloop());
    command.args(words).current_dir(&place.work).env_clear().env("HOME", &place.home);
    command.output().map_err(|e| format!("deloop doesn't start: {e}"))
}
