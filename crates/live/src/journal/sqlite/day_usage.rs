//! What projects use per day: one row per project and day, for a week.

use deloop_detect::UsageAmounts;
use deloop_store::StoreError;
use rusqlite::{Row, params};

use super::{SqliteJournal, signed};
use crate::DayUsage;

/// Number of days kept, the current one included.
const DAYS: i64 = 7;
/// Maximum number of rows. Those of the earliest days are dropped first.
const ROWS: u32 = 2_000;

const COLUMNS: &str = "project, tokens, usd, turns, subagents, minutes, raises";

fn read(row: &Row<'_>) -> rusqlite::Result<DayUsage> {
    let number = |n: i64| u64::try_from(n).unwrap_or(0);
    Ok(DayUsage {
        project: row.get(0)?,
        used: UsageAmounts {
            tokens: number(row.get(1)?),
            usd: row.get(2)?,
            steps: 0,
            turns: number(row.get(3)?),
            subagents: number(row.get(4)?),
            minutes: row.get(5)?,
        },
        raises: row.get(6)?,
    })
}

impl SqliteJournal {
    pub(super) fn add_day_usage(
        &self,
        project: &str,
        day: i64,
        used: &UsageAmounts,
    ) -> Result<DayUsage, StoreError> {
        self.change(|connection| {
            let update = format!(
                "UPDATE day_usage SET tokens = tokens + ?3, usd = usd + ?4, turns = turns + ?5,
                 subagents = subagents + ?6, minutes = minutes + ?7
                 WHERE project = ?1 AND day = ?2 RETURNING {COLUMNS}"
            );
            let amounts = params![
                project,
                day,
                signed(used.tokens.min(1 << 60)),
                used.usd,
                signed(used.turns),
                signed(used.subagents),
                used.minutes,
            ];
            let mut update = connection.prepare_cached(&update)?;
            if let Some(row) = update.query(amounts)?.next()? {
                return read(row);
            }
            connection.execute("DELETE FROM day_usage WHERE day <= ?1", [day - DAYS])?;
            connection.execute(
                "DELETE FROM day_usage WHERE rowid IN
                 (SELECT rowid FROM day_usage ORDER BY day DESC, rowid DESC LIMIT -1 OFFSET ?1)",
                [ROWS - 1],
            )?;
            connection.execute("INSERT INTO day_usage VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)", amounts)?;
            Ok(DayUsage { project: project.to_owned(), used: *used, raises: 0 })
        })
    }

    pub(super) fn raise_limits(&self, project: &str, day: i64) -> Result<(), StoreError> {
        self.change(|connection| {
            let sql = "UPDATE day_usage SET raises = raises + 1 WHERE project = ?1 AND day = ?2";
            connection.execute(sql, params![project, day]).map(drop)
        })
    }

    /// Returns what each project used on a day (see [`day_of`](crate::day_of)).
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn day_usage(&self, day: i64) -> Result<Vec<DayUsage>, StoreError> {
        self.see(|connection| {
            let sql = format!("SELECT {COLUMNS} FROM day_usage WHERE day = ?1 ORDER BY project");
            let mut select = connection.prepare(&sql)?;
            let rows = select.query_map([day], read)?;
            rows.collect()
        })
    }
}
