use deloop_detect::{Around, History, SwarmCount, fold, short_hash, target};
use deloop_policy::{Decided, Found, Profile, Setting, Told, Tried, decide, events};
use deloop_store::{Codec, Store, StoreError};
use deloop_types::{Body, Decision, Event, Mode, Origin, Step, UserText};

use crate::session::{Agent, Session};
use crate::{Checkpoint, RestoreError};

/// How far deloop may go, and for whom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// What the decisions are capped at.
    pub mode: Mode,
    /// Whether a person is there to be asked; an unattended run is blocked instead.
    pub attended: bool,
}

/// What one step led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// What to do.
    pub decision: Decision,
    /// What people and other programs want to know.
    pub events: Vec<Event>,
}

/// The fold from Steps to Decisions, without a place to keep sessions: for those who bring their own
/// [`Store`]. Others want a [`Guard`](crate::Guard).
pub struct Engine {
    profile: Profile,
    options: Options,
}

impl Engine {
    /// An engine that follows this profile.
    #[must_use]
    pub fn new(profile: Profile, options: Options) -> Self {
        Self { profile, options }
    }

    /// The profile it follows.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Enters a step into its session and says what to do.
    ///
    /// # Errors
    /// When the store fails.
    pub fn observe<S: Store<Session>>(&self, store: &S, step: &Step) -> Result<Observed, StoreError> {
        let swarm = self.swarm_counts(store, step)?;
        let observed =
            store.update(self, &step.session, step.ts, |session| self.fold(session, step, &swarm))?;
        if step.body == Body::End {
            store.forget(&step.session)?;
        }
        Ok(observed)
    }

    fn swarm_counts<S: Store<Session>>(
        &self,
        store: &S,
        step: &Step,
    ) -> Result<Vec<Option<SwarmCount>>, StoreError> {
        let (Some(swarm), Body::Turn(turn)) = (&step.swarm, &step.body) else { return Ok(Vec::new()) };
        let worker = format!("{}\0{}", step.session, step.agent.as_deref().unwrap_or_default());
        let worker = short_hash(worker.as_bytes());
        let about = turn.calls.iter().map(|call| {
            let kind = self.profile.tools.kind(&call.tool);
            target(&call.tool, &call.args, kind).short()
        });
        let about: Vec<u64> = about.collect();
        store.swarm(swarm, |swarm| about.iter().map(|t| Some(swarm.push(*t, worker))).collect())
    }

    fn fold(&self, session: &mut Session, step: &Step, swarm: &[Option<SwarmCount>]) -> Observed {
        let automatic = automatic(session, step);
        let step = automatic.as_ref().unwrap_or(step);
        let index = session.steps;
        session.steps += 1;
        session.ledger.tick(step.ts);
        if let Body::Usage(usage) = &step.body {
            session.ledger.charge(usage);
        }
        if step.agent.is_none() && from_a_person(step) {
            // Who writes to the session writes to all who work in it.
            session.agents.iter_mut().for_each(|agent| agent.tried.human());
        }
        let at = session.agent(step.agent.as_deref(), || self.fresh_agent(step.agent.clone()));
        let ledger = session.ledger;
        let exchange = &mut session.exchange;
        let Agent { history, memories, tried, told, seen, .. } = &mut session.agents[at];
        *seen = index;
        match &step.body {
            Body::User(_) if from_a_person(step) => tried.human(),
            Body::Compact => tried.compacted(),
            Body::Delivery(delivery) => tried.delivered(delivery.step, delivery.ok),
            _ => {}
        }
        let mut found: Vec<Found> = Vec::new();
        let mut calls = 0;
        let around = Around { exchange, ledger: &ledger, tools: &self.profile.tools };
        fold(history, around, step, index, swarm, &mut |moment| {
            let call = match &moment.event {
                deloop_detect::Happening::Call(view) => {
                    calls += 1;
                    Some((view.call.id.as_ref(), calls - 1))
                }
                _ => None,
            };
            for (index, (watch, memory)) in self.profile.watches.iter().zip(memories.iter_mut()).enumerate() {
                if let Some(finding) = watch.detector.look(moment, memory) {
                    let call = call.map(|(id, n)| id.cloned().unwrap_or_else(|| format!("#{n}")));
                    found.push(Found { watch: index, finding, call });
                }
            }
        });
        let setting = Setting {
            session: &step.session,
            step: index,
            turns: history.turns(),
            tools: history.tools(),
            mode: self.options.mode,
            attended: self.options.attended,
        };
        let Decided { decision, clear } = decide(&self.profile, found, tried, &setting);
        let events = events(step, &decision, &ledger, told);
        if clear {
            session.agents[at] = self.fresh_agent(step.agent.clone());
        }
        Observed { decision, events }
    }

    fn fresh_agent(&self, name: Option<String>) -> Agent {
        Agent {
            name,
            seen: 0,
            history: History::default(),
            memories: self.profile.watches.iter().map(|w| w.detector.fresh()).collect(),
            tried: Tried::default(),
            told: Told::default(),
        }
    }
}

fn from_a_person(step: &Step) -> bool {
    matches!(&step.body, Body::User(user) if user.origin == Origin::Human && !user.text.trim().is_empty())
}

/// From so many times the same message in a row on, it is a program that writes it.
const AUTOMATIC: u32 = 3;

/// The step as the harness's, if it is a message that no person would write so often.
fn automatic(session: &mut Session, step: &Step) -> Option<Step> {
    let Body::User(UserText { text, origin: Origin::Human }) = &step.body else { return None };
    let hash = short_hash(text.as_bytes());
    let times = if session.prompt.0 == hash { session.prompt.1.saturating_add(1) } else { 1 };
    session.prompt = (hash, times);
    let harness = || Body::User(UserText { text: text.clone(), origin: Origin::Harness });
    (times >= AUTOMATIC).then(|| Step { body: harness(), ..step.clone() })
}

impl Codec<Session> for Engine {
    fn fresh(&self) -> Session {
        Session::default()
    }

    fn freeze(&self, session: &Session) -> Result<String, StoreError> {
        let checkpoint = Checkpoint::of(session, &self.profile).map_err(|e| StoreError(e.to_string()))?;
        serde_json::to_string(&checkpoint).map_err(|e| StoreError(e.to_string()))
    }

    fn thaw(&self, text: &str) -> Result<Session, StoreError> {
        let read = |text| -> Result<Session, RestoreError> {
            let checkpoint: Checkpoint =
                serde_json::from_str(text).map_err(|e| RestoreError(e.to_string()))?;
            checkpoint.into_session(&self.profile)
        };
        read(text).map_err(|e| StoreError(e.to_string()))
    }
}
