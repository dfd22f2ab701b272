use deloop_types::ShortCall;

use super::*;

fn call(swarm: &mut Swarm, target: u64, worker: usize) -> SwarmCount {
    let session = format!("w{worker}");
    let worker = SwarmWorker { session: &session, agent: None };
    swarm.push(target, worker, || ShortCall { tool: "read".to_owned(), about: format!("{target}.md") })
}

/// A copy by way of its JSON.
fn copy(swarm: &Swarm) -> Swarm {
    serde_json::from_str(&serde_json::to_string(swarm).unwrap()).unwrap()
}

/// The rule in its plainest form.
fn plainly(calls: &mut Vec<(u64, usize)>, target: u64, worker: usize) -> (u64, u64) {
    calls.push((target, worker));
    let distinct = |calls: &[(u64, usize)]| {
        let mut workers: Vec<usize> = calls.iter().map(|(_, worker)| *worker).collect();
        workers.sort_unstable();
        workers.dedup();
        workers.len()
    };
    while calls.len() > 200.max(10 * distinct(calls).min(1000)) {
        calls.remove(0);
    }
    let same: Vec<(u64, usize)> = calls.iter().filter(|(other, _)| *other == target).copied().collect();
    (same.len() as u64, distinct(&same) as u64)
}

#[test]
fn counts_are_exact_while_workers_come_and_go() {
    let (mut swarm, mut calls, mut state) = (Swarm::default(), Vec::new(), 7_u64);
    for n in 0..3000_usize {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let workers = [3, 60, 30, 5][n / 750];
        let worker = (n / 750) * 20 + (state >> 33) as usize % workers;
        let target = (state >> 50) % 40;
        let counted = call(&mut swarm, target, worker);
        assert_eq!((counted.calls, counted.workers), plainly(&mut calls, target, worker), "call {n}");
        if n % 97 == 0 {
            assert_eq!(copy(&swarm), swarm);
        }
    }
    assert_eq!(swarm.calls.len(), 200, "most workers left, and so the window shrank");
    let state = swarm.state();
    for listed in &state.fingerprints {
        let target = u64::from_str_radix(&listed.fingerprint, 16).unwrap();
        let made: Vec<_> = calls.iter().filter(|(other, _)| *other == target).collect();
        assert_eq!(listed.total_calls, made.len() as u64);
        assert!(listed.workers.iter().all(|name| made.iter().any(|(_, w)| format!("w{w}") == *name)));
    }
}

#[test]
fn ten_calls_of_a_swarm_of_five_hundred_are_found() {
    let mut swarm = Swarm::default();
    let mut most = SwarmCount::default();
    for n in 0..4500_usize {
        let target = if n % 450 == 0 { 0 } else { n as u64 };
        let counted = call(&mut swarm, target, n % 500);
        if target == 0 {
            most = counted;
        }
    }
    assert_eq!((most.calls, most.workers), (10, 10));
    let state = swarm.state();
    assert_eq!((state.workers, state.window), (500, 5000));
    let first = &state.fingerprints[0];
    assert_eq!((first.total_calls, first.tool.as_str(), first.call.as_str()), (10, "read", "read(0.md)"));
    assert_eq!(first.workers.len(), 10);
    assert_eq!(copy(&swarm), swarm);
}

#[test]
fn its_size_is_bounded_and_proportional_to_its_workers() {
    let bytes = |workers: usize| {
        let mut swarm = Swarm::default();
        for n in 0..25_000_usize {
            call(&mut swarm, n as u64, n % workers);
            let worker = format!("w{}", n % workers);
            swarm.push_in_vain(n as u64, SwarmWorker { session: &worker, agent: None });
        }
        serde_json::to_string(&swarm).unwrap().len()
    };
    let sizes = [1, 20, 500, 1000, 3000].map(bytes);
    for (size, most) in sizes.into_iter().zip([9_000, 10_000, 170_000, 340_000, 400_000]) {
        assert!(size <= most, "{sizes:?}");
    }
}

#[test]
fn a_broken_state_is_an_error() {
    for json in [
        r#"{"workers":[],"calls":"AAAAAAAAAAAAAA","in_vain":"","listed":[]}"#,
        r#"{"workers":[],"calls":"","in_vain":"A","listed":[]}"#,
        r#"{"calls":[[1,2]],"in_vain":[]}"#,
    ] {
        assert!(serde_json::from_str::<Swarm>(json).is_err(), "{json}");
    }
}
