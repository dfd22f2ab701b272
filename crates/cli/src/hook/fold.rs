//! One event, from the agent's Steps to its reply. All that changes in the database changes at once or not at all.

use deloop_detect::short_hash;
use deloop_engine::{Engine, Observed, Options};
use deloop_formats::hooks::{Encoded, HookAgent, HookEvent, HookKind, Reply};
use deloop_store::{Circumstances, SourceRow, SqliteStore, StoreError};
use deloop_types::{Action, Body, Decision, Delivery, Millis, Mode, SessionId, Step};

use super::aftermath::{Aftermath, Watch, patterns};
use super::desk::{Desk, Notice, Pending, Refusal, Worker, fingerprint};
use super::leave::{Leave, Why, without_allowed};
use super::{trail, transcript};

/// Names workers with one goal over many sessions.
const SWARM: &str = "DELOOP_SWARM";

/// When and in whose care an event happens.
pub(super) struct Around<'a> {
    pub(super) options: Options,
    pub(super) now: Millis,
    /// The `deloop run` that started the agent.
    pub(super) run: Option<&'a str>,
    /// What people should know about the configuration.
    pub(super) notice: Option<&'a str>,
}

/// What came of an event.
#[derive(Default)]
pub(super) struct Folded {
    pub(super) reply: Reply,
    /// The notice is new in this session.
    pub(super) is_news: bool,
}

pub(super) fn fold(
    agent: &'static dyn HookAgent,
    mut event: HookEvent,
    engine: &Engine,
    store: &mut SqliteStore,
    around: &Around<'_>,
) -> Result<Folded, StoreError> {
    store.batch(|store| {
        store.called(agent.name(), around.now)?;
        if event.kind == HookKind::Other {
            return Ok(Folded::default());
        }
        let session = SessionId::from(event.session.as_str());
        let source = SourceRow {
            session: event.session.clone(),
            agent: agent.name().to_owned(),
            transcript: event.transcript.clone(),
            run: around.run.map(str::to_owned),
        };
        store.note_source(&source, around.now)?;
        let mut desk = Desk::read(store.desk(&session)?.as_deref());
        let leave = Leave::of(store, &event.session, around.now)?;
        if leave.is_news() {
            desk.put_off();
            store.pardons_known(&event.session)?;
        }
        without_allowed(&mut event, store)?;
        event.again = desk.worker(event.subagent.as_deref()).let_through;
        let turn = Fold { agent, event: &event, engine, store, around, leave, session };
        let mut reply = turn.run(&mut desk)?;
        let before = desk.notice.clone();
        let told = turn.tell_person(&mut desk, &reply);
        let text = serde_json::to_string(&desk).map_err(|e| StoreError(e.to_string()))?;
        let is_kept = turn.store.set_desk(&turn.session, &text)?;
        // What is not remembered would be said at every event.
        if let Some(told) = told.filter(|_| is_kept) {
            reply = told;
        }
        let news = |notice: &Notice| before.is_none_or(|before| before.text != notice.text);
        let is_news = is_kept && desk.notice.as_ref().is_some_and(news);
        Ok(Folded { reply, is_news })
    })
}

struct Fold<'a> {
    agent: &'static dyn HookAgent,
    event: &'a HookEvent,
    engine: &'a Engine,
    store: &'a SqliteStore,
    around: &'a Around<'a>,
    leave: Leave,
    session: SessionId,
}

impl Fold<'_> {
    fn run(&self, desk: &mut Desk) -> Result<Reply, StoreError> {
        let event = self.event;
        let heard = transcript::since(self.agent, event, &mut desk.mark);
        if event.kind == HookKind::Prompt && event.is_human(&desk.worker(None).seen) {
            desk.forget_decisions();
            self.close(desk, Aftermath::Unknown)?;
        }
        if event.kind == HookKind::SessionEnd {
            self.close(desk, Aftermath::Ended)?;
        }
        let worker = desk.worker(event.subagent.as_deref());
        if self.leave.paused {
            worker.put_off = true;
        } else if std::mem::take(&mut worker.put_off) {
            worker.forget_decisions();
            self.person_stepped_in()?;
        }
        let mut steps = event.steps(&mut worker.seen);
        transcript::attach(heard.text, event, &mut steps);
        for usage in heard.usage {
            steps.insert(0, usage);
        }
        let refused = worker.refuse.take_if(|_| steps.iter().any(|s| matches!(s.body, Body::Turn(_))));
        let refused = refused.filter(|r| event.calls.iter().any(|c| fingerprint(c) == r.call));

        let mut decision = Decision::go_on(self.session.clone(), 0);
        for step in steps {
            if let (Body::Turn(_), Some(pending)) = (&step.body, &mut worker.pending)
                && !pending.lost
            {
                pending.lost = true;
                self.delivery(pending.decision.step, false)?;
            }
            let decided = self.enter(step, worker)?;
            if decided.action >= decision.action {
                decision = decided;
            }
        }
        if event.kind == HookKind::Stop {
            // The agent has finished: nothing on its way can reach it any more.
            if let Some(pending) = worker.pending.take().filter(|p| !p.lost) {
                self.delivery(pending.decision.step, false)?;
            }
            if let Some(watch) = worker.watch.take() {
                self.store.came_of(&watch.id, watch.close(Aftermath::Ended).as_str())?;
            }
        }
        self.answer(decision, refused.as_ref(), worker)
    }

    /// Tells the person, once in a session, what they should know about the configuration: the reply that does, if
    /// this event can carry it and nothing else has to be said.
    fn tell_person(&self, desk: &mut Desk, reply: &Reply) -> Option<Reply> {
        let text = short_hash(self.around.notice?.as_bytes());
        let known = desk.notice.take().filter(|known| known.text == text);
        let notice = desk.notice.insert(known.unwrap_or(Notice { text, told: false }));
        if notice.told || *reply != Reply::default() {
            return None;
        }
        let said = {
            let mut made = Decision::go_on(self.session.clone(), 0);
            made.action = Action::Warn;
            made.status = self.around.notice.map(str::to_owned);
            made
        };
        let Encoded { reply, carried } = self.agent.encode(self.event, &said);
        notice.told = carried == Action::Warn;
        notice.told.then_some(reply)
    }

    /// Says what was decided, or what was decided before and still stands if that is stronger.
    fn answer(
        &self,
        mut decision: Decision,
        refused: Option<&Refusal>,
        worker: &mut Worker,
    ) -> Result<Reply, StoreError> {
        let event = self.event;
        let mut about = patterns(&decision);
        let cap = if self.leave.paused { Action::Continue } else { self.mode().cap() };
        let standing = [
            worker.pending.as_ref().map(|p| (&p.decision, p.patterns.as_slice())),
            refused.map(|r| (&r.decision, &[][..])),
            worker.stop.as_ref().map(|stop| (stop, &[][..])),
        ];
        for (earlier, patterns) in standing.into_iter().flatten().filter(|(d, _)| d.action <= cap) {
            if earlier.action > decision.action {
                decision = earlier.clone();
                about = patterns.to_vec();
            }
        }
        let Encoded { reply, carried } = self.agent.encode(event, &decision);
        if let Some(id) = decision.id.as_ref().filter(|_| carried > Action::Continue) {
            self.store.delivered(id, &event.name)?;
        }
        let arrived = carried >= Action::Nudge;
        match decision.action {
            Action::Continue | Action::Warn => {}
            Action::Nudge | Action::Ask | Action::Block if arrived => {
                if let Some(pending) =
                    worker.pending.take().filter(|p| p.lost && p.decision.id == decision.id)
                {
                    self.delivery(pending.decision.step, true)?;
                }
                if decision.action == Action::Nudge {
                    self.watch(&decision, about, worker)?;
                }
            }
            Action::Nudge | Action::Ask | Action::Block => {
                worker.pending = Some(Pending { decision: decision.clone(), patterns: about, lost: false });
            }
            Action::Stop => {
                worker.pending = None;
                worker.stop = Some(decision.clone());
                worker.let_through |= event.kind == HookKind::PreCall && carried == Action::Continue;
            }
        }
        if carried >= Action::Block && event.kind == HookKind::PreCall {
            for step in event.refused(&mut worker.seen) {
                self.enter(step, worker)?;
            }
        } else if decision.action == Action::Block
            && let Some(call) = event.calls.first()
        {
            worker.refuse = Some(Refusal { call: fingerprint(call), decision });
        }
        Ok(reply)
    }

    fn mode(&self) -> Mode {
        self.around.options.mode
    }

    /// Enters a step of a worker: what is decided about it, written down, with what a person wants left alone
    /// taken out.
    fn enter(&self, step: Step, worker: &mut Worker) -> Result<Decision, StoreError> {
        let (step, Observed { decision, judged, .. }) = self.observe(step)?;
        trail::enter(&mut worker.trail, &step, decision.step, judged.as_ref());
        if let Some(known) = worker.watch.as_mut().and_then(|watch| watch.enter(&step, &decision))
            && let Some(watch) = worker.watch.take()
        {
            self.store.came_of(&watch.id, known.as_str())?;
        }
        let full = decision.would.as_deref().unwrap_or(&decision);
        if full.action == Action::Continue {
            return Ok(decision);
        }
        let about = trail::about(&worker.trail, &step, decision.step);
        let why = self.leave.alone(&decision, &about);
        if why != Some(Why::Pardoned) {
            let at = Circumstances {
                agent: self.agent.name(),
                subagent: step.agent.as_deref(),
                now: self.around.now,
                run: self.around.run,
                held: why.map(|_| "paused"),
                trail: &trail::json(&worker.trail),
            };
            self.store.record(&decision, &at)?;
        }
        if why.is_none() {
            return Ok(decision);
        }
        if full.action == Action::Stop {
            // It would stand.
            self.person_stepped_in()?;
        }
        Ok(Decision::go_on(self.session.clone(), decision.step))
    }

    /// From here on, what comes of this nudge is looked for.
    fn watch(
        &self,
        decision: &Decision,
        about: Vec<super::aftermath::Pattern>,
        worker: &mut Worker,
    ) -> Result<(), StoreError> {
        let Some(id) = decision.id.as_deref() else { return Ok(()) };
        if worker.watch.as_ref().is_some_and(|watch| watch.id == id) {
            return Ok(());
        }
        let before = std::mem::replace(&mut worker.watch, Watch::new(id, about));
        before.map_or(Ok(()), |watch| self.store.came_of(&watch.id, watch.close(Aftermath::Unknown).as_str()))
    }

    fn close(&self, desk: &mut Desk, then: Aftermath) -> Result<(), StoreError> {
        for watch in desk.watches() {
            self.store.came_of(&watch.id, watch.close(then).as_str())?;
        }
        Ok(())
    }

    fn observe(&self, mut step: Step) -> Result<(Step, Observed), StoreError> {
        step.ts = Some(self.around.now);
        step.swarm = std::env::var(SWARM).ok();
        let observed = self.engine.observe(self.store, &step)?;
        Ok((step, observed))
    }

    /// Tells the engine whether the message of an earlier decision has arrived.
    fn delivery(&self, step: u64, ok: bool) -> Result<(), StoreError> {
        self.tell(Body::Delivery(Delivery::new(step, ok)))
    }

    /// Tells the engine that a person had a say: episodes are over, and a stop no longer stands.
    fn person_stepped_in(&self) -> Result<(), StoreError> {
        self.tell(Body::Intervention)
    }

    fn tell(&self, body: Body) -> Result<(), StoreError> {
        let step = {
            let mut made = Step::new(self.session.clone(), body);
            made.agent = self.event.subagent.clone();
            made
        };
        self.observe(step).map(|_| ())
    }
}
