//! The examples of the five documents, happening to a real agent: each text at the request where the document has it, and
//! the end where the document has one.

use std::process::Command;

use serde_json::Value;

use super::cases::Case;
use super::model::script::{Act, Script, Turn};
use super::seen::Seen;

const REPLAN: &str =
    "You have repeated a similar action 3 times. Stop and produce a revised plan before continuing.";
const EXPLORE: &str = "You have repeated a similar action 5 times. The current approach is failing. Try a completely different tool or method.";
const FORCE_DONE: &str = "Loop limit reached (8 repetitions). Mark this task complete with partial results and explain what was not accomplished.";

const CONSIDER: &str = "\n\nPlease try a different approach. Consider:\n- Re-reading error messages more carefully\n- Trying an alternative solution strategy\n- Breaking the problem into smaller steps";

const SENTENCE: &str = "I need to check the current price and make a trading decision.";
const LOOP_WARNING: &str = "Loop warning: 3 consecutive similar turns. VP will be notified.";
const LOOP_DETECTED: &str =
    "Loop detected: 5 consecutive similar turns (>0.85 similarity). Session will be terminated.";

const LOOP_MSG: &str = "You are in a repetitive loop. Try a different approach.";

/// Turns of a loop that the document ends, and of one that it doesn't.
const ENDED: usize = 12;
const UNENDED: usize = 9;

/// What the model does.
pub(super) fn script(case: Case) -> Script {
    let note = |what: &str| Act::Shell(format!("sh note.sh {what}"));
    match case {
        Case::Signature => {
            let acts = vec![note("edit"), Act::Shell("sh test.sh".to_owned())];
            Script::Loop { acts, max: ENDED }
        }
        Case::TurnSimilarity => {
            // Rephrased, and with another call each time: only the words are similar.
            let again = |n: usize| format!("{SENTENCE}{}", if n % 2 == 1 { " Now." } else { "" });
            let turn = |n: usize| Turn::Both(again(n), vec![note(&format!("price-{n}"))]);
            Script::Turns((1..=ENDED).map(turn).collect())
        }
        Case::TurnHash => {
            let turn = Turn::Both(SENTENCE.to_owned(), vec![note("look")]);
            Script::Turns(vec![turn; UNENDED])
        }
        Case::DoomLoop => Script::Loop { acts: vec![note("look")], max: UNENDED },
        _ => Script::Loop { acts: vec![note("look")], max: ENDED },
    }
}

/// Returns what came of the case, or what differs from the document.
pub(super) fn judge(case: Case, seen: &Seen<'_>) -> Result<String, String> {
    match case {
        Case::Behavioral => behavioral(seen),
        Case::Signature => signature(seen),
        Case::DoomLoop => doom_loop(seen),
        Case::TurnSimilarity => turn_similarity(seen),
        _ => turn_hash(seen),
    }
}

fn behavioral(seen: &Seen<'_>) -> Result<String, String> {
    seen.expect_first(REPLAN, 3)?;
    seen.expect_first(EXPLORE, 5)?;
    seen.expect(seen.place.ran("look") == 7, "the eighth action was taken")?;
    ended_at(seen, 8)?;
    ended_with(seen, "FORCE_DONE", FORCE_DONE)?;
    Ok("replan after 3, explore after 5, ended at 8".to_owned())
}

fn signature(seen: &Seen<'_>) -> Result<String, String> {
    let first = "⚠️ Loop detected: You appear to be repeating the same sequence of tool calls\nwithout making progress. The following pattern has repeated 2 times:\n  1. ";
    seen.expect_first(first, 4)?;
    seen.expect_first(CONSIDER, 4)?;
    let warning = seen.record.session[4].text();
    let pattern =
        warning.split(first).nth(1).and_then(|rest| rest.split(CONSIDER).next()).unwrap_or_default();
    let lines: Vec<&str> = pattern.lines().collect();
    let numbered = lines.len() == 2 && pattern.contains("sh test.sh") && pattern.contains("note.sh edit");
    seen.expect(numbered && pattern.contains("\n  2. "), &format!("the pattern is {pattern:?}"))?;
    seen.expect_first("⚠️ Loop detected again: You are still repeating the same sequence of tool calls\nwithout making progress. The following pattern has repeated 3 times:\n  1. ", 6)?;
    seen.expect_first("Do one of these instead:\n- ", 6)?;
    seen.expect(seen.place.ran("edit") == 4 && seen.place.ran("test") == 3, "the eighth call ran")?;
    ended_at(seen, 8)?;
    ended_with(seen, "LOOP_DETECTED", "the same sequence of tool calls was repeated after two warnings")?;
    stays_ended(seen)?;
    Ok("warned at 4, warned harder at 6, LOOP_DETECTED at 8".to_owned())
}

fn doom_loop(seen: &Seen<'_>) -> Result<String, String> {
    let told = seen.record.session.iter().find_map(|asked| {
        let text = asked.text();
        let rest = text.split("[System] You've called ").nth(1)?;
        rest.split(' ').next().map(str::to_owned)
    });
    // The agent's hook may have a name of its own for the tool.
    let tool = told.unwrap_or_default();
    seen.expect_first(&format!("[System] You've called {tool} with the same arguments 3 times.\nThis indicates a stuck state. Either:\n1. Try a DIFFERENT approach or tool\n2. If blocked, explain what's preventing progress\n3. If the task is complete, say so explicitly"), 3)?;
    for count in [4, 5] {
        seen.expect_first(&format!("[System] WARNING: You've called {tool} {count} times with identical arguments.\nThis is a stuck state.\n1. Try a DIFFERENT approach or tool\n2. If blocked, explain the blocker"), count)?;
    }
    seen.expect_first(&format!("[System] CRITICAL: You've called {tool} with the same arguments 6 times.\nYou are in a doom loop. You MUST:\n1. STOP calling {tool} immediately\n2. Explain what you're stuck on\n3. Try a completely different approach\nFurther identical calls will be rejected."), 6)?;
    seen.expect(seen.place.ran("look") == 5, "a call from the sixth on was not rejected")?;
    seen.expect(requests_before(seen) == UNENDED + 1, "the run did not go on to its end")?;
    Ok(format!("told after 3, 4 and 5, {} of {UNENDED} calls rejected", UNENDED - 5))
}

fn turn_similarity(seen: &Seen<'_>) -> Result<String, String> {
    seen.expect(seen.first_with(LOOP_WARNING).is_none(), "the model read the warning for people")?;
    seen.expect(seen.ended.output.contains(LOOP_WARNING), "the person read no warning")?;
    let ran = |n: usize| seen.place.ran(&format!("price-{n}"));
    seen.expect(ran(5) == 1, "the session ended before the fifth similar turn")?;
    seen.expect(ran(6) == 0, "the call of the last turn ran")?;
    ended_at(seen, 6)?;
    ended_with(seen, "TERMINATED", LOOP_DETECTED)?;
    stays_ended(seen)?;
    Ok("warned at 3 similar turns, terminated at 5".to_owned())
}

fn turn_hash(seen: &Seen<'_>) -> Result<String, String> {
    seen.expect_first(LOOP_MSG, 2)?;
    let requests = requests_before(seen);
    seen.expect(
        requests == UNENDED + 1 && seen.place.ran("look") == UNENDED,
        "the run did not go on to its end",
    )?;
    let told = |request: usize| seen.record.session[request].text().matches(LOOP_MSG).count();
    let counts: Vec<usize> = (1..requests).map(told).collect();
    seen.expect(counts == [0, 1, 2, 3, 4, 5, 5, 5, 5], &format!("told {counts:?} times"))?;
    Ok("told after each duplicate, 5 times at most".to_owned())
}

/// The requests before a further prompt.
fn requests_before(seen: &Seen<'_>) -> usize {
    seen.later.as_ref().map_or(seen.requests(), |(_, before)| *before)
}

/// Whether it ended with the turn that asked for it. An agent that only a signal ends may ask again, in vain.
fn ended_at(seen: &Seen<'_>, turn: usize) -> Result<(), String> {
    let requests = requests_before(seen);
    let ended = if seen.by_signal { requests >= turn } else { requests == turn };
    seen.expect(ended, &format!("it did not end with turn {turn}"))
}

/// Whether a decision stopped the session with this status and these words.
fn ended_with(seen: &Seen<'_>, status: &str, words: &str) -> Result<(), String> {
    let log = Command::new(seen.place.deloop())
        .args(["log", "--json"])
        .current_dir(&seen.place.work)
        .env_clear()
        .env("HOME", &seen.place.home)
        .output()
        .map_err(|e| format!("deloop log: {e}"))?;
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    let decisions = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let Some(stop) = decisions.into_iter().find(|decision| decision["action"] == "stop") else {
        return Err("no decision stopped it".to_owned());
    };
    let said = stop["message"].as_str().unwrap_or_default().contains(words);
    seen.expect(stop["status"] == status && said, &format!("it ended with {stop}"))?;
    seen.expect(!stop["delivered"].is_null(), "the stop was not carried out")?;
    // A terminal may break the lines.
    let output = seen.ended.output.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = output.contains(words) || output.contains("stopped the run");
    seen.expect(shown, "nobody who watches learns why")
}

/// Whether a further prompt to the session gets no answer of the model.
fn stays_ended(seen: &Seen<'_>) -> Result<(), String> {
    // Not every agent can be continued without a person.
    let Some((later, before)) = &seen.later else { return Ok(()) };
    seen.expect(!later.timed_out, "a further prompt did not end")?;
    seen.expect(seen.requests() == *before, "a further prompt reached the model")
}
