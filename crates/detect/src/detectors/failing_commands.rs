use deloop_types::{Evidence, Finding, Outcome, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counting::last_steps;
use super::run::Run;
use crate::{Detector, Happening, Moment, ToolKind};

/// Finds shell commands that fail in a row.
pub(crate) struct FailingCommands;

/// Parameters of [`FailingCommands`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FailingCommandsParams {
    /// Number of failing commands in a row that make a finding.
    at: u64,
}

impl Default for FailingCommandsParams {
    fn default() -> Self {
        Self { at: 3 }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct FailingCommandsMemory {
    run: Run,
    file_operations: u64,
}

impl Detector for FailingCommands {
    type Params = FailingCommandsParams;
    type Memory = FailingCommandsMemory;

    fn name(&self) -> &'static str {
        "failing-commands"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(FailingCommandsParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("failing-commands.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        let Happening::Result(result) = &moment.event else { return None };
        let record = &result.record;
        if record.kind != ToolKind::Run {
            return None;
        }
        match record.outcome? {
            Outcome::Ok => {
                *memory = FailingCommandsMemory::default();
                return None;
            }
            outcome if outcome.failed() => {}
            _ => return None,
        }
        memory.run.extend(0, record.step.into());
        memory.file_operations += u64::from(record.file_operation);
        let count = memory.run.count;
        (count >= params.at).then(|| {
            let mut found = Finding::new(self.name(), count).by_rule("at");
            found.period = 1;
            found.score = 1.0;
            found.since = memory.run.since;
            found.tool = Some(moment.history.tool(record).to_owned());
            found.repeats = Repeats::Commands;
            found.counted = last_steps(moment, &memory.run, |r| r.kind == record.kind);
            found.evidence = Evidence {
                at: record.ordinal.into(),
                variant: (memory.file_operations == count).then_some("file-operations"),
                ..Evidence::default()
            };
            found
        })
    }
}
