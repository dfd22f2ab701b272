//! behavioral: similar calls in a row, measured against the first of the run.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::canonical::canonical;
use crate::step::{Call, Turn, Worker};
use crate::swarm::Swarms;
use crate::work::{Found, Work};
use crate::{Answer, Judge};

const REPLAN: &str =
    "You have repeated a similar action 3 times. Stop and produce a revised plan before continuing.";
const EXPLORE: &str = "You have repeated a similar action 5 times. The current approach is failing. Try a completely different tool or method.";
const FORCE_DONE: &str = "Loop limit reached (8 repetitions). Mark this task complete with partial results and explain what was not accomplished.";

/// The first action of the run, and the length of the run.
#[derive(Default)]
struct Run {
    first: Option<(String, String)>,
    length: u64,
}

/// The current run of every task, whoever works on it; without a task, of every worker.
#[derive(Default)]
pub(crate) struct Runs {
    of_task: HashMap<(String, String), Run>,
    of_worker: HashMap<Worker, Run>,
}

impl Runs {
    fn of(&mut self, turn: &Turn) -> &mut Run {
        match &turn.task {
            Some(task) => self.of_task.entry((turn.worker.session.clone(), task.clone())).or_default(),
            None => self.of_worker.entry(turn.worker.clone()).or_default(),
        }
    }

    /// Starts a task afresh that a call completes.
    fn complete(&mut self, turn: &Turn, call: &Call) {
        let over = matches!(call.args["status"].as_str(), Some("completed" | "done"));
        if !["TaskUpdate", "task_update"].contains(&call.tool.as_str()) || !over {
            return;
        }
        let named = ["id", "taskId"].iter().find_map(|key| call.args[*key].as_str());
        if let Some(task) = named.or(turn.task.as_deref()) {
            self.of_task.remove(&(turn.worker.session.clone(), task.to_owned()));
        }
    }

    /// Forgets a session.
    pub fn end(&mut self, ended: &str) {
        self.of_task.retain(|(session, _), _| session != ended);
        self.of_worker.retain(|worker, _| worker.session != ended);
    }
}

/// What a worker did, for the checks that are listed only.
#[derive(Default)]
pub(crate) struct Behavioral {
    work: Work,
}

impl Judge for Behavioral {
    fn turn(&mut self, turn: &Turn, shared: &mut Swarms) -> Answer {
        let mut answer = Answer::go_on();
        let found = self.work.turn(turn);
        // One finding for runs that begin with the same arguments: the longest.
        let mut repeats: Vec<(String, u64)> = Vec::new();
        for call in &turn.calls {
            let run = shared.runs.of(turn);
            let normalised = normalise(&call.args);
            let similar = run.first.as_ref().is_some_and(|(tool, args)| {
                *tool == call.tool && jaccard(&words(args), &words(&normalised)) >= 0.75
            });
            if similar {
                run.length += 1;
            } else {
                run.first = Some((call.tool.clone(), normalised));
                run.length = 1;
            }
            if let Some((_, args)) = run.first.as_ref().filter(|_| run.length >= 3) {
                match repeats.iter_mut().find(|(known, _)| known == args) {
                    Some((_, longest)) => *longest = run.length.max(*longest),
                    None => repeats.push((args.clone(), run.length)),
                }
            }
            answer = answer.or(match run.length {
                8.. => Answer::saying("stop", 3, FORCE_DONE),
                5.. => Answer::saying("nudge", 2, EXPLORE),
                3.. => Answer::saying("nudge", 1, REPLAN),
                _ => Answer::go_on(),
            });
            shared.runs.complete(turn, call);
        }
        answer.findings = repeats.into_iter().map(|(_, length)| ("similar-call", length)).collect();
        answer.findings.extend(listed(&found));
        answer
    }

    fn result(&mut self, result: &Value) -> Answer {
        let found = self.work.result(result);
        Answer { findings: listed(&found).collect(), ..Answer::go_on() }
    }
}

/// What was found besides the counter, in the order of the profile.
fn listed(found: &Found) -> impl Iterator<Item = (&'static str, u64)> {
    let all = [
        ("edits-without-progress", found.edits),
        ("test-edits-without-green", found.test_edits),
        ("plan-rewrite", found.plans),
        ("stalled-task", found.tasks),
    ];
    all.into_iter().filter_map(|(detector, count)| Some((detector, count?)))
}

fn jaccard(a: &HashSet<String>, b: &HashSet<String>) -> f64 {
    let union = a.union(b).count();
    if union == 0 {
        return 1.0;
    }
    a.intersection(b).count() as f64 / union as f64
}

fn words(normalised: &str) -> HashSet<String> {
    normalised
        .split(|c: char| c.is_whitespace() || "{}[]\",:".contains(c))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn normalise(args: &Value) -> String {
    canonical(&normalise_value(args)).chars().take(200).collect()
}

fn normalise_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(drop_numbers(&drop_stamps(&basenames(&text.to_lowercase())))),
        Value::Number(_) => Value::String(String::new()),
        Value::Array(items) => items.iter().map(normalise_value).collect(),
        Value::Object(object) => {
            let members = object.iter();
            let members = members.map(|(key, value)| (key.clone(), normalise_value(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        plain => plain.clone(),
    }
}

/// Every path token cut down to its last component.
fn basenames(text: &str) -> String {
    let mut out = String::new();
    let mut token = String::new();
    for c in text.chars() {
        if c.is_whitespace() || "\"'`".contains(c) {
            out.push_str(basename(&token));
            token.clear();
            out.push(c);
        } else {
            token.push(c);
        }
    }
    out.push_str(basename(&token));
    out
}

fn basename(token: &str) -> &str {
    let separators = ['/', '\\'];
    if token.contains("://") {
        return token;
    }
    let trimmed = token.trim_end_matches(separators);
    if trimmed.is_empty() {
        return token;
    }
    trimmed.rsplit(separators).next().unwrap_or(token)
}

/// Leaves out UUIDs, dates and times, wherever they stand.
fn drop_stamps(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let mut lengths = Vec::new();
        if at == 0 || !digit(at - 1) {
            lengths = timestamps(rest);
            lengths.retain(|length| !digit(at + length));
        }
        lengths.extend(shaped(rest, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"));
        match lengths.into_iter().max() {
            Some(length) => at += length,
            None => {
                out.push(chars[at]);
                at += 1;
            }
        }
    }
    out
}

/// Every length that a date, a time or both may have here.
fn timestamps(chars: &[char]) -> Vec<usize> {
    let mut lengths = Vec::new();
    if let Some(time) = shaped(chars, "00:00:00") {
        lengths.push(time + fraction(&chars[time..]));
    }
    if let Some(basic) = shaped(chars, "00000000t000000") {
        let end = basic + fraction(&chars[basic..]);
        lengths.push(end + zone(&chars[end..]));
    }
    if let Some(date) = shaped(chars, "0000-00-00") {
        lengths.push(date);
        for (shape, exact) in [("?00:00:00", true), ("?00-00-00", false), ("?00:00", false)] {
            let joins = chars.get(date).is_some_and(|c| "t _-".contains(*c));
            if let Some(time) = shaped(&chars[date..], shape).filter(|_| joins) {
                let mut end = date + time;
                if exact {
                    end += fraction(&chars[end..]);
                }
                lengths.push(end + zone(&chars[end..]));
                break;
            }
        }
    }
    lengths
}

fn fraction(chars: &[char]) -> usize {
    let digits = chars.iter().skip(1).take_while(|c| c.is_ascii_digit()).count();
    if chars.first() == Some(&'.') && digits > 0 { 1 + digits } else { 0 }
}

fn zone(chars: &[char]) -> usize {
    let zones = ["z", "+00:00", "-00:00", "+0000", "-0000"];
    zones.iter().find_map(|zone| shaped(chars, zone)).unwrap_or(0)
}

/// The length of a match of `shape`, in which `0` is a digit, `x` a hex digit, `?` anything, and the rest itself.
fn shaped(chars: &[char], shape: &str) -> Option<usize> {
    let fits = |(wanted, c): (char, &char)| match wanted {
        '0' => c.is_ascii_digit(),
        'x' => c.is_ascii_hexdigit(),
        '?' => true,
        other => *c == other,
    };
    let length = shape.chars().count();
    (chars.len() >= length && shape.chars().zip(chars).all(fits)).then_some(length)
}

/// Leaves out numbers between `/ ? = &`, white space and the ends.
fn drop_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut segment = String::new();
    for c in text.chars() {
        if c.is_whitespace() || "/?=&".contains(c) {
            out.push_str(unless_number(&segment));
            segment.clear();
            out.push(c);
        } else {
            segment.push(c);
        }
    }
    out.push_str(unless_number(&segment));
    out
}

fn unless_number(segment: &str) -> &str {
    let plain = segment.starts_with(|c: char| c.is_ascii_digit())
        && segment.ends_with(|c: char| c.is_ascii_digit())
        && segment.chars().all(|c| c.is_ascii_digit() || c == '.')
        && segment.matches('.').count() <= 1;
    if plain { "" } else { segment }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::normalise;

    #[test]
    fn normalises_in_the_order_given() {
        let args =
            json!({"b": "See /A/B/File.ts at 2026-01-02T03:04:05.6Z", "a": 17, "c": ["x/", "https://h/p"]});
        assert_eq!(normalise(&args), r#"{"a":"","b":"see file.ts at ","c":["x","https://h/p"]}"#);
    }

    #[test]
    fn drops_numbers_that_are_whole_segments_and_ids_anywhere() {
        let text = "v2 12 3.5 -7 a_1 (44) id_123E4567-e89b-12d3-a456-426614174000.";
        assert_eq!(normalise(&json!({ "t": text })), r#"{"t":"v2   -7 a_1 (44) id_."}"#);
        let text = "https://h/u/42?n=7&d=2026-01-02_03-04-05 a-2026-01-02.csv";
        assert_eq!(normalise(&json!({ "t": text })), r#"{"t":"https://h/u/?n=&d= a-.csv"}"#);
    }
}
