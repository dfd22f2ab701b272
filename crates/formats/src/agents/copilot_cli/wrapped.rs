//! Events inside the messages that carry them: the JSON-RPC notifications of the Copilot SDK, or another object with an
//! `event`. A log may hold several sessions.

use deloop_types::Millis;

use super::reader::{Events, is_known};
use crate::json::peek;
use crate::json::tolerant::{self, Timestamp};
use crate::{Reader, Sink, Source};

/// Number of wrapped sessions at the same time.
const SESSIONS: usize = 64;

/// What carries an event.
pub(super) struct Wrapper<'a> {
    /// The event as JSON.
    pub(super) event: &'a [u8],
    session: Option<&'a str>,
    ts: Option<Millis>,
}

/// Returns the wrapper that a line, perhaps cut off, is, if there is an event of this agent in it.
pub(super) fn unwrap(line: &[u8]) -> Option<Wrapper<'_>> {
    let outer = peek::field(line, "params").unwrap_or(line);
    let event = peek::field(outer, "event")?;
    let is_event = peek::text(event, "type").is_some_and(|kind| kind.contains('.') && is_known(kind))
        && peek::field(event, "data").is_some_and(|data| data.starts_with(b"{"));
    let time = |name: &str| {
        let value = peek::field(line, name)?;
        tolerant::read::<Timestamp>(value).ok()?.0
    };
    is_event.then(|| Wrapper {
        event,
        session: peek::text(outer, "sessionId").or_else(|| peek::text(line, "sessionId")),
        ts: time("timestamp").or_else(|| time("ts")),
    })
}

/// Reads a file of events, wrapped or not.
pub(super) struct CopilotLog {
    /// The events that aren't wrapped, or whose wrapper names no session.
    main: Events,
    /// The wrapped sessions, the latest last.
    wrapped: Vec<(String, Events)>,
    file: Option<std::path::PathBuf>,
}

impl CopilotLog {
    pub(super) fn new(source: &Source<'_>) -> Self {
        let file = source.path.map(std::path::Path::to_owned);
        Self { main: Events::new(source), wrapped: Vec::new(), file }
    }

    /// Returns the reader of a wrapped session.
    fn session(&mut self, name: &str, out: &mut Sink<'_>) -> &mut Events {
        let known = self.wrapped.iter().rposition(|(known, _)| known == name);
        let latest = match known {
            Some(at) => self.wrapped.remove(at),
            None => {
                if self.wrapped.len() >= SESSIONS {
                    self.wrapped.remove(0).1.finish(out);
                }
                let mut events = Events::new(&Source { path: self.file.as_deref() });
                events.name(name);
                (name.to_owned(), events)
            }
        };
        let at = self.wrapped.len();
        self.wrapped.push(latest);
        &mut self.wrapped[at].1
    }
}

impl Reader for CopilotLog {
    fn read(&mut self, line: &[u8], out: &mut Sink<'_>) {
        if line.starts_with(br#"{"type":""#) {
            return self.main.read(line, out);
        }
        match unwrap(line) {
            Some(Wrapper { event, session: Some(name), ts }) => {
                let name = name.to_owned();
                self.session(&name, out).wrapped(event, ts, out);
            }
            Some(Wrapper { event, session: None, ts }) => self.main.wrapped(event, ts, out),
            // The other messages of a protocol.
            None if peek::field(line, "jsonrpc").is_some() => {}
            None => self.main.read(line, out),
        }
    }

    fn finish(&mut self, out: &mut Sink<'_>) {
        self.main.finish(out);
        self.wrapped.iter_mut().for_each(|(_, events)| events.finish(out));
    }
}
