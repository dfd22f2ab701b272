//! behavioral: similar calls in a row, measured against the first of the run.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::canonical::canonical;
use crate::step::Turn;
use crate::swarm::Swarms;
use crate::work::{Found, Work};
use crate::{Answer, Judge};

const REPLAN: &str =
    "You have repeated a similar action 3 times. Stop and produce a revised plan before continuing.";
const EXPLORE: &str = "You have repeated a similar action 5 times. The current approach is failing. Try a completely different tool or method.";
const FORCE_DONE: &str = "Loop limit reached (8 repetitions). Mark this task complete with partial results and explain what was not accomplished.";

/// The first action of the run, and the length of the run.
#[derive(Default)]
pub(crate) struct Behavioral {
    first: Option<(String, String)>,
    length: u64,
    work: Work,
}

impl Judge for Behavioral {
    fn turn(&mut self, turn: &Turn, _: &mut Swarms) -> Answer {
        let mut answer = Answer::go_on();
        let found = self.work.turn(turn);
        // One finding for runs that begin with the same arguments: the longest.
        let mut repeats: Vec<(String, u64)> = Vec::new();
        for call in &turn.calls {
            let normalised = normalise(&call.args);
            let similar = self.first.as_ref().is_some_and(|(tool, args)| {
                *tool == call.tool && jaccard(&words(args), &words(&normalised)) >= 0.75
            });
            if similar {
                self.length += 1;
            } else {
                self.first = Some((call.tool.clone(), normalised));
                self.length = 1;
            }
            if let Some((_, args)) = self.first.as_ref().filter(|_| self.length >= 3) {
                match repeats.iter_mut().find(|(known, _)| known == args) {
                    Some((_, longest)) => *longest = self.length.max(*longest),
                    None => repeats.push((args.clone(), self.length)),
                }
            }
            answer = answer.or(match self.length {
                8.. => Answer::saying("stop", 3, FORCE_DONE),
                5.. => Answer::saying("nudge", 2, EXPLORE),
                3.. => Answer::saying("nudge", 1, REPLAN),
                _ => Answer::go_on(),
            });
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
        Value::String(text) => {
            let text = basenames(&text.to_lowercase());
            let text = drop_matches(&text, timestamp, |c| c.is_alphanumeric() || c == '_');
            let text = drop_matches(&text, uuid, char::is_alphanumeric);
            Value::String(drop_numbers(&text))
        }
        // A number that is a value is a number that stands alone, unless it has a sign or a point.
        Value::Number(number) if drop_numbers(&number.to_string()).is_empty() => Value::String(String::new()),
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

/// Leaves out what `matcher` finds, where no character that `joins` stands on either side.
fn drop_matches(text: &str, matcher: fn(&[char]) -> Option<usize>, joins: fn(char) -> bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        let free_before = at == 0 || !joins(chars[at - 1]);
        if let Some(length) = matcher(&chars[at..]).filter(|_| free_before)
            && chars.get(at + length).is_none_or(|next| !joins(*next))
        {
            at += length;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

fn drop_numbers(text: &str) -> String {
    drop_matches(text, digits, |c| c.is_alphanumeric() || "_.-/".contains(c))
}

fn digits(chars: &[char]) -> Option<usize> {
    let length = chars.iter().take_while(|c| c.is_ascii_digit()).count();
    (length > 0).then_some(length)
}

/// The length of a match of `shape`, in which `0` is a digit, `x` a hex digit, and the rest itself.
fn shaped(chars: &[char], shape: &str) -> Option<usize> {
    let fits = |(wanted, c): (char, &char)| match wanted {
        '0' => c.is_ascii_digit(),
        'x' => c.is_ascii_hexdigit(),
        other => *c == other,
    };
    let length = shape.chars().count();
    (chars.len() >= length && shape.chars().zip(chars).all(fits)).then_some(length)
}

fn uuid(chars: &[char]) -> Option<usize> {
    shaped(chars, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

/// A date, a date with a time (and a zone), or a time with seconds. Values are lower-case by now.
fn timestamp(chars: &[char]) -> Option<usize> {
    let Some(date) = shaped(chars, "0000-00-00") else {
        return shaped(chars, "00:00:00").map(|time| time + fraction(&chars[time..]));
    };
    let mut end = date;
    if chars.get(end).is_some_and(|c| "t ".contains(*c))
        && let Some(minutes) = shaped(&chars[end + 1..], "00:00")
    {
        end += 1 + minutes;
        if let Some(seconds) = shaped(&chars[end..], ":00") {
            end += seconds;
            end += fraction(&chars[end..]);
        }
        let zones = ["z", "+00:00", "-00:00", "+0000", "-0000"];
        let zone = zones.iter().find_map(|zone| shaped(&chars[end..], zone));
        end += zone.unwrap_or(0);
    }
    Some(end)
}

fn fraction(chars: &[char]) -> usize {
    match chars.split_first() {
        Some(('.', rest)) => digits(rest).map_or(0, |length| length + 1),
        _ => 0,
    }
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
    fn drops_only_what_stands_alone() {
        let text = "v2 12 3.5 -7 a_1 (44) id 123E4567-e89b-12d3-a456-426614174000.";
        assert_eq!(normalise(&json!({ "t": text })), r#"{"t":"v2  3.5 -7 a_1 () id ."}"#);
    }
}
