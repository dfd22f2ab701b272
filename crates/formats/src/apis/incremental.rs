//! Request logs repeat a conversation with every request and add to it. Only what is new of it is news.

use std::collections::VecDeque;

use deloop_types::{Body, SessionId, Step};
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use crate::{Item, Sink};

/// How many conversations are remembered: a log may mix those of an agent and its helpers.
const REMEMBERED: usize = 16;

/// The conversations of a file so far.
#[derive(Debug, Default)]
pub(crate) struct IncrementalLog {
    past: VecDeque<KnownConversation>,
    /// How many conversations without a name of their own there were.
    unnamed: usize,
}

#[derive(Debug)]
struct KnownConversation {
    session: SessionId,
    named: bool,
    steps: Vec<u64>,
}

impl IncrementalLog {
    /// Hands out what is new in a conversation. One that begins with all of an earlier one is that one's session;
    /// else it is a session of its own, named `name` or else after the file (`stem`, `stem-2`, ...).
    /// A conversation of the same name that begins otherwise had its context cut or summarised.
    /// Says which session it was.
    pub(crate) fn add(
        &mut self,
        name: Option<&str>,
        stem: &str,
        items: Vec<Item>,
        out: &mut Sink<'_>,
    ) -> SessionId {
        let steps: Vec<u64> = items.iter().filter(|item| !is_usage(item)).map(fingerprint).collect();
        let known = self.find(name, &steps).and_then(|at| self.past.remove(at));
        let session = match (&known, name) {
            (Some(past), _) => past.session.clone(),
            (None, Some(name)) => SessionId::from(name),
            (None, None) => self.next(stem),
        };
        let old = known
            .as_ref()
            .map_or(0, |past| past.steps.iter().zip(&steps).take_while(|(a, b)| a == b).count());
        if known.is_some_and(|past| old < past.steps.len()) {
            out.step(Step::new(session.clone(), Body::Compact));
        }
        hand_out(items, old, &session, out);
        self.past.push_front(KnownConversation { session: session.clone(), named: name.is_some(), steps });
        self.past.truncate(REMEMBERED);
        session
    }

    /// Hands out what was added to a session, without what came before it.
    pub(crate) fn go_on(&mut self, session: SessionId, items: Vec<Item>, out: &mut Sink<'_>) -> SessionId {
        hand_out(items, 0, &session, out);
        session
    }

    fn next(&mut self, stem: &str) -> SessionId {
        self.unnamed += 1;
        match self.unnamed {
            1 => SessionId::from(stem),
            n => SessionId::from(format!("{stem}-{n}")),
        }
    }

    fn find(&self, name: Option<&str>, steps: &[u64]) -> Option<usize> {
        match name {
            Some(name) => self.past.iter().position(|past| past.named && past.session.as_str() == name),
            None => self
                .past
                .iter()
                .position(|past| !past.named && !past.steps.is_empty() && steps.starts_with(&past.steps)),
        }
    }
}

/// Hands out all but the first `old` steps. A usage is as old as the step before it, unless it is that of an empty
/// response.
fn hand_out(items: Vec<Item>, old: usize, session: &SessionId, out: &mut Sink<'_>) {
    let mut index = 0;
    for mut item in items {
        let usage = is_usage(&item);
        let new =
            if usage { index > old || old == 0 || index == old && item.key.is_some() } else { index >= old };
        if new {
            item.step.session = session.clone();
            if usage { out.usage(item.step, item.key) } else { out.step(item.step) }
        }
        index += usize::from(!usage);
    }
}

fn is_usage(item: &Item) -> bool {
    matches!(item.step.body, Body::Usage(_))
}

/// Of what was said, not of when.
fn fingerprint(item: &Item) -> u64 {
    let mut hash = Xxh3::new();
    let mut add = |kind: u8, text: &str| {
        hash.update(&[kind]);
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    match &item.step.body {
        Body::Turn(turn) => {
            add(1, &turn.text);
            for call in &turn.calls {
                add(2, call.id.as_deref().unwrap_or_default());
                add(3, &call.tool);
                add(4, &call.args.to_string());
            }
        }
        Body::Result(result) => {
            add(5, result.id.as_deref().unwrap_or_default());
            match &result.output {
                Value::String(text) => add(6, text),
                other => add(7, &other.to_string()),
            }
        }
        Body::User(user) => add(8, &user.text),
        _ => add(9, ""),
    }
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(words: &str) -> Vec<Item> {
        words
            .split(' ')
            .map(|word| Item { step: Step::text("x", word), key: None, may_be_shared: false })
            .collect()
    }

    fn read(talks: &[(Option<&str>, &str)]) -> Vec<String> {
        let mut said = Vec::new();
        let mut emit = |item: Item| match item.step.body {
            Body::Turn(turn) => said.push(format!("{}:{}", item.step.session, turn.text)),
            _ => said.push(format!("{}:compact", item.step.session)),
        };
        let mut out = Sink::new(&mut emit);
        let mut log = IncrementalLog::default();
        for (name, words) in talks {
            log.add(*name, "log", talk(words), &mut out);
        }
        said
    }

    #[test]
    fn what_goes_on_is_one_session() {
        assert_eq!(
            read(&[(None, "a b"), (None, "x"), (None, "a b c"), (None, "x y"), (None, "a z")]),
            ["log:a", "log:b", "log-2:x", "log:c", "log-2:y", "log-3:a", "log-3:z"]
        );
    }

    #[test]
    fn names_keep_conversations_apart() {
        assert_eq!(read(&[(Some("p"), "a"), (Some("q"), "a b")]), ["p:a", "q:a", "q:b"]);
    }

    #[test]
    fn a_named_conversation_that_begins_anew_was_compacted() {
        assert_eq!(
            read(&[(Some("p"), "a b c"), (Some("p"), "a s d")]),
            ["p:a", "p:b", "p:c", "p:compact", "p:s", "p:d"]
        );
    }
}
