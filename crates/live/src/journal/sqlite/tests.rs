use super::*;
use crate::DecisionFilter;

fn open(folder: &Path) -> SqliteJournal {
    SqliteJournal::open(&folder.join("deloop.db"), Bounds::default()).unwrap()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a database is a file")]
fn purging_leaves_no_trace_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(folder.path());
    for session in ["secret-one", "other"] {
        journal.set_session_state(session, Millis(1), "{}").unwrap();
        let source = SessionSource { session: session.to_owned(), ..SessionSource::default() };
        journal.note_source(&source, Millis(1)).unwrap();
    }
    let traces = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        files
            .map(|f| String::from_utf8_lossy(&std::fs::read(f.unwrap().path()).unwrap()).into_owned())
            .collect::<String>()
    };
    journal.purge(Some("secret-one")).unwrap();
    assert!(!traces().contains("secret-one") && traces().contains("other"));
    journal.purge(None).unwrap();
    assert!(!traces().contains("other"));
}

#[test]
fn what_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(folder.path());
    let failed: Result<(), StoreError> = journal.atomically(|| {
        journal.set_session_state("s", Millis(1), "{}")?;
        Err(StoreError::encode("no"))
    });
    assert!(failed.is_err());
    assert_eq!(journal.session_state("s", Millis(1)).unwrap(), None);
    assert_eq!(open(folder.path()).decisions(&DecisionFilter::default(), 10).unwrap(), []);
}

#[test]
fn the_state_of_an_idle_session_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(folder.path());
    journal.set_session_state("s", Millis(1), "{}").unwrap();
    let week = i64::try_from(Bounds::default().idle).unwrap();
    assert!(journal.session_state("s", Millis(week)).unwrap().is_some());
    assert!(journal.session_state("s", Millis(week + 2)).unwrap().is_none());
}
