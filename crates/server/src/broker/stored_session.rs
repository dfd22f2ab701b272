use deloop_engine::Session;
use deloop_store::{Codec, StoreError};
use deloop_types::{Body, Event, Millis, Step, limits};
use serde::{Deserialize, Serialize};

use crate::money::SessionMoney;

/// Maximum number of messages that wait for an agent. The oldest are dropped first.
const INBOX: usize = 8;

/// When a stop counts as one that nobody announced, in milliseconds: the server that decided about it is slow or gone.
const OVERDUE: u64 = 3_000;

/// A session as a broker stores it: the engine's state, and what only a broker needs.
#[derive(Default)]
pub(crate) struct StoredSession {
    pub(crate) session: Session,
    pub(crate) extras: SessionExtras,
}

/// The version of [`SessionExtras`] as they are stored. Texts without one have the first.
const VERSION: u32 = 1;

/// What every version of the extras has.
#[derive(Deserialize)]
struct ExtrasVersion {
    version: u32,
}

/// What a broker stores of a session besides the engine's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionExtras {
    version: u32,
    /// Messages of people that the agent hasn't got yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inbox: Vec<String>,
    /// The messages that went out with the decision about this step, until the next ones go out.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<(u64, Vec<String>)>,
    /// What attributes its spend and loops.
    #[serde(skip_serializing_if = "SessionMoney::is_empty")]
    pub(crate) money: SessionMoney,
    /// The model that it used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// When its stop was decided, and the events of that, until its server has announced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    unannounced: Option<(i64, Vec<Event>)>,
    /// The group of keys that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

impl Default for SessionExtras {
    fn default() -> Self {
        let (inbox, sent, money, model, unannounced, owner) = Default::default();
        Self { version: VERSION, inbox, sent, money, model, unannounced, owner }
    }
}

impl SessionExtras {
    /// Reads the stored text.
    fn thaw(text: &str) -> Result<Self, StoreError> {
        let later = |found: u32| StoreError::Later { found, known: VERSION };
        match serde_json::from_str::<Self>(text) {
            Ok(extras) if extras.version > VERSION => Err(later(extras.version)),
            Ok(extras) => Ok(Self { version: VERSION, ..extras }),
            Err(error) => match serde_json::from_str(text) {
                Ok(ExtrasVersion { version }) if version > VERSION => Err(later(version)),
                _ => Err(StoreError::decode(error)),
            },
        }
    }

    /// Returns the group of keys that it belongs to; `None` if none has written to it.
    pub(crate) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// Notes that a group of keys writes to it. It belongs to the first one.
    pub(crate) fn claim(&mut self, group: Option<&str>) {
        if self.owner.is_none() {
            self.owner = group.map(str::to_owned);
        }
    }

    /// Notes what a step says about the session.
    pub(crate) fn note(&mut self, step: &Step) {
        if let Body::Usage(usage) = &step.body
            && let Some(model) = usage.model.as_deref()
            && self.model.as_deref() != Some(model)
        {
            self.model = Some(limits::name(model.to_owned()));
        }
    }

    /// Returns the model that the session used last.
    pub(crate) fn model(&self) -> Option<String> {
        self.model.clone()
    }

    /// Notes that a stop is to be announced.
    pub(crate) fn stopped(&mut self, events: &[Event], now: Millis) {
        self.unannounced = Some((now.0, events.to_vec()));
    }

    /// Notes that the stop was announced.
    pub(crate) fn announced(&mut self) {
        self.unannounced = None;
    }

    /// Takes the events of a stop that its server should have announced by now.
    pub(crate) fn take_overdue(&mut self, now: Millis) -> Option<Vec<Event>> {
        let overdue = self.unannounced.take_if(|(at, _)| now.since(Millis(*at)) > OVERDUE);
        overdue.map(|(_, events)| events)
    }

    /// Adds a message for the agent.
    pub(crate) fn send(&mut self, message: String) {
        if self.inbox.len() >= INBOX {
            self.inbox.remove(0);
        }
        self.inbox.push(message);
    }

    /// Takes the messages that wait for the agent. They go out with the decision about this step.
    pub(crate) fn receive(&mut self, step: u64) -> Vec<String> {
        if !self.inbox.is_empty() {
            self.sent = Some((step, self.inbox.clone()));
        }
        std::mem::take(&mut self.inbox)
    }

    /// Returns whether messages went out with the decision about this step, and none since.
    pub(crate) fn went_out_with(&self, step: u64) -> bool {
        self.sent.as_ref().is_some_and(|(sent, _)| *sent == step)
    }

    /// Notes whether the message with the decision about a step reached the agent. If not, it waits again.
    pub(crate) fn confirm(&mut self, step: u64, arrived: bool) {
        if let Some((_, messages)) = self.sent.take_if(|(sent, _)| *sent == step)
            && !arrived
        {
            self.inbox.splice(0..0, messages);
            self.inbox.truncate(INBOX);
        }
    }
}

impl StoredSession {
    /// Returns the state as text: the extras in the first line, then the engine's state.
    pub(crate) fn freeze(&self, codec: &dyn Codec<Session>) -> Result<String, StoreError> {
        let mut text = serde_json::to_string(&self.extras).map_err(StoreError::encode)?;
        text.push('\n');
        text.push_str(&codec.freeze(&self.session)?);
        Ok(text)
    }

    /// Reads what [`StoredSession::freeze`] returned.
    pub(crate) fn thaw(text: &str, codec: &dyn Codec<Session>) -> Result<Self, StoreError> {
        let (extras, session) = text.split_once('\n').unwrap_or(("{}", text));
        Ok(Self { session: codec.thaw(session)?, extras: SessionExtras::thaw(extras)? })
    }

    /// Returns what a text that can't be read still tells for sure of the session.
    pub(crate) fn salvage(text: &str, codec: &dyn Codec<Session>) -> Option<Session> {
        codec.salvage(text.rsplit_once('\n').map_or(text, |(_, session)| session))
    }
}
