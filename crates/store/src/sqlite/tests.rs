use super::*;
use crate::contract::{Numbers, check, check_records, worker};

fn open(folder: &Path, bounds: Bounds) -> SqliteStore {
    SqliteStore::open(&folder.join("state/deloop.db"), bounds).unwrap()
}

fn push(store: &SqliteStore, session: &str, ts: i64, n: u64) -> usize {
    store.update(&Numbers, &session.into(), Some(Millis(ts)), |s| (s.push(n), s.len()).1).unwrap()
}

#[test]
fn keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    check(&open(folder.path(), Bounds::default()));
}

#[test]
fn keeps_the_contract_of_records() {
    let folder = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(open(folder.path(), Bounds::default()));
    check_records(&SqliteRecords::new(store).unwrap(), &|_| ());
    let again = std::sync::Arc::new(open(folder.path(), Bounds::default()));
    SqliteRecords::new(again).unwrap();
}

#[test]
fn records_are_part_of_a_batch_and_are_swept() {
    use crate::{EventCursor, RecordName, SharedRecords};
    let folder = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(open(folder.path(), Bounds::default()));
    let records = SqliteRecords::new(std::sync::Arc::clone(&store)).unwrap();
    let (name, second) = (RecordName::new("g", "n"), std::time::Duration::from_secs(1));
    let failed: Result<(), StoreError> = store.batch(|_| {
        assert!(records.claim(name, second, Millis(0))?);
        Err(StoreError::encode("on purpose"))
    });
    assert!(failed.is_err());
    assert!(records.claim(name, second, Millis(0)).unwrap(), "undone with the batch");
    records.push(name, "x", 9, second, Millis(0)).unwrap();
    records.add(name, &[("n", 1)], second, Millis(0)).unwrap();
    let rows = || -> i64 {
        let sql = "SELECT (SELECT count(*) FROM shared_records) + (SELECT count(*) FROM shared_texts)
                   + (SELECT count(*) FROM shared_amounts)";
        store.see(|connection| connection.query_row(sql, [], |row| row.get(0))).unwrap()
    };
    assert_eq!(rows(), 3 + 1 + 1);
    records.put(RecordName::new("g", "later"), "x", second, Millis(120_000)).unwrap();
    assert_eq!(rows(), 1, "what has expired is deleted");

    let all: Result<(), StoreError> = store
        .batch(|_| (0..crate::records::EVENTS_KEPT + 50).try_for_each(|n| records.publish(&n.to_string())));
    all.unwrap();
    let events = records.follow(Some(EventCursor::START), usize::MAX, second).unwrap().1;
    assert_eq!((events.len(), events[0].as_str()), (crate::records::EVENTS_KEPT, "50"));
}

/// A thread that writes during the batch of another waits: it isn't undone with the batch, even if that panics.
#[test]
fn a_batch_belongs_to_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Bounds::default());
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let (begin, begun) = std::sync::mpsc::channel();
        let at = &store;
        let batch = scope.spawn(move || {
            at.batch(|store| {
                push(store, "undone", 1, 1);
                tell.send(()).unwrap();
                begun.recv().unwrap();
                // The other thread gets every chance to write before the batch ends.
                (0..20).for_each(|_| std::thread::yield_now());
                push(store, "undone", 1, 2);
                panic!("the batch fails");
                #[expect(unreachable_code, reason = "the type of the batch")]
                Ok::<(), StoreError>(())
            })
        });
        told.recv().unwrap();
        begin.send(()).unwrap();
        assert_eq!(push(&store, "kept", 1, 1), 1);
        assert!(batch.join().is_err());
    });
    assert_eq!(store.look(&Numbers, &"kept".into(), Vec::len).unwrap(), Some(1));
    assert_eq!(store.look(&Numbers, &"undone".into(), Vec::len).unwrap(), None);
    let nested: Result<(), StoreError> = store.batch(|store| store.batch(|_| Ok(())));
    assert!(nested.is_err(), "a batch in a batch is an error");
    assert_eq!(push(&store, "kept", 1, 2), 2);
}

/// SQLite refuses all but one of those that switch a new file to its log at the same time.
#[test]
fn many_open_a_new_file_at_once() {
    for _ in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let together = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for n in 0..8 {
                let (folder, together) = (folder.path(), &together);
                scope.spawn(move || {
                    together.wait();
                    push(&open(folder, Bounds::default()), "one", 0, n);
                });
            }
        });
        assert_eq!(push(&open(folder.path(), Bounds::default()), "one", 0, 8), 9);
    }
}

#[test]
fn another_process_goes_on_where_one_left() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(push(&open(folder.path(), Bounds::default()), "a", 1, 7), 1);
    let again = open(folder.path(), Bounds::default());
    assert_eq!(again.look(&Numbers, &"a".into(), Clone::clone).unwrap(), Some(vec![7]));
}

#[test]
#[cfg(unix)]
fn is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Bounds::default());
    push(&store, "a", 1, 7);
    let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("state"), 0o700);
    for file in ["state/deloop.db", "state/deloop.db-wal", "state/deloop.db-shm"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
}

#[test]
fn the_longest_unused_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Bounds { sessions: 10, ..Bounds::default() });
    for n in 1..100 {
        push(&store, &format!("s{n}"), n, 0);
    }
    let mut names: Vec<String> =
        Store::<Vec<u64>>::sessions(&store).unwrap().iter().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(names, (90..100).map(|n| format!("s{n}")).collect::<Vec<_>>());
}

#[test]
fn a_file_that_grew_too_big_loses_its_older_half() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Bounds { bytes: 1 << 20, ..Bounds::default() });
    for n in 1..200 {
        let fill = |s: &mut Vec<u64>| s.resize(4000, 1_000);
        store.update(&Numbers, &format!("s{n}").into(), Some(Millis(n)), fill).unwrap();
    }
    let names = Store::<Vec<u64>>::sessions(&store).unwrap();
    assert!(names.len() > 10 && names.len() < 60, "{}", names.len());
    assert!(names.contains(&"s199".into()) && !names.contains(&"s1".into()));
}

#[test]
fn idle_sessions_start_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Bounds { idle: 1000, ..Bounds::default() });
    let push = |ts| push(&store, "a", ts, 1);
    assert_eq!((push(1), push(900), push(1800), push(5000), push(4000)), (1, 2, 3, 1, 2));
}

#[test]
fn a_batch_is_kept_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Bounds::default());
    let failed: Result<(), StoreError> = store.batch(|store| {
        push(store, "a", 1, 1);
        Err(StoreError::encode("no"))
    });
    assert!(failed.is_err());
    assert_eq!(store.look(&Numbers, &"a".into(), Vec::len).unwrap(), None);
    let kept: Result<_, StoreError> =
        store.batch(|store| Ok((push(store, "a", 1, 1), push(store, "a", 1, 2))));
    assert_eq!(kept.unwrap(), (1, 2));
    assert_eq!(store.look(&Numbers, &"a".into(), Vec::len).unwrap(), Some(2));
}

/// Processes that write once and exit, as hooks do. The log must not grow forever.
#[test]
fn the_log_stays_short() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..400 {
        push(&open(folder.path(), Bounds::default()), &format!("s{n}"), n, 0);
    }
    let log = std::fs::metadata(folder.path().join("state/deloop.db-wal")).unwrap().len();
    assert!(log < 600 * 1024, "{log}");
    assert_eq!(Store::<Vec<u64>>::sessions(&open(folder.path(), Bounds::default())).unwrap().len(), 400);
}

#[test]
fn what_cannot_be_read_starts_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Bounds::default());
    push(&store, "a", 1, 1);
    store.lock().execute("UPDATE sessions SET state = 'x'", []).unwrap();
    assert_eq!(push(&store, "a", 2, 1), 1);
}

#[test]
fn a_file_that_is_no_database_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deloop.db");
    for n in 1..=2 {
        std::fs::write(&path, format!("no database {n}").repeat(100)).unwrap();
        push(&SqliteStore::open(&path, Bounds::default()).unwrap(), "a", 1, 1);
        let aside = std::fs::read_to_string(folder.path().join(format!("deloop.db.corrupt-{n}"))).unwrap();
        assert!(aside.starts_with(&format!("no database {n}")));
        for log in ["deloop.db", "deloop.db-wal", "deloop.db-shm"] {
            std::fs::remove_file(folder.path().join(log)).unwrap();
        }
    }
}

#[test]
fn damage_found_in_use_is_set_aside_for_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deloop.db");
    let store = SqliteStore::open(&path, Bounds::default()).unwrap();
    for n in 0..50 {
        push(&store, &format!("s{n}"), n, n as u64);
    }
    store.see(|c| c.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")).unwrap();
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open(&path, Bounds::default()).unwrap();
    assert!(store.update(&Numbers, &"s7".into(), None, |s| s.push(1)).is_err());
    drop(store);
    assert!(folder.path().join("deloop.db.corrupt-1").exists());
    let store = SqliteStore::open(&path, Bounds::default()).unwrap();
    assert_eq!(push(&store, "s7", 1, 1), 1);
}

#[test]
fn a_file_of_a_later_release_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deloop.db");
    let store = SqliteStore::open(&path, Bounds::default()).unwrap();
    store.lock().execute_batch("PRAGMA user_version = 99").unwrap();
    drop(store);
    let error = SqliteStore::open(&path, Bounds::default()).err().unwrap();
    assert!(error.to_string().contains("update deloop"), "{error}");
    assert!(!folder.path().join("deloop.db.corrupt-1").exists());
}

#[test]
fn a_file_of_an_earlier_release_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deloop.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(schema::MIGRATIONS[0]).unwrap();
    old.execute_batch("PRAGMA user_version = 1; INSERT INTO sessions VALUES('a', 1, 1, '7');").unwrap();
    drop(old);
    let store = SqliteStore::open(&path, Bounds::default()).unwrap();
    assert_eq!(push(&store, "a", 2, 8), 2, "its sessions go on");
}

/// What `docs/swarms.md` says of the cost of a call.
#[test]
#[ignore = "a measurement; run it with --release and --nocapture"]
#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "the figures are what the test is for")]
fn the_cost_of_a_call_in_a_swarm() {
    for workers in [3, 50, 500, 1000] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), Bounds::default());
        let names: Vec<String> = (0..workers).map(|n| format!("5f0c3d1e-8a2b-4c7d-9e6f-{n:012}")).collect();
        let call = |swarm: &mut Swarm, n: usize| {
            let short = || deloop_types::ShortCall { tool: "bash".to_owned(), about: format!("cat {n}.md") };
            swarm.push(n as u64 % 4000, worker(&names[n % workers]), short)
        };
        let change = |work: &mut dyn FnMut(&mut Swarm)| store.change_swarm("s", work).unwrap();
        change(&mut |swarm| (0..12_000).for_each(|n| _ = call(swarm, n)));
        let mut times: Vec<_> = (0..200)
            .map(|n| {
                let start = std::time::Instant::now();
                change(&mut |swarm| _ = call(swarm, n));
                start.elapsed()
            })
            .collect();
        times.sort();
        let bytes: i64 = store
            .see(|connection| connection.query_row("SELECT length(state) FROM swarms", [], |row| row.get(0)))
            .unwrap();
        println!("{workers} workers: {bytes} bytes, {:?} a call (median of 200)", times[100]);
    }
}
