//! Detects a stalled session: no hook calls deloop, no call of the agent writes anything. An agent that hangs
//! calls no hooks, so only the process that started it can tell.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use deloop_detect::Tools;
use deloop_live::{RunActivity, SqliteJournal};
use deloop_types::Millis;

use super::process_table;
use crate::exit::Failure;
use crate::state::now as wall_clock;

/// The limit unless the user sets another one: 4.3 times the longest pause in 121 sessions that ran without a person.
const DEFAULT: &str = "2h";
/// The same while a call runs: 4 times the longest call in those sessions.
const OF_A_CALL: Duration = Duration::from_secs(52 * 60);
/// How often the run is looked at: so many times before the limit, and at least this often.
const LOOKS: u32 = 40;
const PACE: Duration = Duration::from_secs(5);
/// A pause is a stall only if it lasts this many times as long as any pause of the run before it.
const FAR_LONGER: u32 = 3;
/// The processes of a run are looked at after this part of the limit.
const EARLY: u32 = 8;
/// How much earlier than its event a process may seem to begin, in milliseconds: times are rounded.
const SLACK: i64 = 20;
/// The longest limit that can be asked for.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What is noticed.
pub(super) enum StallNotice {
    /// Nothing has happened for half of the limit.
    Warning(String),
    /// Nothing has happened for as long as the limit; what happened last, and one line about it.
    Stalled(Box<RunActivity>, String),
}

/// How long nothing may happen; zero for any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StallLimits {
    /// While the agent waits for its model.
    model: Duration,
    /// While a call runs that starts no subagent. What a subagent waits for is its model.
    call: Duration,
}

impl StallLimits {
    /// Reads what the user set, if anything.
    pub(super) fn read(text: Option<&str>) -> Result<Self, Failure> {
        let model = limit(text.unwrap_or(DEFAULT))?;
        Ok(Self { model, call: text.map_or(OF_A_CALL, |_| model) })
    }

    /// Returns whether there are none.
    fn is_zero(self) -> bool {
        self.model.is_zero() && self.call.is_zero()
    }

    /// Returns the shorter one.
    fn least(self) -> Duration {
        self.model.min(self.call)
    }

    fn of(self, activity: &RunActivity) -> Duration {
        let tools = Tools::default();
        let runs = activity.running.iter().any(|call| !tools.spawns(&call.tool));
        if runs { self.call } else { self.model }
    }
}

/// Reads a limit such as `90m`; zero means that there is none.
fn limit(text: &str) -> Result<Duration, Failure> {
    let text = text.trim();
    if ["0", "off"].contains(&text) {
        return Ok(Duration::ZERO);
    }
    let wrong = || Failure::new(format!("the stall limit takes 30s, 90m, 3h or 0 for none, not {text:?}"));
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = text[..text.len() - unit.len_utf8()].trim_end().parse().map_err(|_| wrong())?;
    let limit = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
    Ok(limit.min(LONGEST))
}

/// Watches one attempt.
pub(super) struct StallWatch<'a> {
    store: &'a SqliteJournal,
    run: &'a str,
    limits: StallLimits,
    /// The last event, once there is one: an agent that never calls deloop can't be told from one that hangs.
    last: Option<Millis>,
    /// When something last happened.
    since: Instant,
    looked: Instant,
    longest: Duration,
    warned: bool,
    output: CallOutput,
}

impl<'a> StallWatch<'a> {
    /// Starts to watch a run; `None` if there is no limit.
    pub(super) fn new(
        store: &'a SqliteJournal,
        run: &'a str,
        limits: StallLimits,
        now: Instant,
    ) -> Option<Self> {
        (!limits.is_zero()).then(|| Self {
            store,
            run,
            limits,
            last: None,
            since: now,
            looked: now,
            longest: Duration::ZERO,
            warned: false,
            output: CallOutput::begin(Millis(0)),
        })
    }

    /// Looks at the run, if it is time to. A look that fails is repeated.
    pub(super) fn look(&mut self, now: Instant) -> Option<StallNotice> {
        let least = self.limits.least();
        if now - self.looked < (least / LOOKS).min(PACE) {
            return None;
        }
        self.looked = now;
        let last = self.store.last_event_of_run(self.run).ok()??;
        if self.last != Some(last) {
            let activity = self.store.activity_of_run(self.run).ok()??;
            self.happened(now);
            self.last = Some(last);
            self.output =
                CallOutput::begin(activity.running.iter().map(|call| call.began).min().unwrap_or(last));
            return None;
        }
        let quiet = now - self.since;
        let wrote = quiet >= least / EARLY && self.output.processes_wrote(wall_clock());
        if self.output.files_grew() || wrote {
            (self.since, self.warned) = (now, false);
            return None;
        }
        if quiet < least / 2 {
            return None;
        }
        let activity = self.store.activity_of_run(self.run).ok()??;
        let own = activity.running.iter().filter_map(|call| call.limit_ms).max().unwrap_or(0);
        let limit = self.limits.of(&activity).max(self.longest * FAR_LONGER) + Duration::from_millis(own);
        if quiet >= limit {
            let summary = format!("nothing happened for {} while {}", span(quiet), doing(&activity));
            return Some(StallNotice::Stalled(Box::new(activity), summary));
        }
        if quiet >= limit / 2 && !self.warned {
            self.warned = true;
            self.output.ignore_warning();
            let (quiet, limit, doing) = (span(quiet), span(limit), doing(&activity));
            return Some(StallNotice::Warning(format!(
                "nothing has happened for {quiet}: {doing}; the limit is {limit}"
            )));
        }
        None
    }

    fn happened(&mut self, now: Instant) {
        if self.last.is_some() {
            self.longest = self.longest.max(now - self.since);
        }
        self.since = now;
        self.warned = false;
    }
}

/// What the processes of the running calls have written, and the size of deloop's own standard output and error, which are
/// the agent's, if they are files. The agent and what it runs for itself began before the calls, and write all the time.
struct CallOutput {
    /// When the first of the running calls began, or the last event was.
    since: Millis,
    /// Whether each process belongs to a running call. It is judged once: rounded times differ from look to look.
    is_of_call: HashMap<u32, bool>,
    /// How much each process had written at the last look; none before the first.
    written: Option<HashMap<u32, u64>>,
    files: Option<[u64; 2]>,
}

impl CallOutput {
    /// Starts over at an event.
    fn begin(since: Millis) -> Self {
        Self { since, is_of_call: HashMap::new(), written: None, files: Some(file_sizes()) }
    }

    /// Keeps deloop's own warning from counting as output.
    fn ignore_warning(&mut self) {
        self.files = None;
    }

    /// Returns whether the files have another size than at the last look.
    fn files_grew(&mut self) -> bool {
        let files = file_sizes();
        self.files.replace(files).is_some_and(|before| before != files)
    }

    /// Returns whether a process has written since the last look.
    fn processes_wrote(&mut self, now: Millis) -> bool {
        let Self { since, is_of_call, .. } = self;
        let mut of_call = |id: &u32| {
            *is_of_call.entry(*id).or_insert_with(|| {
                process_table::began(*id, now).is_some_and(|began| began.0 + SLACK >= since.0)
            })
        };
        let processes = process_table::started_here(None).into_iter().filter(|id| of_call(id));
        let written: HashMap<u32, u64> =
            processes.filter_map(|id| Some((id, process_table::written(id)?))).collect();
        let before = self.written.replace(written.clone());
        before.is_some_and(|before| {
            written.iter().any(|(id, bytes)| *bytes > before.get(id).copied().unwrap_or(0))
        })
    }
}

/// Returns the sizes of deloop's standard output and error; 0 for what isn't a file.
#[cfg(unix)]
fn file_sizes() -> [u64; 2] {
    let size = |stat: rustix::io::Result<rustix::fs::Stat>| {
        stat.ok().and_then(|stat| u64::try_from(stat.st_size).ok()).unwrap_or(0)
    };
    [size(rustix::fs::fstat(std::io::stdout())), size(rustix::fs::fstat(std::io::stderr()))]
}

#[cfg(not(unix))]
fn file_sizes() -> [u64; 2] {
    [0, 0]
}

/// Returns what the agent is doing, as far as deloop knows.
fn doing(activity: &RunActivity) -> String {
    match activity.running.as_slice() {
        [] => "the agent waited for its model".to_owned(),
        [.., last] => format!("`{}` was running", deloop_detect::quote(&last.call, 100)),
    }
}

/// Returns a duration as people write it.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use deloop_live::Journal;

    use super::*;
    use crate::clock::WaitClock;

    #[test]
    fn limits_have_units() {
        let read = |text| limit(text).ok().map(|limit| limit.as_secs());
        let seconds = |text| StallLimits::read(text).map(|l| [l.model.as_secs(), l.call.as_secs()]).unwrap();
        assert_eq!([seconds(None), seconds(Some("90m"))], [[7200, 3120], [5400, 5400]]);
        assert_eq!([read("30s"), read("90m"), read("1.5h")], [Some(30), Some(5400), Some(5400)]);
        assert_eq!([read("0"), read("off"), read("0m")], [Some(0), Some(0), Some(0)]);
        assert_eq!(read("99999h"), Some(LONGEST.as_secs()));
        for wrong in ["", "90", "-1h", "h", "2 days", "infh", "nanm", "ü"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spans_read_well() {
        let spans = [8, 119, 120, 5400, 7200, 54_000].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(spans, ["8 s", "119 s", "2 min", "90 min", "2 h 0 min", "15 h 0 min"]);
    }

    /// A journal with one session of the run `r`, and the state of its last event.
    struct Night {
        journal: SqliteJournal,
        folder: tempfile::TempDir,
        start: Instant,
        events: i64,
    }

    impl Night {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let journal =
                SqliteJournal::open(&folder.path().join("d.db"), deloop_store::Bounds::default()).unwrap();
            let source = deloop_live::SessionSource {
                session: "s".to_owned(),
                agent: "claude-code".to_owned(),
                run: Some("r".to_owned()),
                ..deloop_live::SessionSource::default()
            };
            journal.note_source(&source, Millis(1)).unwrap();
            Self { journal, folder, start: WaitClock::new().now(), events: 0 }
        }

        fn event(&mut self, state: &str) {
            self.events += 1;
            self.journal.set_session_state("s", Millis(self.events), state).unwrap();
        }

        fn at(&self, minute: u64) -> Instant {
            self.start + Duration::from_secs(60 * minute)
        }
    }

    const QUIET: &str = r#"{"agents":[{"name":null,"running":[{"tool":"mcp__notes__search","call":"search","limit_ms":null,"began":1,"id":1}]}]}"#;
    const WAITS: &str = r#"{"agents":[{"name":null}]}"#;
    const RUNS: &str = r#"{"agents":[{"name":null,"running":[{"tool":"Bash","call":"Bash(make)","limit_ms":5400000,"began":1,"id":1}]}]}"#;

    fn words(notice: Option<StallNotice>) -> String {
        match notice {
            None => String::new(),
            Some(StallNotice::Warning(text)) => text,
            Some(StallNotice::Stalled(_, text)) => format!("stalled: {text}"),
        }
    }

    #[test]
    fn a_night_of_steps_is_no_stall_and_a_hang_of_15_hours_is_one() {
        let mut night = Night::new();
        let journal =
            SqliteJournal::open(&night.folder.path().join("d.db"), deloop_store::Bounds::default()).unwrap();
        let mut watch =
            StallWatch::new(&journal, "r", StallLimits::read(None).unwrap(), night.start).unwrap();
        assert_eq!(words(watch.look(night.at(600))), "", "nothing has begun");
        for step in 0..40 {
            night.event(WAITS);
            for minute in [1, 10, 25] {
                assert_eq!(words(watch.look(night.at(600 + 26 * step + minute))), "", "step {step}");
            }
        }
        let last = 600 + 26 * 39;
        assert_eq!(words(watch.look(night.at(last + 60))), "");
        let warning =
            "nothing has happened for 60 min: the agent waited for its model; the limit is 2 h 0 min";
        assert_eq!(words(watch.look(night.at(last + 61))), warning);
        assert_eq!(words(watch.look(night.at(last + 100))), "", "one warning");
        assert_eq!(words(watch.look(night.at(last + 120))), "");
        let stalled = "stalled: nothing happened for 2 h 0 min while the agent waited for its model";
        assert_eq!(words(watch.look(night.at(last + 121))), stalled);
        assert!(StallWatch::new(&journal, "r", StallLimits::default(), night.start).is_none());
    }

    #[test]
    fn a_call_has_less_time_than_the_model() {
        let mut night = Night::new();
        let journal =
            SqliteJournal::open(&night.folder.path().join("d.db"), deloop_store::Bounds::default()).unwrap();
        let mut watch =
            StallWatch::new(&journal, "r", StallLimits::read(None).unwrap(), night.start).unwrap();
        night.event(QUIET);
        watch.look(night.at(1));
        assert!(words(watch.look(night.at(28))).ends_with("the limit is 52 min"));
        assert_eq!(words(watch.look(night.at(52))), "");
        assert_eq!(
            words(watch.look(night.at(53))),
            "stalled: nothing happened for 52 min while `search` was running"
        );
    }

    #[test]
    fn earlier_pauses_and_a_limit_of_the_call_give_more_time() {
        let mut night = Night::new();
        let journal =
            SqliteJournal::open(&night.folder.path().join("d.db"), deloop_store::Bounds::default()).unwrap();
        let mut watch =
            StallWatch::new(&journal, "r", StallLimits::read(None).unwrap(), night.start).unwrap();
        night.event(WAITS);
        watch.look(night.at(1));
        night.event(RUNS);
        assert_eq!(words(watch.look(night.at(51))), "");
        // 3 times 50 minutes, and 90 minutes that the agent gave the call.
        assert_eq!(words(watch.look(night.at(51 + 119))), "");
        assert!(words(watch.look(night.at(51 + 120))).ends_with("the limit is 4 h 0 min"));
        assert_eq!(words(watch.look(night.at(51 + 239))), "");
        let stalled = "stalled: nothing happened for 4 h 0 min while `Bash(make)` was running";
        assert_eq!(words(watch.look(night.at(51 + 240))), stalled);
    }
}
