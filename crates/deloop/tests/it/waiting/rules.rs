//! What must hold for a session. A test reports every session that breaks its rule, not only the first.

use super::session::{Decision, Session};

const UNATTENDED: &[&str] = &[];
const ATTENDED: &[&str] = &["--attended"];

/// Looks per message, for looks of a normal price that are a minute or more apart.
const LOOKS_PER_MESSAGE: usize = 40;

/// Detectors that find a call to be stuck. None of them may end a wait.
const STUCK: [&str; 7] = [
    "repeated-failure",
    "no-progress",
    "repeated-error",
    "empty-search",
    "repeated-edit",
    "failing-run",
    "talk-only",
];

/// What the end of a wait is about: one of these is in its message.
const COSTS: [&str; 8] = ["$", "token", "cost", "spen", "wait", "ceiling", "limit", "budget"];

/// Runs every session with these arguments, and fails with a line for each one that breaks the rule.
pub(super) fn expect(
    arguments: &[&str],
    sessions: &[Session],
    rule: impl Fn(&Session, &[Decision]) -> Result<(), String>,
) {
    report(broken(arguments, sessions, rule), sessions.len());
}

/// A session that broke its rule.
struct Broken {
    case: String,
    gap: String,
    why: String,
}

fn broken(
    arguments: &[&str],
    sessions: &[Session],
    rule: impl Fn(&Session, &[Decision]) -> Result<(), String>,
) -> Vec<Broken> {
    let judge = |session: &Session| {
        let why = rule(session, &session.decisions(arguments)).err()?;
        let case = format!("{} {}", session.case, arguments.join(" "));
        Some(Broken { case: case.trim_end().to_owned(), gap: session.gap.to_string(), why })
    };
    sessions.iter().filter_map(judge).collect()
}

/// Fails if any session broke its rule. Gaps at which the same happened share a line.
fn report(broken: Vec<Broken>, sessions: usize) {
    let count = broken.len();
    let mut lines: Vec<Broken> = Vec::new();
    for one in broken {
        match lines.iter_mut().find(|line| line.case == one.case && line.why == one.why) {
            Some(line) => line.gap += &format!("; {}", one.gap),
            None => lines.push(one),
        }
    }
    let lines: Vec<String> =
        lines.into_iter().map(|l| format!("- {} [{}]: {}", l.case, l.gap, l.why)).collect();
    assert!(lines.is_empty(), "{count} of {sessions} sessions:\n{}", lines.join("\n"));
}

/// Honest waits: never blocked, asked about or stopped, and messaged at most once in 40 slow looks. Without times, any
/// number of messages is fine.
pub(super) fn are_let_wait(sessions: &[Session]) {
    let mut all = broken(UNATTENDED, sessions, is_let_wait);
    all.extend(broken(ATTENDED, sessions, is_let_wait));
    report(all, 2 * sessions.len());
}

fn is_let_wait(session: &Session, decisions: &[Decision]) -> Result<(), String> {
    is_only_messaged(session, decisions)?;
    let most = (session.looks / LOOKS_PER_MESSAGE).max(1);
    let slow = session.gap.timed && session.gap.seconds >= 60;
    if slow && decisions.len() > most {
        let list: Vec<String> = decisions.iter().map(ToString::to_string).collect();
        return Err(format!("more than {most} messages:\n  {}", list.join("\n  ")));
    }
    Ok(())
}

/// Never blocked, asked about or stopped.
pub(super) fn is_only_messaged(_: &Session, decisions: &[Decision]) -> Result<(), String> {
    decisions.iter().find(|d| !d.is_message()).map_or(Ok(()), |hard| Err(hard.to_string()))
}

/// Work that moves on: not even messaged.
pub(super) fn are_untouched(sessions: &[Session]) {
    expect(UNATTENDED, sessions, |_, decisions| {
        decisions.first().map_or(Ok(()), |first| Err(first.to_string()))
    });
}

/// Messaged by this look at the latest.
pub(super) fn is_told_within(looks: usize, decisions: &[Decision]) -> Result<(), String> {
    let first = decisions.first().ok_or("never messaged")?;
    if !first.is_message() {
        return Err(format!("not messaged first: {first}"));
    }
    if first.look > looks { Err(format!("first messaged after look {looks}: {first}")) } else { Ok(()) }
}

/// Stopped by this look at the latest. Whatever was blocked or stopped, was because of what the wait cost.
pub(super) fn is_ended_by_cost_within(looks: usize, decisions: &[Decision]) -> Result<(), String> {
    for hard in decisions.iter().filter(|d| !d.is_message()) {
        let message = hard.message().to_lowercase();
        let stuck = hard.detectors().iter().any(|detector| STUCK.contains(detector));
        if stuck || !COSTS.iter().any(|word| message.contains(word)) {
            return Err(format!("not because of what it cost: {hard}"));
        }
    }
    let last = decisions.last().ok_or("never ended")?;
    match last.action() {
        "stop" if last.look <= looks => Ok(()),
        "stop" => Err(format!("ended after look {looks}: {last}")),
        _ => Err(format!("never ended; last {last}")),
    }
}

/// At least a message.
pub(super) fn are_found(sessions: &[Session]) {
    expect(
        UNATTENDED,
        sessions,
        |_, decisions| {
            if decisions.is_empty() { Err("nothing found".to_owned()) } else { Ok(()) }
        },
    );
}

/// Messaged first, and blocked later.
pub(super) fn is_nudged_and_blocked(_: &Session, decisions: &[Decision]) -> Result<(), String> {
    let first = decisions.first().ok_or("never messaged")?;
    if first.action() != "nudge" {
        return Err(format!("not nudged first: {first}"));
    }
    let blocked = decisions.iter().any(|d| d.action() == "block");
    if blocked { Ok(()) } else { Err(format!("never blocked; first {first}")) }
}
