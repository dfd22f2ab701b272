use std::path::Path;

use deloop_types::Millis;

use super::line::{AuditRecord, LineParts};
use super::log::AuditError;
use super::segments;

/// Which records to read. Without a field, any value fits.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// The session's whole name.
    pub session: Option<String>,
    /// The project.
    pub project: Option<String>,
    /// The action, or the part before or behind its dot: `session.reset`, `session` or `reset`.
    pub action: Option<String>,
    /// Who did it.
    pub actor: Option<String>,
    /// The earliest time.
    pub since: Option<Millis>,
    /// The latest time.
    pub until: Option<Millis>,
}

impl AuditFilter {
    /// Returns whether a record fits.
    #[must_use]
    pub fn fits(&self, record: &AuditRecord) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
        };
        let is_action = self.action.as_deref().is_none_or(|wanted| {
            let (before, behind) = record.action.split_once('.').unwrap_or((&record.action, ""));
            [record.action.as_str(), before, behind].contains(&wanted)
        });
        let time = record.time();
        is(&self.session, record.session.as_deref())
            && is(&self.project, record.project.as_deref())
            && is(&self.actor, Some(&record.actor))
            && is_action
            && self.since.is_none_or(|since| time.is_some_and(|time| time >= since))
            && self.until.is_none_or(|until| time.is_some_and(|time| time <= until))
    }
}

/// Reads the records that fit, oldest first, and passes each with its line, line feed included. Returns how many lines
/// couldn't be read. Doesn't verify anything.
///
/// # Errors
/// When a file can't be read, or `each` fails.
pub fn read_records<E: From<AuditError>>(
    folder: &Path,
    filter: &AuditFilter,
    mut each: impl FnMut(&[u8], AuditRecord) -> Result<(), E>,
) -> Result<u64, E> {
    let mut unreadable = 0;
    for segment in segments::list(folder).map_err(|source| AuditError::io(folder, source))? {
        let failed = |source| AuditError::io(&segment.path, source);
        let mut lines = match segment.lines() {
            // A running server deletes old ones.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            lines => lines.map_err(failed)?,
        };
        let mut line = Vec::new();
        while lines.next(&mut line).map_err(failed)? {
            match LineParts::of(&line).and_then(|parts| parts.record()) {
                Some(record) if filter.fits(&record) => each(&line, record)?,
                Some(_) => {}
                None => unreadable += 1,
            }
        }
    }
    Ok(unreadable)
}
