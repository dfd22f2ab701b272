//! What a step costs. See the README beside this file.

mod workload;

use deloop_policy::PROFILES;
use divan::Bencher;
use workload::Run;

fn main() {
    divan::main();
}

/// An already parsed call, in `default`, early and late in a session.
#[divan::bench(args = [100, 100_000], sample_count = 400, sample_size = 32)]
fn call(bencher: Bencher<'_, '_>, at: usize) {
    from(bencher, Run::new("default", at), Run::call);
}

/// Reading the line of that call.
#[divan::bench(sample_count = 400, sample_size = 32)]
fn parse(bencher: Bencher<'_, '_>) {
    let mut run = Run::new("default", 0);
    bencher.bench_local(|| run.parse());
}

/// A call and its result of 2 KB, in each profile.
#[divan::bench(args = PROFILES.iter().map(|(name, _)| *name), sample_count = 400, sample_size = 32)]
fn call_and_result(bencher: Bencher<'_, '_>, profile: &str) {
    from(bencher, Run::new(profile, 100), Run::call_and_result);
}

/// A call and its result of 2 KB, a failure: `default` looks into those.
#[divan::bench(sample_count = 400, sample_size = 32)]
fn call_and_failure(bencher: Bencher<'_, '_>) {
    from(bencher, Run::new("default", 100), Run::call_and_failure);
}

/// An already parsed call, in each profile.
#[divan::bench(args = PROFILES.iter().map(|(name, _)| *name), sample_count = 400, sample_size = 32)]
fn call_in(bencher: Bencher<'_, '_>, profile: &str) {
    from(bencher, Run::new(profile, 100), Run::call);
}

/// Each sample starts with the session as it was, so that it stays at the step it is measured at.
fn from(bencher: Bencher<'_, '_>, run: Run, step: fn(&mut Run)) {
    let checkpoint = run.checkpoint();
    let run = std::cell::RefCell::new(run);
    bencher
        .with_inputs(|| run.borrow().restore(checkpoint.clone()))
        .bench_local_values(|()| step(&mut run.borrow_mut()));
}
