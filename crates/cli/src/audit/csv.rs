//! Records as CSV.

use deloop_detect::clean;
use deloop_server::{AuditRecord, safe_json};
use serde_json::Value;

use crate::exit::Failure;
use crate::scan::csv::cell;

pub(super) const HEAD: &str = "seq,ts,server,actor,action,project,session,agent,swarm,first_step,last_step,decision,would,level,\
                               detector,status,message,detail,note,purged,configuration,prev,hash";

/// Maximum length of a cell, in characters.
const CELL: usize = 4000;

/// Returns a record as a line. Nothing in it is a formula or acts on a terminal.
pub(super) fn row(record: &AuditRecord) -> Result<String, Failure> {
    let plain = |text: &str| cell(&clean(text, CELL));
    let text = |text: Option<&str>| plain(text.unwrap_or_default());
    let number = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
    let json = |value: &Value| -> Result<String, Failure> {
        Ok(if value.is_null() { String::new() } else { plain(&safe_json(value)?) })
    };
    let decision = record.decision.as_ref();
    let cells = [
        record.seq.to_string(),
        plain(&record.ts),
        plain(&record.server),
        text(Some(&record.actor)),
        text(Some(&record.action)),
        text(record.project.as_deref()),
        text(record.session.as_deref()),
        text(record.agent.as_deref()),
        text(record.swarm.as_deref()),
        number(record.steps.map(|steps| steps.first)),
        number(record.steps.map(|steps| steps.last)),
        text(decision.map(|decision| decision.action.as_str())),
        text(decision.and_then(|decision| decision.would.as_deref())),
        number(decision.map(|decision| u64::from(decision.level))),
        text(decision.and_then(|decision| decision.detector.as_deref())),
        text(decision.and_then(|decision| decision.status.as_deref())),
        text(record.message.as_deref()),
        json(&record.detail)?,
        json(&record.note)?,
        number(record.purged),
        plain(record.configuration.as_deref().unwrap_or_default()),
        plain(&record.prev),
        plain(&record.hash),
    ];
    Ok(cells.join(","))
}
