//! The storage folder, where one session is many small files.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::record::{OpencodeMessage, OpencodeMessageInfo, OpencodePart, OpencodeSession};
use super::session;
use crate::json::tolerant::{self, Object, Objects, Text};
use crate::step_writer::StepWriter;
use crate::{Base, Item, Place, Report, Sink};

/// Where sessions are now: the rows of one database hold what the files of the storage folder held.
pub(super) const DATABASE: Place = Place {
    base: Base::Variable("XDG_DATA_HOME", ".local/share"),
    folder: "opencode/opencode.db",
    suffix: ".db",
};

/// Where they were in earlier releases: `session/PROJECT/SESSION.json`. Each of these stands for one session.
pub(super) const STORAGE: Place = Place {
    base: Base::Variable("XDG_DATA_HOME", ".local/share"),
    folder: "opencode/storage/session",
    suffix: ".json",
};

/// Reads one session, given all its files in any order, each with its path below `opencode/storage`:
/// `session/PROJECT/SESSION.json`, every `message/SESSION/MESSAGE.json`, and for each of those messages every
/// `part/MESSAGE/PART.json`.
///
/// ```
/// use deloop_formats::read_opencode_storage;
///
/// let files: [(&str, &[u8]); 2] = [
///     ("message/ses_1/msg_1.json", br#"{"role":"user"}"#),
///     ("part/msg_1/prt_1.json", br#"{"type":"text","text":"Hello"}"#),
/// ];
/// let mut steps = Vec::new();
/// read_opencode_storage(files, &mut |item| steps.push(item.step));
/// assert_eq!(steps[0].session.as_str(), "ses_1");
/// ```
pub fn read_storage<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    emit: &mut dyn FnMut(Item),
) -> Report {
    let mut out = Sink::new(emit);
    let mut gathered = Gathered::default();
    for (path, bytes) in files {
        gathered.file(path, bytes, &mut out);
    }
    let Gathered { session, messages, mut parts } = gathered;
    let messages = messages.into_iter().map(|(id, info)| {
        let parts = parts.remove(&id).unwrap_or_default().into_values().collect();
        OpencodeMessage { info: Object(Some(info)), parts: Objects(parts) }
    });
    session::read(StepWriter::default(), session, messages.collect(), &mut out);
    out.report
}

/// Ids grow with time, so that the order of names is the order of events.
#[derive(Default)]
struct Gathered<'a> {
    session: OpencodeSession<'a>,
    messages: BTreeMap<String, OpencodeMessageInfo<'a>>,
    parts: BTreeMap<String, BTreeMap<String, OpencodePart<'a>>>,
}

impl<'a> Gathered<'a> {
    fn file(&mut self, path: &'a str, bytes: &'a [u8], out: &mut Sink<'_>) {
        let mut names = path.rsplit(['/', '\\']);
        let id = names.next().unwrap_or_default().trim_end_matches(".json");
        let folder = names.next().unwrap_or_default();
        let kind = names.find(|name| matches!(*name, "session" | "message" | "part"));
        match kind {
            Some("part") => {
                if let Some(mut part) = object::<OpencodePart<'_>>(bytes, out) {
                    named(&mut part.id, id);
                    named(&mut part.message, folder);
                    let message = self.parts.entry(part.message.as_str().to_owned()).or_default();
                    message.insert(part.id.as_str().to_owned(), part);
                }
            }
            Some("message") => {
                if let Some(mut info) = object::<OpencodeMessageInfo<'_>>(bytes, out) {
                    named(&mut info.id, id);
                    named(&mut info.session, folder);
                    self.messages.insert(info.id.as_str().to_owned(), info);
                }
            }
            Some(_) => {
                if let Some(mut session) = object::<OpencodeSession<'_>>(bytes, out) {
                    named(&mut session.id, id);
                    self.session = session;
                }
            }
            None => out.unknown(path),
        }
    }
}

/// What has no name of its own has that of its file or folder.
fn named<'a>(id: &mut Text<'a>, name: &'a str) {
    if id.get().is_none() {
        *id = Text(Some(name.into()));
    }
}

fn object<'a, T: Deserialize<'a>>(bytes: &'a [u8], out: &mut Sink<'_>) -> Option<T> {
    match tolerant::read(bytes) {
        Ok(Object(Some(value))) => Some(value),
        Ok(Object(None)) => {
            out.unreadable("not a JSON object");
            None
        }
        Err(error) => {
            out.unreadable(error);
            None
        }
    }
}
