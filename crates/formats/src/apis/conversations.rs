//! What stands around a list of messages in a file: a request and its response, the record of an experiment, a list
//! of conversations, one conversation a line.

use std::marker::PhantomData;

use deloop_types::SessionId;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::apis::incremental::IncrementalLog;
use crate::json::document;
use crate::json::field::{self, Field};
use crate::recent::RecentMap;
use crate::{Item, Reader, Sink, Source};

/// How the messages of one API are read. The session of what comes back is set later.
pub(crate) trait MessageFormat {
    /// The steps of the messages that were sent to a model, the answers of earlier requests among them.
    fn messages(messages: Field<'_>, out: &mut Sink<'_>) -> Vec<Item>;

    /// The steps that a response adds to them.
    fn response(response: &ConversationFields<'_>, out: &mut Sink<'_>) -> Vec<Item>;
}

/// A conversation and what stands around it; or a response.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ConversationFields<'a> {
    #[serde(borrow)]
    messages: Field<'a>,
    #[serde(borrow)]
    traj: Field<'a>,
    #[serde(borrow)]
    input: Field<'a>,
    #[serde(borrow)]
    request: Field<'a>,
    #[serde(borrow)]
    response: Field<'a>,
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    role: Field<'a>,
    #[serde(borrow)]
    session_id: Field<'a>,
    #[serde(borrow)]
    conversation_id: Field<'a>,
    #[serde(borrow)]
    trace_id: Field<'a>,
    #[serde(borrow)]
    instance_id: Field<'a>,
    #[serde(borrow)]
    task_id: Field<'a>,
    #[serde(borrow)]
    trial: Field<'a>,
    #[serde(borrow)]
    previous_response_id: Field<'a>,
    /// Of the conversation; or of the response, when it is merged with its request.
    #[serde(borrow)]
    pub(crate) id: Field<'a>,
    #[serde(borrow)]
    pub(crate) model: Field<'a>,
    #[serde(borrow)]
    pub(crate) created: Field<'a>,
    #[serde(borrow)]
    pub(crate) created_at: Field<'a>,
    /// What a response of Chat Completions says.
    #[serde(borrow)]
    pub(crate) choices: Field<'a>,
    /// What a response of Messages says.
    #[serde(borrow)]
    pub(crate) content: Field<'a>,
    /// What a response of Responses says.
    #[serde(borrow)]
    pub(crate) output: Field<'a>,
    #[serde(borrow)]
    pub(crate) usage: Field<'a>,
}

impl<'a> ConversationFields<'a> {
    /// Reads an object; `None` when it is something else.
    pub(crate) fn read(field: Field<'a>) -> Option<Self> {
        field::object(field)
    }

    /// Returns whether it is a conversation, and no message or item.
    fn is_conversation(&self) -> bool {
        self.kind.is_none() && self.role.is_none() && (self.list().is_some() || self.output.is_some())
    }

    /// Its messages, perhaps those of the request in it.
    fn list(&self) -> Field<'a> {
        self.own_list().or_else(|| Self::read(self.request)?.own_list())
    }

    fn own_list(&self) -> Field<'a> {
        self.messages.or(self.traj).or(self.input)
    }

    /// Returns whether it is merged with the response: then its id is the response's.
    fn is_answered(&self) -> bool {
        [self.choices, self.content, self.output].iter().any(Option::is_some)
    }

    /// Its name, if it has one: the id of a session or conversation, or that of a task with the number of the trial.
    fn name(&self) -> Option<String> {
        let ids = [self.session_id, self.conversation_id, self.trace_id, self.instance_id];
        let task = || match (field::name(self.task_id)?, field::name(self.trial)) {
            (task, Some(trial)) => Some(format!("{task}-{trial}")),
            (task, None) => Some(task),
        };
        let id = || if self.is_answered() { None } else { field::name(self.id) };
        ids.into_iter().find_map(field::name).or_else(task).or_else(id)
    }
}

/// Reads the conversations of a file.
pub(crate) struct Conversations<S> {
    stem: String,
    log: IncrementalLog,
    /// The sessions of responses that later requests may refer to instead of repeating the conversation.
    answered: RecentMap<String, SessionId>,
    format: PhantomData<S>,
}

impl<S: MessageFormat> Conversations<S> {
    pub(crate) fn new(source: &Source<'_>) -> Self {
        Self {
            stem: source.stem().unwrap_or("default").to_owned(),
            log: IncrementalLog::default(),
            answered: RecentMap::default(),
            format: PhantomData,
        }
    }

    fn value(&mut self, value: &RawValue, out: &mut Sink<'_>) {
        if !value.get().starts_with('[') {
            return self.conversation(ConversationFields::read(Some(value)), out);
        }
        let elements = field::items(Some(value));
        let first = elements.first().copied();
        let several = first.is_some_and(|first| first.get().starts_with('['))
            || ConversationFields::read(first).is_some_and(|first| first.is_conversation());
        if !several {
            return self.list(Some(value), out);
        }
        for element in elements {
            if element.get().starts_with('[') {
                self.list(Some(element), out);
            } else {
                self.conversation(ConversationFields::read(Some(element)), out);
            }
        }
    }

    /// A list of messages with nothing around it.
    fn list(&mut self, messages: Field<'_>, out: &mut Sink<'_>) {
        let items = S::messages(messages, out);
        self.log.add(None, &self.stem, items, out);
    }

    fn conversation(&mut self, fields: Option<ConversationFields<'_>>, out: &mut Sink<'_>) {
        let Some(fields) = fields else { return out.unreadable("neither an object nor a list") };
        if !fields.is_conversation() {
            return out.unknown("object without messages");
        }
        let mut items = S::messages(fields.list(), out);
        let response = ConversationFields::read(fields.response);
        let response = response.as_ref().unwrap_or(&fields);
        items.extend(S::response(response, out));
        let request = ConversationFields::read(fields.request);
        let previous = field::name(request.as_ref().unwrap_or(&fields).previous_response_id);
        let session = match previous.and_then(|id| self.answered.remove(&id)) {
            Some(session) => self.log.go_on(session, items, out),
            None => self.log.add(fields.name().as_deref(), &self.stem, items, out),
        };
        if let (Some(id), true) = (field::name(response.id), response.output.is_some()) {
            self.answered.insert(id, session);
        }
    }
}

impl<S: MessageFormat> Reader for Conversations<S> {
    fn read(&mut self, bytes: &[u8], out: &mut Sink<'_>) {
        if bytes.starts_with(b"{")
            && let Ok(fields) = serde_json::from_slice(bytes)
        {
            return self.conversation(Some(fields), out);
        }
        document::each(bytes, out, |value, out| self.value(value, out));
    }
}
