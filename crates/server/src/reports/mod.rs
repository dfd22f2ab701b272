//! What was spent and how often agents looped: by day and by week, from the totals that all servers share.

mod daily;
mod figures;
mod report_alerts;
mod rises;
mod tables;
mod weekly;

pub use self::daily::{DailyReport, ProjectDay, ReportRow};
pub(crate) use self::daily::{daily, due};
pub use self::figures::{BudgetsReport, ProjectBudget, ReportFigures, SessionBudget};
pub use self::rises::Rise;
pub(crate) use self::rises::rises;
pub(crate) use self::tables::{OTHER, ReportTables, RowAmounts, pair_of, projects_of};
pub(crate) use self::weekly::weekly;
pub use self::weekly::{WeeklyLoops, WeeklyReport};
