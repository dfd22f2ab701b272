use std::sync::Arc;

use axum::body::Bytes;
use deloop_store::StoreError;

use crate::broker::{SentStep, StepAnswers};
use crate::caller_options::CallerOptions;
use crate::clock::Clock;
use crate::http_error::HttpError;
use crate::requester::Requester;
use crate::shared::{BrokerAccess, Shared};
use crate::step_batch::{BatchForm, StepBatch};

/// A request to decide about steps.
pub(crate) struct StepsRequest {
    pub(crate) requester: Arc<Requester>,
    pub(crate) caller: CallerOptions,
    pub(crate) body: Bytes,
    /// Whether the body is one object per line.
    pub(crate) lines: bool,
}

/// The decisions about the steps of a request.
pub(crate) struct StepsReply {
    pub(crate) form: BatchForm,
    pub(crate) text: Vec<u8>,
    pub(crate) failed_open: bool,
}

impl StepsRequest {
    /// Returns whether both come from one sender, for one project and in one mode, so that they can be one batch.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let (mine, its) = (&self.requester, &other.requester);
        let is_one = Arc::ptr_eq(mine, its) || mine.is_like(its);
        is_one && self.caller == other.caller
    }

    /// Decides about the steps of [like](Self::is_like) requests, in order. There is a reply to each.
    pub(crate) fn decide(
        requests: &[Self],
        shared: &Shared,
        access: &BrokerAccess<'_>,
    ) -> Vec<Result<StepsReply, HttpError>> {
        let Some(Self { requester, caller, .. }) = requests.first() else { return Vec::new() };
        let mut steps = Vec::with_capacity(requests.len());
        let batches: Vec<_> =
            requests.iter().map(|request| request.read(&mut steps, &shared.clock)).collect();
        let answers = access
            .with(|broker, now| broker.observe(requester, *caller, &mut steps, now))
            .and_then(|answers: Result<StepAnswers, StoreError>| Ok(answers?))
            .map_err(|error| error.told(shared));
        if !matches!(&answers, Ok(StepAnswers { failed_open: 0, .. })) {
            shared.ready.suspect();
        }
        if let Ok(answers) = &answers {
            shared.metrics.steps(answers, batches.iter().flatten().map(StepBatch::malformed).sum());
        }
        let mut decisions = answers.as_ref().map_or(&[][..], |answers| &answers.decisions);
        let reply = |batch: Result<StepBatch, HttpError>| {
            let (batch, answers) = (batch?, answers.as_ref().map_err(HttpError::clone)?);
            let (its, others) = decisions.split_at(batch.len().min(decisions.len()));
            decisions = others;
            if its.is_empty() && batch.len() > 0 {
                return Err(HttpError::database_failed());
            }
            Ok(StepsReply {
                form: batch.form,
                text: batch.answer(its)?,
                failed_open: answers.failed_open > 0,
            })
        };
        batches.into_iter().map(reply).collect()
    }

    fn read<'a>(&'a self, steps: &mut Vec<SentStep<'a>>, clock: &Clock) -> Result<StepBatch, HttpError> {
        let before = steps.len();
        let batch = StepBatch::read(&self.body, self.lines, steps)?;
        if let Err(refused) = self.requester.spend_steps(batch.len(), clock) {
            steps.truncate(before);
            return Err(refused);
        }
        Ok(batch)
    }
}
