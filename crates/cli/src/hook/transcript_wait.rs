//! Waits for the model's words. An agent may call its hook a moment before it writes the turn to its transcript, which is
//! the only place where the words are.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use deloop_formats::Shape;
use deloop_formats::hooks::{HookAgent, HookEvent, HookKind};
use deloop_policy::Profile;

use crate::clock::WaitClock;
use crate::safe_file::{self, Links};

/// How long to wait. Claude Code takes up to 60 milliseconds.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long to wait before looking again.
const BEAT: Duration = Duration::from_millis(5);
/// How much of its end is read, in bytes.
const TAIL: u64 = 256 << 10;

/// Waits until the transcript has the call of an event, if the profile compares words. Without them, the turn is judged by
/// its calls.
pub(super) fn for_words(agent: &dyn HookAgent, event: &HookEvent, profile: &Profile) {
    let reads_words = || profile.watches.iter().any(|watch| watch.detector.reads_words());
    if event.kind != HookKind::PreCall || event.subagent.is_some() || !reads_words() {
        return;
    }
    let is_read = deloop_formats::find(agent.name()).is_some_and(|format| format.shape() == Shape::Lines);
    let id = event.calls.first().and_then(|call| call.transcript_id()).filter(|id| !id.is_empty());
    let path = event.transcript.as_deref().filter(|path| !path.is_empty());
    let (Some(path), Some(id), true) = (path, id, is_read) else { return };
    let has_words = || holds(Path::new(path), id.as_bytes()).unwrap_or(false);
    if has_words() {
        return;
    }
    let clock = WaitClock::new();
    let until = clock.now() + PATIENCE;
    while clock.now() < until && !has_words() {
        std::thread::sleep(BEAT);
    }
}

fn holds(path: &Path, id: &[u8]) -> std::io::Result<bool> {
    let mut file = safe_file::open(path, Links::Follow)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    // The words come before the call in the same turn, and a line is complete when it has its end.
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else { return Ok(false) };
    Ok(bytes[..end].windows(id.len()).any(|window| window == id))
}
