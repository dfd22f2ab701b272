use std::sync::Arc;

use deloop_detect::{
    CallRecord, Ending, FailureNote, FoldContext, Happening, History, Ledger, SwarmCall, SwarmCount,
    SwarmWorker, WholeSession, fold, signature, target,
};
use deloop_policy::{
    AlertsSent, Decided, DecisionContext, DetectorHit, LadderState, Ladders, Profile, Rules, decide, events,
    told_to_others,
};
use deloop_store::{Codec, Store, StoreError};
use deloop_types::{
    Action, Body, Call, ControllerNotice, Decision, Event, EventKind, Millis, SessionId, Step,
};

use crate::memories::Memories;
use crate::session::{Agent, Session, note_limit};
use crate::stored_session;
use crate::surroundings::Surroundings;
use crate::tasks::Tasks;
use crate::{Checkpoint, Options};

/// The result of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The decision.
    pub decision: Decision,
    /// The events, for people and other programs.
    pub events: Vec<Event>,
    /// The call that a result belongs to, with its evidence.
    pub judged: Option<CallRecord>,
    /// Whether the decision is a stop that applied before this step.
    pub standing: bool,
    /// Whether the step lifted a stop: a person's message, an intervention or an end.
    pub lifted: bool,
    /// The step that the episode began at, which identifies it among those of the agent; `None` if the decision isn't
    /// about an episode of a loop.
    pub episode: Option<u64>,
}

impl Observed {
    /// Creates the result of a decision that was made elsewhere.
    #[must_use]
    pub fn elsewhere(decision: Decision) -> Self {
        Self { decision, events: Vec::new(), judged: None, standing: false, lifted: false, episode: None }
    }
}

/// Returns the embedding of a text, or `None` if it has none at hand. It runs while a step waits for its decision.
pub type EmbedFn = Arc<dyn Fn(&str) -> Option<Vec<f32>> + Send + Sync>;

/// Turns Steps into Decisions, using a [`Store`] that you provide. To keep sessions in memory, use a
/// [`Guard`](crate::Guard).
#[derive(Clone)]
pub struct Engine {
    profile: Arc<Profile>,
    options: Options,
    embed: Option<EmbedFn>,
    clock: Option<fn() -> Millis>,
}

impl Engine {
    /// Creates an engine for this profile.
    #[must_use]
    pub fn new(profile: Profile, options: Options) -> Self {
        Self { profile: Arc::new(profile), options, embed: None, clock: None }
    }

    /// Computes the embeddings of turns that come without one, if the profile compares turns by them
    /// (`by = "embeddings"`).
    #[must_use]
    pub fn with_embeddings(mut self, embed: EmbedFn) -> Self {
        self.embed = Some(embed).filter(|_| self.profile.compares_embeddings());
        self
    }

    /// Takes the time of steps that have none from this clock, where a document asks for one: in the buffer of `similar-call`
    /// and in [`LoopDetectionState`](crate::LoopDetectionState). No decision depends on it.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> Millis) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Returns the same engine with other options. The profile is shared.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self { options, ..self.clone() }
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    /// Returns the profile.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Adds a step to its session and returns what to do.
    ///
    /// # Errors
    /// When the store fails.
    pub fn observe<S: Store<Session>>(&self, store: &S, step: &Step) -> Result<Observed, StoreError> {
        match (&step.body, &step.swarm) {
            (Body::State, _) => return self.state(store, step),
            (Body::SwarmEnd, Some(swarm)) => store.forget_swarm(swarm)?,
            _ => {}
        }
        let embedded = self.embedded(step);
        let step = embedded.as_ref().unwrap_or(step);
        let around = Surroundings {
            swarm: self.swarm_counts(store, step)?,
            spawned: self.nesting(store, step)?,
            failures: self.known_failures(store, step)?,
        };
        let Folded { observed, in_vain, notice, failure, is_over } =
            store.update(self, &step.session, step.ts, |session| self.fold(session, step, &around))?;
        if let (Some(project), Some(failure)) = (&step.project, failure) {
            store.note_failure(project, &failure)?;
        }
        if let Some((controller, notice)) = notice {
            match store.update(self, &controller, step.ts, |session| session.notify(notice.clone())) {
                // It stays as it is, and nobody reads its notices.
                Err(error) if error.is_unreadable() => {}
                noted => noted?,
            }
        }
        if let (Some(swarm), Some(call)) = (&step.swarm, in_vain) {
            store.tally_in_vain(swarm, worker(step), call)?;
        }
        if is_over {
            store.forget(&step.session)?;
        }
        Ok(observed)
    }

    /// Returns the current stop for an agent of a session, if the run or the session was stopped.
    ///
    /// # Errors
    /// When the store fails.
    pub fn standing_stop<S: Store<Session>>(
        &self,
        store: &S,
        session: &SessionId,
        agent: Option<&str>,
    ) -> Result<Option<Decision>, StoreError> {
        Ok(store.look(self, session, |state| state.stop_of(agent).cloned())?.flatten())
    }

    /// Returns the step with the embedding of its text, if it needs one that can be computed.
    fn embedded(&self, step: &Step) -> Option<Step> {
        let Body::Turn(turn) = &step.body else { return None };
        let vector = match (&turn.embedding, turn.said()) {
            (None, Some(text)) => self.embed.as_ref()?(text)?,
            _ => return None,
        };
        let mut step = step.clone();
        if let Body::Turn(turn) = &mut step.body {
            turn.embedding = Some(vector);
        }
        Some(step)
    }

    fn swarm_counts<S: Store<Session>>(
        &self,
        store: &S,
        step: &Step,
    ) -> Result<Vec<Option<SwarmCount>>, StoreError> {
        let (Some(swarm), Body::Turn(turn)) = (&step.swarm, &step.body) else { return Ok(Vec::new()) };
        let tools = &self.profile.tools;
        let about = |call: &Call| signature(call, tools).short();
        let agent = |session: &Session| {
            let history = session.agents.iter().find(|a| a.name == step.agent).map(|a| &a.history);
            let over = history.and_then(History::turn_over);
            let known = |call: &Call| history.is_some_and(|h| h.is_known(call, about(call), over));
            turn.calls.iter().map(known).collect()
        };
        // Checked first: a call repeated under the same id has already been counted.
        let known: Option<Vec<bool>> = match store.look(self, &step.session, agent) {
            // The update decides what becomes of such a state.
            Err(error) if error.is_unreadable() => None,
            known => known?,
        };
        let known = known.unwrap_or_else(|| vec![false; turn.calls.len()]);
        let new = turn.calls.iter().zip(&known).filter(|(_, known)| !**known).map(|(call, _)| {
            let target = target(&call.tool, &call.args, tools.kind(&call.tool)).short();
            SwarmCall { call, target, signature: about(call) }
        });
        let new: Vec<SwarmCall<'_>> = new.collect();
        if new.is_empty() {
            return Ok(vec![None; known.len()]);
        }
        let mut counts = store.tally(swarm, worker(step), &new)?.into_iter();
        Ok(known.into_iter().map(|known| if known { None } else { counts.next() }).collect())
    }

    fn fold(&self, session: &mut Session, step: &Step, around: &Surroundings) -> Folded {
        let notices = session.notices_for(step);
        let mut folded = self.judge(session, step, around);
        if let (None, Some(failure)) = (&step.project, folded.failure) {
            session.note_failure(step, &failure);
        }
        folded.observed.decision.notices = notices;
        folded.is_over = self.ends(session, step);
        folded.observed.lifted |= folded.is_over && session.is_stopped();
        folded.notice = self.notice(session, step, &folded.observed);
        folded
    }

    /// Returns the notice about a new warning or stop, for the controlling session. One for the main agent of the same
    /// session is added right away.
    fn notice(
        &self,
        session: &mut Session,
        step: &Step,
        observed: &Observed,
    ) -> Option<(SessionId, ControllerNotice)> {
        if !self.profile.tell_controller {
            return None;
        }
        let alert = observed.events.iter().find(|event| event.event == EventKind::Alert)?;
        let Decision { step: index, action, level, .. } = observed.decision;
        let reason = alert.finding.as_ref().and_then(told_to_others).or_else(|| alert.reason.clone());
        let reason = reason.unwrap_or_default();
        let mut notice = ControllerNotice::new(step.session.clone(), index, action, level, reason);
        notice.agent.clone_from(&step.agent);
        match session.controller.clone().filter(|controller| *controller != step.session) {
            Some(controller) => return Some((controller, notice)),
            None if step.agent.is_some() => session.notify(notice),
            None => {}
        }
        None
    }

    /// Returns whether a step ends its session, so that it is forgotten.
    fn ends(&self, session: &Session, step: &Step) -> bool {
        step.body == Body::End && !(self.options.keeps_stops && session.is_stopped())
    }

    fn judge(&self, session: &mut Session, step: &Step, around: &Surroundings) -> Folded {
        let index = session.count(step);
        let at = session.agent(step.agent.as_deref(), || self.fresh_agent(step.agent.clone()));
        let lifted = session.start_over(step, at, self.options.keeps_stops);
        let is_over = self.ends(session, step);
        let ledger = session.ledger;
        let arrived = step.ts.or_else(|| self.clock.map(|now| now()));
        let Agent { history, memories, ladder, alerts, seen, .. } = &mut session.agents[at];
        *seen = index;
        if let Some(ended) = session.ended.as_deref().filter(|_| !is_over) {
            let mut decision = ended.clone();
            decision.step = index;
            let nothing = Decision::go_on(step.session.clone(), index);
            let events = events(step, &nothing, &ledger, session.controller.as_ref(), alerts, false);
            return Folded::of(Observed { events, standing: true, ..Observed::elsewhere(decision) });
        }
        match &step.body {
            Body::Compact => ladder.compacted(),
            Body::Delivery(delivery) => {
                ladder.delivered(delivery.step, delivery.ok);
                session.ladder.iter_mut().for_each(|whole| whole.delivered(delivery.step, delivery.ok));
            }
            _ => {}
        }
        let turns = history.turns();
        let (whole, tasks) = (&mut session.whole, &mut session.tasks);
        let state = FoldState { history, whole, memories, tasks, ledger: &ledger, arrived };
        let Looked { found, in_vain, judged, failure } = self.look(state, step, index, around);
        let context = DecisionContext {
            session: &step.session,
            step: index,
            turns: history.turns(),
            tools: history.tools(),
            mode: self.options.mode,
            attended: self.options.attended,
            roles: self.options.roles,
            at_result: matches!(step.body, Body::Result(_)),
            limits_hold: self.options.limits_hold,
            rollback: self.options.rollback,
            usd: ledger.usd,
        };
        session.ledger.turns += history.turns().saturating_sub(turns);
        let mut whole = session.ladder.take().unwrap_or_default();
        let ladders = Ladders { agent: ladder, session: &mut whole };
        let Decided { decision, clear, ends_session, by, episode, of_limit } =
            decide(&self.profile, found, ladders, &context);
        session.ladder = (!whole.is_empty()).then_some(whole);
        if self.profile.rules == Rules::Episodes {
            note_limit(&mut session.ledger, &decision, of_limit, judged.as_ref());
        }
        if let (Some(by), Some(ts)) = (by.filter(|_| decision.action >= Action::Nudge), arrived) {
            memories.with(by, |memory| self.profile.watches[by].detector.warned(memory, ts));
        }
        if decision.action == Action::Block {
            let message = decision.message.as_deref().unwrap_or_default();
            decision.calls.iter().for_each(|id| history.refuse(id, message));
        }
        let every = self.profile.sends_every_event(&decision);
        let events = events(step, &decision, &ledger, session.controller.as_ref(), alerts, every);
        let standing = decision.action == Action::Stop && by.is_none();
        if clear {
            session.agents[at] = self.fresh_agent(step.agent.clone());
        }
        if ends_session {
            let mut ended = decision.clone();
            ended.findings.clear();
            session.ended = Some(Box::new(ended));
        }
        Folded {
            in_vain,
            failure,
            ..Folded::of(Observed { decision, events, judged, standing, lifted, episode })
        }
    }

    /// Adds a step to an agent's history and asks all detectors about it.
    fn look(&self, state: FoldState<'_>, step: &Step, index: u64, around: &Surroundings) -> Looked {
        let FoldState { history, whole, memories, tasks, ledger, arrived } = state;
        let mut looked = Looked::default();
        let reads_failures = self.reads_failures();
        looked.failure = FailureNote::of_step(step, history).filter(|_| reads_failures);
        let Surroundings { swarm, spawned, failures } = around;
        let tools = &self.profile.tools;
        let context = FoldContext { ledger, tools, arrived, spawned: *spawned, failures: failures.as_ref() };
        let mut calls = 0;
        fold(history, whole, context, step, index, swarm, &mut |moment| {
            let call = match &moment.event {
                Happening::Call(view) => {
                    calls += 1;
                    if reads_failures {
                        let note = FailureNote::of_call(moment.history, &view.record, moment.failures);
                        looked.failure = looked.failure.or(note);
                    }
                    Some((view.call.id.as_ref(), calls - 1))
                }
                Happening::Result(view) => {
                    looked.judged = Some(view.record);
                    let empty = view.record.ending == Ending::Empty && view.record.searches();
                    let in_vain = view.record.ending.in_vain() || empty;
                    looked.in_vain = in_vain.then_some(view.record.signature);
                    if reads_failures {
                        looked.failure =
                            FailureNote::of_result(moment.history, &view.record, moment.failures);
                    }
                    None
                }
                _ => None,
            };
            for (index, watch) in self.profile.watches.iter().enumerate() {
                let memories = match moment.task.filter(|_| watch.detector.follows_tasks()) {
                    Some(task) => tasks.of(task, moment.step),
                    None => &mut *memories,
                };
                if let Some(finding) = memories.with(index, |memory| watch.detector.look(moment, memory)) {
                    let call = call.map(|(id, n)| id.cloned().unwrap_or_else(|| format!("#{n}")));
                    looked.found.push(DetectorHit { watch: index, finding: *finding, call });
                }
            }
            tasks.completed_at(moment);
        });
        looked
    }

    fn fresh_agent(&self, name: Option<String>) -> Agent {
        Agent {
            name,
            seen: 0,
            history: History::default(),
            memories: self.profile.watches.iter().map(|watch| watch.detector.fresh()).collect(),
            ladder: LadderState::default(),
            alerts: AlertsSent::default(),
        }
    }
}

/// What a step changes, before anything is decided.
struct FoldState<'a> {
    history: &'a mut History,
    whole: &'a mut WholeSession,
    memories: &'a mut Memories,
    tasks: &'a mut Tasks,
    ledger: &'a Ledger,
    arrived: Option<Millis>,
}

/// What the detectors found at a step, and what the step means for others.
#[derive(Default)]
struct Looked {
    found: Vec<DetectorHit>,
    in_vain: Option<u64>,
    judged: Option<CallRecord>,
    failure: Option<FailureNote>,
}

/// The result of a fold, and what is left to store elsewhere.
struct Folded {
    observed: Observed,
    /// A call that failed or found nothing, for the swarm.
    in_vain: Option<u64>,
    notice: Option<(SessionId, ControllerNotice)>,
    /// What the step means for the failures that the project remembers.
    failure: Option<FailureNote>,
    /// Whether the session is to be forgotten.
    is_over: bool,
}

impl Folded {
    fn of(observed: Observed) -> Self {
        Self { observed, in_vain: None, notice: None, failure: None, is_over: false }
    }
}

/// Returns the worker of a swarm that made a step.
fn worker(step: &Step) -> SwarmWorker<'_> {
    SwarmWorker { session: step.session.as_str(), agent: step.agent.as_deref() }
}

impl Codec<Session> for Engine {
    fn fresh(&self) -> Session {
        Session::default()
    }

    fn freeze(&self, session: &Session) -> Result<String, StoreError> {
        let checkpoint = Checkpoint::of(session, &self.profile).map_err(StoreError::encode)?;
        serde_json::to_string(&checkpoint).map_err(StoreError::encode)
    }

    fn thaw(&self, text: &str) -> Result<Session, StoreError> {
        stored_session::thaw(text, &self.profile)
    }

    fn salvage(&self, text: &str) -> Option<Session> {
        stored_session::salvage(text, |name| self.fresh_agent(name))
    }
}
