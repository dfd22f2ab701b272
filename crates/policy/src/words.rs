//! Describes findings: one function for people, one for the agent. Both state only what the fields contain.

use crate::identifier::quoted_identifier;
use crate::{spawn_words, wait_words};
use deloop_detect::clean;
use deloop_detect::{CallRecord, Ending, Look, Progress};
use deloop_types::{
    Action, CameBack, ControllerNotice, Decision, Finding, Outcome, Repeats, ShortCall, limits,
};

/// Maximum number of calls of a cycle that are named.
const LAP: usize = 4;

/// Describes a finding for people, in terminals, reports and logs. No full stop at the end.
#[must_use]
pub fn summary(finding: &Finding) -> String {
    let count = so_far(finding);
    let call = || finding.calls.last().map_or_else(|| tool(finding), quoted);
    match finding.repeats {
        Repeats::Call if finding.outcome.is_none() && finding.changed.is_none() => {
            format!("{} called {count} times in a row", call())
        }
        Repeats::Call => {
            format!("{} {} {count} times{}", same_call(finding), came_back(finding), unchanged(finding))
        }
        Repeats::Target => format!("{} asked for {count} times in a row", call()),
        Repeats::Variants if finding.outcome.is_none() => {
            format!("{count} similar calls of {} in a row", tool(finding))
        }
        Repeats::Variants => {
            format!("{count} variations of {} {}", call(), came_back(finding).replacen("was", "were", 1))
        }
        Repeats::Cycle => {
            let mut lap: Vec<String> = finding.calls.iter().take(LAP).map(quoted).collect();
            if finding.calls.len() > LAP {
                lap.push("…".to_owned());
            }
            format!("{} repeated {count} times", lap.join(" → "))
        }
        Repeats::Failure if finding.outcome == Some(CameBack::SameFailure) => {
            format!("{count} calls failed the same way (last: {})", call())
        }
        Repeats::Failure => format!("{count} calls in a row failed (last: {})", call()),
        Repeats::Everything => format!("{count} of the last calls brought nothing new (last: {})", call()),
        Repeats::Tests => format!("{count} test runs in a row failed"),
        Repeats::Commands => format!("{count} shell commands in a row failed"),
        Repeats::Edit => format!("the same edit made {count} times, only its numbers differ ({})", call()),
        Repeats::Search => format!("{count} similar searches found nothing (last: {})", call()),
        Repeats::Turn => format!("{count} turns say nearly the same"),
        Repeats::Talk => format!("{count} turns in a row without a call"),
        Repeats::EmptyTurn => format!("{count} turns in a row with neither text nor a call"),
        Repeats::Note => format!("{count} notes that repeat earlier ones, with nothing done in between"),
        Repeats::Message => format!("one message with {count} sentences that were in it before"),
        Repeats::Swarm => format!("{} {count} times by {} workers", call(), field(finding, "workers")),
        Repeats::File => format!(
            "{} was edited {count} times, without test progress in between",
            frame(field(finding, "file"))
        ),
        Repeats::TestFile => format!(
            "{} was changed {count} times, with no test run passing in between",
            frame(field(finding, "file"))
        ),
        Repeats::PlanSection => {
            format!("one section of the plan was rewritten {count} times (last: {})", call())
        }
        Repeats::Task => {
            format!("{count} calls for one task, without its completion or test progress (last: {})", call())
        }
        Repeats::Compaction => {
            let last = finding
                .calls
                .last()
                .map_or("the last had no calls".to_owned(), |c| format!("last: {}", quoted(c)));
            format!("{count} rounds between compactions in a row brought nothing new ({last})")
        }
        Repeats::Request => {
            format!("{count} requests to continue in a row brought nothing new; check what keeps asking")
        }
        Repeats::IdleSpend => {
            let [usd, times] = ["usd", "times"].map(|name| field(finding, name));
            format!("${usd} spent while {times} calls and replies brought nothing new")
        }
        Repeats::Wait => wait_words::summary(finding, &call()),
        Repeats::Spawns | Repeats::SpawnedTask => spawn_words::summary(finding, &call()),
        Repeats::KnownFailure => format!("{} failed here{}", call(), as_before(finding)),
        _ => {
            let [used, limit, unit] = ["used", "limit", "unit"].map(|name| field(finding, name));
            let by = if field(finding, "per") == "day" { " by this project today" } else { "" };
            format!("{used} of {limit} {unit} used{by} ({count} %)")
        }
    }
}

/// Describes a notice, for the controlling agent.
#[must_use]
pub fn notice(notice: &ControllerNotice) -> String {
    let who = match &notice.agent {
        Some(agent) => format!("Your subagent with the id {}", quoted_identifier(agent)),
        None => {
            format!("The session with the id {} that you started", quoted_identifier(notice.session.as_str()))
        }
    };
    let what = if notice.action == Action::Stop { "was stopped" } else { "may be stuck" };
    format!("[deloop] {who} {what}: {}", clean(&notice.message, 400))
}

/// Describes a finding for another agent than the one that it is about: by numbers and the tool's name, and without the words
/// of a call, which the other agent could take for instructions. Returns `None` if the finding quotes nothing of the session.
#[must_use]
pub fn told_to_others(finding: &Finding) -> Option<String> {
    let Finding { detector, count, .. } = finding;
    if let Some(tool) = finding.calls.last().map(|call| call.tool.as_str()).or(finding.tool.as_deref()) {
        let tool = quoted_identifier(tool);
        return Some(format!("{detector} counts {count} calls, the last one of {tool}"));
    }
    let is_of_file = matches!(finding.repeats, Repeats::File | Repeats::TestFile);
    is_of_file.then(|| format!("{detector} counts {count} edits of one file"))
}

/// Describes what deloop did and why, in one line for the user; `None` when it did nothing. `why` is the summary of the finding
/// that decided; without one, the first finding is named.
#[must_use]
pub fn user_message(decision: &Decision, why: Option<&str>) -> Option<String> {
    let did = match decision.action {
        Action::Continue => return None,
        Action::Warn => return decision.message.clone(),
        Action::Nudge => "deloop messaged the agent",
        Action::Ask => "deloop asks about this call",
        Action::Block => "deloop blocked a call",
        Action::Stop => "deloop stopped the run",
    };
    let why = why.or_else(|| decision.main_finding().map(|f| f.summary.as_str()));
    let why = why.or(decision.status.as_deref()).unwrap_or("it repeats itself").trim_end_matches('.');
    let id = decision.id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
    Some(format!("{did}: {why}{id}"))
}

/// Describes how often it happened. A call that is about to be made has no result yet.
fn so_far(finding: &Finding) -> u64 {
    finding.count - u64::from(finding.evidence.pending).min(finding.count)
}

fn came_back(finding: &Finding) -> &'static str {
    match finding.outcome {
        Some(CameBack::SameFailure) => "failed the same way",
        Some(CameBack::SimilarFailure) => "failed with the same kind of error",
        Some(CameBack::Failures) => "failed",
        Some(CameBack::Refused) => "was refused",
        Some(CameBack::TimedOut) => "timed out",
        Some(CameBack::SameOutput) => "returned the same output",
        Some(CameBack::Nothing) => "returned nothing",
        _ => "was called",
    }
}

fn unchanged(finding: &Finding) -> &'static str {
    match finding.changed {
        Some(false) => ", with nothing changed in between",
        _ => "",
    }
}

fn tool(finding: &Finding) -> String {
    finding.tool.as_deref().map_or_else(|| "a tool".to_owned(), frame)
}

pub(crate) fn field<'a>(finding: &'a Finding, name: &str) -> &'a str {
    finding.evidence.fields.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
}

/// Describes a finding for the agent, in one or two sentences that address it.
#[must_use]
pub fn told(finding: &Finding) -> String {
    let count = so_far(finding);
    let call = || finding.calls.last().map_or_else(|| tool(finding), quoted);
    match finding.repeats {
        Repeats::Call | Repeats::Target => {
            let since = match finding.changed {
                Some(false) => " without changing anything in between",
                Some(true) | None => "",
            };
            let came = match finding.outcome {
                Some(CameBack::SameFailure) => ", and it failed the same way each time",
                Some(CameBack::SimilarFailure) => ", and it failed with the same kind of error each time",
                Some(CameBack::Failures) => ", and it failed each time",
                Some(CameBack::Refused) => ", and it was refused each time",
                Some(CameBack::TimedOut) => ", and it timed out each time",
                Some(CameBack::SameOutput) => ", and it returned the same output each time",
                Some(CameBack::Nothing) => ", and it returned nothing each time",
                _ => "",
            };
            let verb = if names_argument(finding) { "ran" } else { "made" };
            format!("You {verb} {} {count} times{since}{came}.", same_call(finding))
        }
        Repeats::Variants | Repeats::Failure => {
            let came = match finding.outcome {
                Some(CameBack::SameFailure) => " failed the same way",
                Some(CameBack::SimilarFailure) => " failed with the same kind of error",
                Some(CameBack::Refused) => " were refused",
                Some(CameBack::TimedOut) => " timed out",
                _ => " failed",
            };
            let row = if finding.outcome == Some(CameBack::Failures) { " in a row" } else { "" };
            format!("{count} calls{row}{came}, among them {}.", list(&finding.calls))
        }
        Repeats::Everything => {
            format!(
                "{count} of your last calls brought nothing that you hadn't seen before, most recently {}.",
                call()
            )
        }
        Repeats::Edit => {
            format!("You made the same edit {count} times ({}); only numbers in it differ.", call())
        }
        Repeats::Search => {
            format!("{count} similar searches found nothing, among them {}.", list(&finding.calls))
        }
        Repeats::Talk | Repeats::Turn => {
            format!("Your last {count} replies say nearly the same, and nothing was done in between.")
        }
        Repeats::EmptyTurn => format!("Your last {count} replies were empty."),
        Repeats::Note => {
            format!("{count} of your notes repeat earlier ones, and nothing was done in between.")
        }
        Repeats::Message => format!("{count} sentences of your message were in it before."),
        Repeats::Swarm => {
            // Every worker is told this, so it quotes nothing of the call.
            let (workers, tool) = (field(finding, "workers"), finding.tool.as_deref().unwrap_or("a tool"));
            format!(
                "The same call of {} was made {count} times by {workers} workers of this swarm and brought nothing.",
                quoted_identifier(tool)
            )
        }
        Repeats::Compaction => compacted(finding),
        Repeats::Request => {
            format!(
                "You were asked to continue {count} times in a row, and none of your answers brought anything new."
            )
        }
        Repeats::IdleSpend => spent(finding),
        Repeats::Wait => wait_words::told(finding, &call()),
        Repeats::Spawns | Repeats::SpawnedTask => spawn_words::told(finding),
        Repeats::KnownFailure => {
            let since = if finding.evidence.pending { ", and nothing has changed since" } else { "" };
            format!("{} failed here{}{since}.", call(), as_before(finding))
        }
        _ => format!("{}.", summary(finding)),
    }
}

/// Describes rounds between compactions, for the agent.
fn compacted(finding: &Finding) -> String {
    let count = so_far(finding);
    if finding.calls.is_empty() {
        return format!(
            "Your context was compacted again, and the last {count} rounds between compactions brought nothing new. The last one had no calls."
        );
    }
    format!(
        "Your context was compacted again, and the last {count} rounds between compactions brought nothing new: \
         calls such as {} returned what they had returned before.",
        list(&finding.calls)
    )
}

/// Describes what was spent while nothing new came, for the agent.
fn spent(finding: &Finding) -> String {
    let [usd, times] = ["usd", "times"].map(|name| field(finding, name));
    format!("Your last {times} calls and replies brought nothing new, and cost ${usd}.")
}

/// Describes how often a failure occurred here, who met it before, and since when.
fn as_before(finding: &Finding) -> String {
    let [here, sessions, others, since] = ["here", "sessions", "others", "since"].map(|f| field(finding, f));
    let plural = |count: &str| if count == "1" { "" } else { "s" };
    let times = match here {
        "" | "0" | "1" => String::new(),
        "2" => " twice".to_owned(),
        more => format!(" {more} times"),
    };
    let who = match sessions {
        "0" => format!("for {others} other agent{} of this session", plural(others)),
        _ => format!("in {sessions} earlier session{} of this project", plural(sessions)),
    };
    let since = if since.is_empty() { String::new() } else { format!(", since {since}") };
    format!("{times}, the same way as {who}{since}")
}

/// Suggests what the agent can do instead, based on what it does.
#[must_use]
pub fn advice(finding: &Finding) -> &'static str {
    match (finding.repeats, finding.outcome) {
        (Repeats::Call | Repeats::Variants | Repeats::Failure, Some(CameBack::Refused)) => {
            "Rewording the request won't help. Continue without it and state your assumption, or stop and report what you need."
        }
        (Repeats::Call | Repeats::Variants, Some(CameBack::TimedOut)) => {
            "It won't finish by being started again. Find out what it waits for, or run a smaller part of it with a time limit."
        }
        (
            Repeats::Call | Repeats::Target,
            Some(CameBack::SameFailure | CameBack::SimilarFailure | CameBack::Failures),
        ) => {
            "Running it again won't tell you anything new. Read what the error names and change that before the next attempt."
        }
        (Repeats::Call | Repeats::Target, Some(CameBack::Unseen)) => {
            "Repeating it brings nothing else. Use what it returned the first time, or continue without it if nothing came back, and say so."
        }
        (Repeats::Call | Repeats::Target | Repeats::Everything, _) => {
            "You already have this information. Use it: decide on the next step and take it, or name what is still missing and look for it elsewhere."
        }
        (Repeats::Variants | Repeats::Failure, _) => {
            "Find what these calls have in common and change that, or check the assumption behind them with a different kind of call."
        }
        (Repeats::Edit, _) => "Read the file as it is now before you edit it again.",
        (Repeats::Search, _) => {
            "What you are looking for is probably not there. Take that as the answer, or look at a listing to see what is."
        }
        (Repeats::Talk | Repeats::EmptyTurn | Repeats::Turn | Repeats::Note | Repeats::Message, _) => {
            "Take the next step with a tool call, or state in one sentence what is missing."
        }
        (Repeats::File | Repeats::TestFile, _) => {
            "Run the tests and read the first failure before you edit this file again. If the tests can't run, fix that first."
        }
        (Repeats::PlanSection, _) => {
            "Carry out the first open step of the plan before you change the plan again."
        }
        (Repeats::Task, _) => {
            "Say what is done, what is missing and what blocks it; then take the smallest step that can be checked."
        }
        (Repeats::Compaction, _) => {
            "Don't read it all again. Write what you know and your next step into a file, read only the part that this step needs, and take the step. If the context fills up before that, say so."
        }
        (Repeats::Request, _) => {
            "Giving the same answer again won't end this. Find out what the request checks and do the part that is missing, or say in one sentence what blocks you."
        }
        (Repeats::IdleSpend, _) => {
            "If you wait for something, wait with one call that returns when it happens, or cancel the timer and say what a person must do. If you don't, take a step that changes something."
        }
        (Repeats::Wait, _) => wait_words::ADVICE,
        (Repeats::Spawns | Repeats::SpawnedTask, _) => spawn_words::advice(finding),
        (Repeats::KnownFailure, _) => {
            "Running it again won't fix it. Find the cause and change that, do without this call, or report it as a known problem that a person must solve."
        }
        (Repeats::Swarm, _) => "Work on another part of the goal, or report why this one can't be done.",
        _ => "Check the assumption behind these calls with a different one.",
    }
}

/// Describes the evidence of a call, for people.
#[must_use]
pub fn evidence(record: &CallRecord) -> &'static str {
    match (record.progress, record.ending) {
        (Progress::New, _) => "new: not seen before",
        (Progress::Changed, _) => "change: later outcomes may differ",
        (Progress::Same, _) => "nothing new: it came back as before",
        (Progress::Moved, _) => "moved: a number in it goes on in one direction",
        (Progress::None, Ending::Running) if record.outcome == Some(Outcome::Running) => {
            "no evidence: still running"
        }
        (Progress::None, _) if record.look == Look::Waiting => "no evidence: it waits for something",
        (Progress::Failed, _) => "failure: the first of its kind",
        (Progress::FailedAgain, _) => "failed again: this call, or this failure, was there before",
        (Progress::None, Ending::Open) => "no evidence: no result yet",
        (Progress::None, Ending::CalledOff) => "no evidence: called off",
        (Progress::None, Ending::Unrecorded) => "no evidence: the result is not recorded",
        (Progress::None, _) if record.waits() => "no evidence: it waits for something",
        (Progress::None, _) => "no evidence: a note, a receipt or a wait",
    }
}

/// Names the call that repeats. Without an argument to show, its tool alone could also mean other calls.
fn same_call(finding: &Finding) -> String {
    match finding.calls.last().filter(|_| names_argument(finding)) {
        Some(call) => quoted(call),
        None => format!("the same call of {}", tool(finding)),
    }
}

fn names_argument(finding: &Finding) -> bool {
    finding.calls.last().is_some_and(|call| !call.about.is_empty())
}

/// Quotes a call. Text from an agent or a tool appears in messages only in this form.
fn quoted(call: &ShortCall) -> String {
    match (call.about.is_empty(), call.tool.as_str()) {
        (true, tool) => frame(tool),
        (false, tool) if deloop_detect::Tools::default().kind(tool) == deloop_detect::ToolKind::Run => {
            frame(&call.about)
        }
        (false, tool) => frame(&format!("{tool} {}", call.about)),
    }
}

/// Quotes text as data: one line of at most [`limits::QUOTE`] characters between backticks, with no backticks inside.
fn frame(text: &str) -> String {
    // A short form contains no secrets and is mostly plain letters.
    let plain = |b: u8| matches!(b, b' '..=b'}') && b != b'`';
    let body = text.strip_suffix('…').unwrap_or(text);
    if body.len() < limits::QUOTE && body.bytes().all(plain) {
        return format!("`{text}`");
    }
    format!("`{}`", deloop_detect::quote(text, limits::QUOTE))
}

fn list(calls: &[ShortCall]) -> String {
    let quoted: Vec<String> = calls.iter().map(quoted).collect();
    quoted.join(", ")
}
