use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::scope::SpendScope;

/// How many tables may wait to be added to. Beyond it, amounts are lost and counted.
const TABLES: usize = 50_000;

/// A table of the shared records, and how long it is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableName {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) kept: Duration,
}

/// Amounts that are added to a table at once.
#[derive(Debug, Clone)]
pub(crate) struct SpendAddition {
    /// Whose spend it is, unless it is rows of a report.
    pub(super) scope: Option<SpendScope>,
    pub(super) table: TableName,
    /// An addition that is sent again has the same mark.
    pub(super) mark: String,
    pub(super) amounts: Vec<(String, i64)>,
}

/// What isn't in the shared records yet.
#[derive(Default)]
pub(super) struct Waiting {
    spends: HashMap<SpendScope, i64>,
    rows: BTreeMap<TableName, BTreeMap<String, i64>>,
    /// Being sent, or sent with an unknown result.
    sent: Vec<SpendAddition>,
    sequence: u64,
    pub(super) lost: u64,
}

impl Waiting {
    /// Adds to what a scope spent. Returns `false` if too much waits already.
    pub(super) fn spend(&mut self, scope: &SpendScope, amount: i64) -> bool {
        if self.spends.len() >= TABLES && !self.spends.contains_key(scope) {
            self.lost += 1;
            return false;
        }
        let total = self.spends.entry(scope.clone()).or_default();
        *total = total.saturating_add(amount);
        true
    }

    /// Adds to the rows of a report.
    pub(super) fn rows(&mut self, table: &TableName, fields: impl Iterator<Item = (String, i64)>) {
        if self.rows.len() >= TABLES && !self.rows.contains_key(table) {
            self.lost += 1;
            return;
        }
        let rows = self.rows.entry(table.clone()).or_default();
        for (field, amount) in fields.filter(|(_, amount)| *amount != 0) {
            let total = rows.entry(field).or_default();
            *total = total.saturating_add(amount);
        }
    }

    /// Returns what to send next: first what was sent with an unknown result, unchanged.
    pub(super) fn send(&mut self, server: &str) -> Vec<SpendAddition> {
        if self.sent.is_empty() { self.send_all(server) } else { self.sent.clone() }
    }

    /// Returns all that waits: what was sent with an unknown result, unchanged, and the rest.
    pub(super) fn send_all(&mut self, server: &str) -> Vec<SpendAddition> {
        let spends = std::mem::take(&mut self.spends).into_iter();
        let spends = spends.map(|(scope, spent)| (scope.table(), vec![(scope.field(), spent)], Some(scope)));
        let rows = std::mem::take(&mut self.rows).into_iter();
        let rows = rows.map(|(table, fields)| (table, fields.into_iter().collect(), None));
        for (table, amounts, scope) in spends.chain(rows) {
            self.sequence += 1;
            let mark = format!("{server}-{}", self.sequence);
            self.sent.push(SpendAddition { scope, table, mark, amounts });
        }
        self.sent.clone()
    }

    /// Removes an addition that was made.
    pub(super) fn made(&mut self, mark: &str) {
        if let Some(at) = self.sent.iter().position(|addition| addition.mark == mark) {
            self.sent.remove(at);
        }
    }

    /// Returns the number of tables that wait.
    pub(super) fn len(&self) -> usize {
        self.spends.len() + self.rows.len() + self.sent.len()
    }
}
