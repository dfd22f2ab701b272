//! One event, from the agent's Steps to its reply. All that changes in the database changes at once or not at all.

use deloop::{
    Action, Body, Decision, Delivery, Engine, Millis, Mode, Options, SessionId, SqliteStore, Step, StoreError,
};
use deloop_formats::hooks::{Encoded, HookAgent, HookEvent, HookKind, Reply};

use super::desk::{Desk, Pending, Refusal, fingerprint};
use super::transcript;

/// Names workers with one goal over many sessions.
const SWARM: &str = "DELOOP_SWARM";

pub(super) fn fold(
    agent: &'static dyn HookAgent,
    mut event: HookEvent,
    engine: &Engine,
    options: Options,
    store: &mut SqliteStore,
    now: Millis,
) -> Result<Reply, StoreError> {
    store.batch(|store| {
        store.called(agent.name(), now)?;
        if event.kind == HookKind::Other {
            return Ok(Reply::default());
        }
        let session = SessionId::from(event.session.as_str());
        let mut desk = Desk::read(store.desk(&session)?.as_deref());
        event.again = desk.worker(event.subagent.as_deref()).let_through;
        let turn = Fold { agent, event: &event, engine, store, now, session };
        let reply = turn.run(&mut desk, options.mode)?;
        if event.kind != HookKind::SessionEnd {
            let text = serde_json::to_string(&desk).map_err(|e| StoreError(e.to_string()))?;
            turn.store.set_desk(&turn.session, &text)?;
        }
        Ok(reply)
    })
}

struct Fold<'a> {
    agent: &'static dyn HookAgent,
    event: &'a HookEvent,
    engine: &'a Engine,
    store: &'a SqliteStore,
    now: Millis,
    session: SessionId,
}

impl Fold<'_> {
    fn run(&self, desk: &mut Desk, mode: Mode) -> Result<Reply, StoreError> {
        let event = self.event;
        let (mut steps, read) = transcript::since(self.agent, event, desk.read);
        desk.read = read;
        if event.kind == HookKind::Prompt && event.is_human(&desk.worker(None).seen) {
            desk.forget_decisions();
        }
        let worker = desk.worker(event.subagent.as_deref());
        steps.extend(event.steps(&mut worker.seen));
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
            let decided = self.observe(step)?;
            if decided.action >= decision.action {
                decision = decided;
            }
        }
        if event.kind == HookKind::Stop {
            // The agent has finished: nothing on its way can reach it any more.
            if let Some(pending) = worker.pending.take().filter(|p| !p.lost) {
                self.delivery(pending.decision.step, false)?;
            }
        }

        // What was decided before and still stands, if it is stronger than what is decided now.
        let standing = [
            worker.pending.as_ref().map(|p| &p.decision),
            refused.as_ref().map(|r| &r.decision),
            worker.stop.as_ref(),
        ];
        for earlier in standing.into_iter().flatten().filter(|d| d.action <= mode.cap()) {
            if earlier.action > decision.action {
                decision = earlier.clone();
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
            }
            Action::Nudge | Action::Ask | Action::Block => {
                worker.pending = Some(Pending { decision: decision.clone(), lost: false });
            }
            Action::Stop => {
                worker.pending = None;
                worker.stop = Some(decision.clone());
                worker.let_through |= event.kind == HookKind::PreCall && carried == Action::Continue;
            }
        }
        if carried >= Action::Block && event.kind == HookKind::PreCall {
            for step in event.refused(&mut worker.seen) {
                self.observe(step)?;
            }
        } else if decision.action == Action::Block
            && let Some(call) = event.calls.first()
        {
            worker.refuse = Some(Refusal { call: fingerprint(call), decision });
        }
        Ok(reply)
    }

    fn observe(&self, mut step: Step) -> Result<Decision, StoreError> {
        step.ts = Some(self.now);
        step.swarm = std::env::var(SWARM).ok();
        let decision = self.engine.observe(self.store, &step)?.decision;
        self.store.record(self.agent.name(), step.agent.as_deref(), self.now, &decision)?;
        Ok(decision)
    }

    /// Tells the engine whether the message of an earlier decision has arrived.
    fn delivery(&self, step: u64, ok: bool) -> Result<(), StoreError> {
        let delivery = Step::new(self.session.clone(), Body::Delivery(Delivery { step, ok }));
        let delivery = Step { agent: self.event.subagent.clone(), ..delivery };
        self.observe(delivery).map(|_| ())
    }
}
