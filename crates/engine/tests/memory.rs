//! How much memory live sessions take: what a fleet's operator plans with.

mod fleet;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use deloop_engine::{Guard, Options};
use deloop_policy::Profile;
use deloop_store::Limits;

/// Steps of each: enough calls to fill the history's window.
const STEPS: usize = 120;
/// What a session may take on average. A third of these sessions start subagents and remember their tasks.
const MOST: usize = 6_656;

/// Counts what is allocated as malloc does: with its header, in pieces of 16 bytes.
struct Counting;

thread_local! {
    /// What this thread took and did not give back; one counter for all threads would slow them down.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

fn add(size: usize, sign: isize) {
    let taken = (size + 8).next_multiple_of(16).max(32);
    // A thread that ends may free something when its counter is gone.
    let _ = HELD.try_with(|held| held.set(held.get() + sign * taken.cast_signed()));
}

#[expect(unsafe_code, reason = "an allocator cannot be written without; it only passes on to the system's")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size(), 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        add(layout.size(), -1);
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size, 1);
        add(layout.size(), -1);
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_session_takes_at_most_six_and_a_half_kibibytes() {
    measure(2000);
}

#[test]
#[ignore = "takes a minute; `cargo xtask check --all` runs it"]
fn a_hundred_thousand_sessions_take_at_most_six_and_a_half_kibibytes_each() {
    measure(100_000);
}

#[expect(clippy::print_stdout, reason = "the figure is what the test is for")]
fn measure(sessions: usize) {
    let limits = Limits { sessions: 2 * sessions, ..Limits::default() };
    let guard = Guard::with(Profile::named("default").unwrap(), Options::default(), limits);
    let mut fleet = fleet::Fleet::new(STEPS);
    // The names in the steps are the fleet's memory, not the guard's.
    (0..fleet::SCRIPTS).for_each(|number| _ = fleet.session(number));
    let calls = fleet.calls_of_a_session();
    assert!(calls >= deloop_detect::WINDOW, "{calls} calls do not fill the window");
    let halves = [(0, fleet.clone()), (1, fleet)];
    let held: isize = std::thread::scope(|scope| {
        let threads = halves.map(|(half, mut fleet)| {
            let guard = &guard;
            scope.spawn(move || {
                let before = HELD.get();
                for number in (half..sessions).step_by(2) {
                    fleet.session(number).iter().for_each(|step| drop(guard.observe(step)));
                }
                HELD.get() - before
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let held = held.cast_unsigned();
    assert_eq!(guard.sessions().len(), sessions, "all of them are live");
    let each = held / sessions;
    println!(
        "{sessions} sessions of {STEPS} steps take {} MiB, {each} bytes each: a million take {:.1} GiB",
        held / (1024 * 1024),
        each as f64 * 1e6 / 1024.0_f64.powi(3),
    );
    assert!(each <= MOST, "{each} bytes a session; {MOST} are allowed");
}
