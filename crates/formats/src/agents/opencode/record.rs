//! Sessions, messages and parts, as they are in exports and in the storage folder.

use serde::Deserialize;

use crate::json::tolerant::{Count, Flag, Json, Number, Object, Objects, Text, Timestamp};

/// An export: one session with all its messages.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpencodeExport<'a> {
    #[serde(borrow)]
    pub(super) info: Object<OpencodeSession<'a>>,
    #[serde(borrow)]
    pub(super) messages: Objects<OpencodeMessage<'a>>,
}

/// What a session is.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpencodeSession<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow, rename = "parentID")]
    pub(super) parent: Text<'a>,
    #[serde(borrow)]
    pub(super) directory: Text<'a>,
    #[serde(borrow)]
    pub(super) version: Text<'a>,
}

/// A message with its parts.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpencodeMessage<'a> {
    #[serde(borrow)]
    pub(super) info: Object<OpencodeMessageInfo<'a>>,
    #[serde(borrow)]
    pub(super) parts: Objects<OpencodePart<'a>>,
}

/// What a message is.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpencodeMessageInfo<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow, rename = "sessionID")]
    pub(super) session: Text<'a>,
    #[serde(borrow)]
    pub(super) role: Text<'a>,
    pub(super) time: Object<OpencodeTime>,
    #[serde(borrow, rename = "modelID")]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) path: Object<Folder<'a>>,
    pub(super) tokens: Object<OpencodeTokens>,
    pub(super) cost: Number,
    /// On the model's messages: whether it is the summary that a compaction made.
    pub(super) summary: Flag,
}

/// Where the model worked.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Folder<'a> {
    #[serde(borrow)]
    pub(super) root: Text<'a>,
}

/// When something was; which of the fields there are differs.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpencodeTime {
    pub(super) created: Timestamp,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

/// What a request used; `input` is without what came from the cache.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpencodeTokens {
    pub(super) total: Count,
    pub(super) input: Count,
    pub(super) output: Count,
    pub(super) reasoning: Count,
    pub(super) cache: Object<Cache>,
}

/// Tokens read from and written to the cache.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Cache {
    pub(super) read: Count,
    pub(super) write: Count,
}

/// A piece of a message.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpencodePart<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow, rename = "messageID")]
    pub(super) message: Text<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    /// On texts of the user: written by the program.
    pub(super) synthetic: Flag,
    /// On texts: not shown to the model.
    pub(super) ignored: Flag,
    #[serde(borrow, rename = "callID")]
    pub(super) call: Text<'a>,
    #[serde(borrow)]
    pub(super) tool: Text<'a>,
    #[serde(borrow)]
    pub(super) state: Object<OpencodeCallState<'a>>,
    pub(super) time: Object<OpencodeTime>,
    pub(super) tokens: Object<OpencodeTokens>,
    pub(super) cost: Number,
}

/// How far a call is.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpencodeCallState<'a> {
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    pub(super) input: Json,
    #[serde(borrow)]
    pub(super) output: Text<'a>,
    #[serde(borrow)]
    pub(super) error: Text<'a>,
    pub(super) metadata: Object<OpencodeMetadata>,
    pub(super) time: Object<OpencodeTime>,
}

/// What a tool says beside its output.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpencodeMetadata {
    pub(super) exit: Number,
}
