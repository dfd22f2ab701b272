use std::collections::BTreeMap;
use std::time::Duration;

use deloop_store::{RecordName, SharedRecords, StoreError};
use deloop_types::Millis;

use super::figures::ReportFigures;
use crate::money::{SHARED, SessionTally, TableName, UtcDay, group};

/// Stands for the models and agents beyond the limit.
pub(crate) const OTHER: &str = "other";
/// Maximum length of a name in a report, in characters.
const NAME: usize = 80;
/// How many projects a report has.
const PROJECTS: usize = 1_001;
const DAY: Duration = Duration::from_secs(24 * 3600);
/// How many days the figures of a day are kept.
const DAYS_KEPT: u32 = 100;
/// How many days the figures of a week are kept.
const WEEKS_KEPT: u32 = 420;

/// Returns a model and an agent as one name.
pub(crate) fn pair_of(model: Option<&str>, agent: Option<&str>) -> String {
    let name = |name: Option<&str>, none: &str| {
        let name = name.map(|name| deloop_detect::clean(name, NAME)).unwrap_or_default();
        if name.is_empty() { none.to_owned() } else { name }
    };
    format!("{}\t{}", name(model, "unknown"), name(agent, "main"))
}

/// Where the figures of a project are, of one day and of its week.
pub(crate) struct ReportTables {
    project: String,
    of: UtcDay,
    pub(crate) day: TableName,
    pub(crate) week: TableName,
}

impl ReportTables {
    pub(crate) fn of(project: &str, day: UtcDay) -> Self {
        let table = |name: String, days| TableName { group: group(project), name, kept: DAY * days };
        Self {
            project: project.to_owned(),
            of: day,
            day: table(format!("day/{}", day.date()), DAYS_KEPT),
            week: table(format!("week/{}", day.monday().date()), WEEKS_KEPT),
        }
    }

    /// Lists the project among those that have figures, and returns the pairs of the day and of the week.
    pub(crate) fn list(
        &self,
        records: &dyn SharedRecords,
        now: Millis,
    ) -> Result<(Vec<String>, Vec<String>), StoreError> {
        let day = format!("{}{}", listing("day", self.of), self.project);
        let week = format!("{}{}", listing("week", self.of.monday()), self.project);
        records.put(RecordName::new(SHARED, &day), "", self.day.kept, now)?;
        records.put(RecordName::new(SHARED, &week), "", self.week.kept, now)?;
        let pairs = |table: &TableName| {
            let totals = records.totals(RecordName::new(&table.group, &table.name), now)?;
            let pairs =
                totals.into_iter().filter_map(|(field, _)| Some(field.split_once('\t')?.1.to_owned()));
            Ok::<_, StoreError>(pairs.collect())
        };
        Ok((pairs(&self.day)?, pairs(&self.week)?))
    }

    /// Returns the figures of the day, by model and agent.
    pub(super) fn read_day(
        &self,
        records: &dyn SharedRecords,
        now: Millis,
    ) -> Result<PairFigures, StoreError> {
        read(records, &self.day, now)
    }

    /// Returns the figures of the week, by model and agent.
    pub(super) fn read_week(
        &self,
        records: &dyn SharedRecords,
        now: Millis,
    ) -> Result<PairFigures, StoreError> {
        read(records, &self.week, now)
    }
}

/// Figures by model and agent.
pub(super) type PairFigures = BTreeMap<(String, String), ReportFigures>;

fn read(records: &dyn SharedRecords, table: &TableName, now: Millis) -> Result<PairFigures, StoreError> {
    let mut rows = PairFigures::new();
    for (field, total) in records.totals(RecordName::new(&table.group, &table.name), now)? {
        let mut parts = field.splitn(3, '\t');
        let (Some(code), Some(model), Some(agent)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let row = rows.entry((model.to_owned(), agent.to_owned())).or_default();
        row.add_coded(code, total);
    }
    Ok(rows)
}

fn listing(kind: &str, day: UtcDay) -> String {
    format!("{kind}/{}/", day.date())
}

/// Returns the projects that have figures of a day.
pub(crate) fn projects_of(
    records: &dyn SharedRecords,
    day: UtcDay,
    now: Millis,
) -> Result<Vec<String>, StoreError> {
    listed(records, &listing("day", day), now)
}

/// Returns the projects that have figures of the week that starts with a day.
pub(super) fn projects_of_week(
    records: &dyn SharedRecords,
    monday: UtcDay,
    now: Millis,
) -> Result<Vec<String>, StoreError> {
    listed(records, &listing("week", monday), now)
}

fn listed(records: &dyn SharedRecords, prefix: &str, now: Millis) -> Result<Vec<String>, StoreError> {
    let names = records.scan(SHARED, prefix, None, PROJECTS, now)?;
    Ok(names.into_iter().filter_map(|name| name.strip_prefix(prefix).map(str::to_owned)).collect())
}

/// What a step adds to the rows of reports.
pub(crate) struct RowAmounts<'a>(&'a SessionTally);

impl<'a> RowAmounts<'a> {
    pub(crate) fn of(tally: &'a SessionTally) -> Self {
        Self(tally)
    }

    pub(crate) fn day_fields(&self, pair: &str) -> impl Iterator<Item = (String, i64)> {
        let Self(tally) = self;
        let amounts = [
            ("r", tally.requests),
            ("t", tally.tokens),
            ("c", tally.cost),
            ("u", tally.unpriced),
            ("w", tally.waste),
            ("l", tally.loops),
            ("x", tally.terminated),
        ];
        fields(amounts, pair)
    }

    /// Returns whether it adds anything to the week.
    pub(crate) fn has_week(&self) -> bool {
        let Self(tally) = self;
        tally.sessions + tally.loops + tally.terminated > 0
    }

    pub(crate) fn week_fields(&self, pair: &str) -> impl Iterator<Item = (String, i64)> {
        let Self(tally) = self;
        fields([("s", tally.sessions), ("l", tally.loops), ("x", tally.terminated)], pair)
    }
}

fn fields<const N: usize>(amounts: [(&str, i64); N], pair: &str) -> impl Iterator<Item = (String, i64)> {
    let present = amounts.into_iter().filter(|(_, amount)| *amount != 0);
    present.map(move |(code, amount)| (format!("{code}\t{pair}"), amount))
}
