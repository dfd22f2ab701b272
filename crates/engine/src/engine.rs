use deloop_detect::{
    Around, CallRecord, Ending, Happening, History, Swarm, SwarmCount, fold, short_hash, signature, target,
};
use deloop_policy::{Decided, Found, Profile, Setting, Told, Tried, decide, events};
use deloop_store::{Codec, Store, StoreError};
use deloop_types::{Action, Body, Decision, Event, Mode, Origin, Step};

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
    /// The call that a result belongs to, with what it is evidence of.
    pub judged: Option<CallRecord>,
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
        let (observed, in_vain) =
            store.update(self, &step.session, step.ts, |session| self.fold(session, step, &swarm))?;
        if let (Some(swarm), Some(call)) = (&step.swarm, in_vain) {
            store.swarm(swarm, |swarm| swarm.push_in_vain(call, worker(step)))?;
        }
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
        let about = turn.calls.iter().map(|call| {
            let kind = self.profile.tools.kind(&call.tool);
            (target(&call.tool, &call.args, kind).short(), signature(call, &self.profile.tools).short())
        });
        let about: Vec<(u64, u64)> = about.collect();
        let count = |swarm: &mut Swarm, (target, call): &(u64, u64)| {
            let in_vain = swarm.in_vain(*call);
            let (in_vain, in_vain_workers) = (in_vain.calls, in_vain.workers);
            Some(SwarmCount { in_vain, in_vain_workers, ..swarm.push(*target, worker(step)) })
        };
        store.swarm(swarm, |swarm| about.iter().map(|about| count(swarm, about)).collect())
    }

    fn fold(
        &self,
        session: &mut Session,
        step: &Step,
        swarm: &[Option<SwarmCount>],
    ) -> (Observed, Option<u64>) {
        let index = session.steps;
        session.steps += 1;
        session.ledger.tick(step.ts);
        if let Body::Usage(usage) = &step.body {
            session.ledger.charge(usage);
        }
        let at = session.agent(step.agent.as_deref(), || self.fresh_agent(step.agent.clone()));
        let asked = matches!(&step.body, Body::User(user)
            if user.origin == Origin::Human && session.agents[at].history.is_request(user));
        if asked {
            // Who writes to the session writes to all who work in it.
            let all = step.agent.is_none();
            let heard = |(n, _): &(usize, &mut Agent)| all || *n == at;
            session.agents.iter_mut().enumerate().filter(heard).for_each(|(_, agent)| agent.tried.human());
        }
        let ledger = session.ledger;
        let Agent { history, memories, tried, told, seen, .. } = &mut session.agents[at];
        *seen = index;
        match &step.body {
            Body::Compact => tried.compacted(),
            Body::Delivery(delivery) => tried.delivered(delivery.step, delivery.ok),
            _ => {}
        }
        let mut found: Vec<Found> = Vec::new();
        let mut calls = 0;
        let mut in_vain = None;
        let mut judged = None;
        let around = Around { ledger: &ledger, tools: &self.profile.tools };
        fold(history, around, step, index, swarm, &mut |moment| {
            let call = match &moment.event {
                Happening::Call(view) => {
                    calls += 1;
                    Some((view.call.id.as_ref(), calls - 1))
                }
                Happening::Result(view) => {
                    judged = Some(view.record);
                    let empty = view.record.ending == Ending::Empty && view.record.searches();
                    in_vain = (view.record.ending.in_vain() || empty).then_some(view.record.signature);
                    None
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
        if decision.action == Action::Block {
            let message = decision.message.as_deref().unwrap_or_default();
            decision.calls.iter().for_each(|id| history.refuse(id, message));
        }
        let events = events(step, &decision, &ledger, told);
        if clear {
            session.agents[at] = self.fresh_agent(step.agent.clone());
        }
        (Observed { decision, events, judged }, in_vain)
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

/// Who made a step, among the workers of a swarm.
fn worker(step: &Step) -> u64 {
    short_hash(format!("{}\0{}", step.session, step.agent.as_deref().unwrap_or_default()).as_bytes())
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
