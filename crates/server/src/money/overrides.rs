use std::time::Duration;

use deloop_store::{RecordName, SharedRecords, StoreError};
use deloop_types::{Millis, SessionId};
use serde::{Deserialize, Serialize};

use super::calendar::UtcDay;
use super::micros::usd;
use super::scope::SHARED;
use crate::project::Project;

/// The longest that an override lasts, in milliseconds: seven days.
pub(crate) const LONGEST: i64 = 7 * 24 * 3_600_000;
/// How many overrides there may be at a time.
const MOST: usize = 1_000;
const PREFIX: &str = "override/";

/// Lets a project or a session spend more for a while, whatever its budgets say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BudgetOverride {
    pub(crate) id: String,
    pub(crate) project: String,
    /// The one session that it is for; all of the project's if absent.
    pub(crate) session: Option<String>,
    /// How much more may be spent, in millionths of a dollar.
    pub(crate) amount: i64,
    pub(crate) granted: Millis,
    pub(crate) until: Millis,
    pub(crate) actor: String,
    pub(crate) reason: String,
    /// What was spent when it was granted, in millionths of a dollar.
    pub(crate) spent_before: i64,
}

impl BudgetOverride {
    pub(super) fn covers(&self, project: &Project, session: &SessionId, now: Millis) -> bool {
        self.until > now
            && self.project == project.as_str()
            && self.session.as_deref().is_none_or(|name| name == session.as_str())
    }

    /// Returns how much of it is used, given what its project spent today or its session so far. A project's starts over
    /// with its budget at midnight.
    pub(super) fn used(&self, spent: i64, day: UtcDay) -> i64 {
        let is_new_day = self.session.is_none() && UtcDay::of(self.granted) != day;
        if is_new_day { spent } else { spent.saturating_sub(self.spent_before).max(0) }
    }

    /// Returns it as it is shown.
    pub(crate) fn shown(&self) -> serde_json::Value {
        serde_json::json!({
            "id": self.id, "project": self.project, "session": self.session, "usd": usd(self.amount),
            "granted": self.granted.to_string(), "until": self.until.to_string(), "actor": self.actor,
            "reason": self.reason,
        })
    }
}

/// Stores an override until it ends.
pub(super) fn put(
    records: &dyn SharedRecords,
    granted: &BudgetOverride,
    now: Millis,
) -> Result<bool, StoreError> {
    if records.scan(SHARED, PREFIX, None, MOST, now)?.len() >= MOST {
        return Ok(false);
    }
    let text = serde_json::to_string(granted).map_err(StoreError::encode)?;
    let name = format!("{PREFIX}{}", granted.id);
    let kept = Duration::from_millis(granted.until.since(now).max(1));
    records.put(RecordName::new(SHARED, &name), &text, kept, now)?;
    Ok(true)
}

/// Returns an override, if it hasn't ended.
pub(super) fn get(
    records: &dyn SharedRecords,
    id: &str,
    now: Millis,
) -> Result<Option<BudgetOverride>, StoreError> {
    let text = records.get(RecordName::new(SHARED, &format!("{PREFIX}{id}")), now)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).filter(|o: &BudgetOverride| o.until > now))
}

/// Ends an override.
pub(super) fn remove(records: &dyn SharedRecords, id: &str) -> Result<(), StoreError> {
    records.remove(RecordName::new(SHARED, &format!("{PREFIX}{id}")))
}

/// Returns all overrides that haven't ended.
pub(super) fn list(records: &dyn SharedRecords, now: Millis) -> Result<Vec<BudgetOverride>, StoreError> {
    let names = records.scan(SHARED, PREFIX, None, MOST, now)?;
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let id = name.strip_prefix(PREFIX).unwrap_or_default();
        found.extend(get(records, id, now)?);
    }
    Ok(found)
}
