//! The requirements for every backend, as a test suite that each of them runs.

mod records;

use deloop_detect::{FailureNote, FailureView, FailureWorker, SwarmCall, SwarmWorker};
use deloop_types::{Call, Millis, SessionId};

use crate::{Codec, Store, StoreError};
pub use records::check_records;

/// The state that the suite stores: a list of numbers.
pub struct Numbers;

impl Codec<Vec<u64>> for Numbers {
    fn fresh(&self) -> Vec<u64> {
        Vec::new()
    }

    fn freeze(&self, state: &Vec<u64>) -> Result<String, StoreError> {
        Ok(state.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
    }

    fn thaw(&self, text: &str) -> Result<Vec<u64>, StoreError> {
        text.split(',').filter(|n| !n.is_empty()).map(|n| n.parse().map_err(StoreError::decode)).collect()
    }
}

/// Returns the main agent of a session as a worker of a swarm.
#[must_use]
pub fn worker(session: &str) -> SwarmWorker<'_> {
    SwarmWorker { session, agent: None }
}

/// Checks what a store remembers of the failures of projects.
fn check_failures<S: Store<Vec<u64>>>(store: &S) {
    let worker = |session: &str| FailureWorker::new(&session.into(), None);
    let failed = |project: &str, session: &str, call: u64| {
        let note = FailureNote::Failed { call, output: 1, worker: worker(session), ts: Some(Millis(5)) };
        store.note_failure(project, &note).expect("note failure");
    };
    let met = |project: &str, call: u64| {
        let known = store.failures(project).expect("failures");
        let view = FailureView { known: Some(&known), worker: worker("other"), now: Some(Millis(6)) };
        let count = view.met_by_others(call, 1);
        (count.sessions, count.since)
    };
    assert_eq!(met("p", 1), (0, None), "an unknown project has none");
    assert_eq!(store.projects().expect("projects"), [""; 0], "looking makes nothing");
    failed("p", "a", 1);
    failed("p", "a", 1);
    failed("p", "b", 1);
    failed("p", "b", 2);
    failed("q", "a", u64::MAX);
    assert_eq!(met("p", 1), (2, Some(Millis(5))), "a session counts once");
    assert_eq!((met("q", 1).0, met("q", u64::MAX).0), (0, 1), "projects are isolated");
    store.note_failure("p", &FailureNote::Succeeded { call: 1 }).expect("note success");
    assert_eq!((met("p", 1).0, met("p", 2).0), (0, 1), "a success clears the call, and only this call");
    let mut names = store.projects().expect("projects");
    names.sort();
    assert_eq!(names, ["p", "q"]);
    store.forget_project("q").expect("forget project");
    store.forget_project("q").expect("forgetting what is not there");
    assert_eq!((met("q", u64::MAX).0, store.projects().expect("projects").len()), (0, 1));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || (0..5).for_each(|n| failed("p", &format!("{thread}-{n}"), 3)));
        }
    });
    assert_eq!(met("p", 3).0, 20, "no failure is lost when many are entered at once");
}

/// Runs the suite on an empty store.
///
/// # Panics
/// When the store breaks the contract.
pub fn check<S: Store<Vec<u64>>>(store: &S) {
    let (a, b) = (SessionId::from("a"), SessionId::from("b"));
    let push = |session: &SessionId, n: u64| {
        store.update(&Numbers, session, None, |state| (state.push(n), state.clone()).1).expect("update")
    };
    assert_eq!(push(&a, 1), [1], "a new session starts fresh");
    assert_eq!(push(&b, 9), [9], "sessions are isolated");
    assert_eq!(push(&a, 2), [1, 2], "a session keeps its state");
    assert_eq!(store.look(&Numbers, &a, Clone::clone).expect("look"), Some(vec![1, 2]));
    assert_eq!(store.look(&Numbers, &"c".into(), Clone::clone).expect("look"), None, "looking makes nothing");
    let mut names = store.sessions().expect("sessions");
    names.sort();
    assert_eq!(names, [a.clone(), b.clone()]);
    store.forget(&a).expect("forget");
    store.forget(&a).expect("forgetting what is not there");
    assert_eq!(push(&a, 3), [3], "a forgotten session starts fresh");

    let count = |swarm: &str, by: &str| {
        let call = SwarmCall { call: &Call::default(), target: 1, signature: 2 };
        store.tally(swarm, worker(by), &[call]).expect("tally")[0]
    };
    assert_eq!((count("s", "a").calls, count("s", "b").workers), (1, 2));
    assert_eq!(count("t", "a").calls, 1, "swarms are isolated");
    store.tally_in_vain("t", worker("a"), 2).expect("tally in vain");
    let after = count("t", "b");
    assert_eq!((after.calls, after.in_vain, after.in_vain_workers), (2, 1, 1));
    let state = |swarm: &str| store.look_swarm(swarm, deloop_detect::Swarm::state).expect("look swarm");
    assert_eq!(state("s").expect("it is stored").fingerprints[0].workers, ["a", "b"]);
    assert_eq!(state("u"), None, "looking makes nothing");
    let mut names = store.swarms().expect("swarms");
    names.sort();
    assert_eq!(names, ["s", "t"]);
    store.forget_swarm("s").expect("forget swarm");
    store.forget_swarm("s").expect("forgetting what is not there");
    assert_eq!(count("s", "a").calls, 1, "a forgotten swarm starts fresh");

    check_failures(store);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for n in 0..50 {
                    store
                        .update(&Numbers, &"shared".into(), None, |s| s.push(thread * 50 + n))
                        .expect("update");
                }
            });
        }
    });
    let all = store.look(&Numbers, &"shared".into(), Vec::len).expect("look");
    assert_eq!(all, Some(200), "no change is lost when many are made at once");
}
