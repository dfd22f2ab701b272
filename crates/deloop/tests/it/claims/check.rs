//! What a finding claims, and whether the steps say so.

use std::collections::{BTreeSet, HashMap};

use deloop_types::{Action, CameBack, Decision, Finding, Outcome, Repeats, ShortCall};
use serde_json::Value;

use super::record::{Agent, Made, Now, Seen};

type Checked = Result<(), String>;

/// A history forgets: of what lies further back than this, there may be more than a finding counts.
const REMEMBERED: usize = 36;

pub(super) fn check(finding: &Finding, now: &Now, seen: &Seen) -> Checked {
    let agent = seen.agent(now);
    if let Some(shown) = finding.calls.last() {
        occurred(shown, agent)?;
    }
    begins(finding, agent)?;
    let count = finding.count - u64::from(finding.evidence.pending);
    if !finding.summary.contains(&count.to_string()) {
        return Err(format!("the summary doesn't say {count}"));
    }
    unchanged(finding, now, agent)?;
    let since = || agent.calls.iter().filter(|c| c.step >= finding.since);
    let answered = || since().filter(|c| c.result.is_some());
    match finding.repeats {
        Repeats::Call => same_call(finding, count, now, agent),
        Repeats::Variants | Repeats::Failure => {
            let tool = finding.tool.as_deref().unwrap_or_default();
            let any = finding.repeats == Repeats::Failure;
            let calls: Vec<&Made> = answered()
                .filter(|c| (any || named(&c.call.tool, tool)) && fits(c, finding.outcome))
                .collect();
            let found = if finding.detector == "failing-run" { calls.len() as u64 } else { turns(&calls) };
            at_least(count, found)?;
            same_way(finding, &calls)?;
            let different: BTreeSet<&str> = calls.iter().map(|c| c.args.as_str()).collect();
            if finding.repeats == Repeats::Variants && different.len() < 2 {
                return Err("the calls don't vary".to_owned());
            }
            if finding.detector == "failing-run" {
                let other = answered().find(|c| c.declared() == Some(Outcome::Ok) && says_something(c));
                return other.map_or(Ok(()), |c| Err(format!("not in a row: {} succeeded", c.call.tool)));
            }
            Ok(())
        }
        Repeats::Everything => {
            let calls: Vec<&Made> = answered().collect();
            at_least(count, calls.iter().filter(|c| nothing_new(c, agent)).count() as u64)
        }
        Repeats::Search => {
            let calls: Vec<&Made> = answered().filter(|c| fits(c, Some(CameBack::Nothing))).collect();
            at_least(count, turns(&calls))
        }
        Repeats::Edit => {
            let calls: Vec<&Made> = answered().filter(|c| c.declared() != Some(Outcome::Error)).collect();
            at_least(count, turns(&calls))
        }
        Repeats::Talk => talk(count, agent),
        Repeats::Note => {
            let words = |made: &Made| made.args.replace(|c: char| c.is_ascii_digit(), "");
            let known = |made: &&Made| {
                agent
                    .calls
                    .iter()
                    .any(|c| !std::ptr::eq(c, *made) && c.step <= made.step && words(c) == words(made))
            };
            at_least(count, since().filter(known).count() as u64)
        }
        Repeats::Message => chant(count, agent),
        Repeats::Compaction => {
            let calls: Vec<&Made> = answered().collect();
            let old = calls.iter().filter(|c| nothing_new(c, agent)).count();
            if 2 * old >= calls.len() {
                Ok(())
            } else {
                Err(format!("{old} of {} calls are old", calls.len()))
            }
        }
        Repeats::Request => at_least(count, agent.turns.iter().filter(|(_, calls)| !calls).count() as u64),
        // The looks may be older than what is recorded here, and so may what they cost.
        Repeats::Swarm | Repeats::Budget | Repeats::Wait => Ok(()),
        Repeats::EmptyTurn => at_least(count, agent.turns.iter().filter(|(_, calls)| !calls).count() as u64),
        other => Err(format!("`default` doesn't look for {other:?}")),
    }
}

/// What the agent is told has the count of a finding, and no more about changes than the findings say.
pub(super) fn message(decision: &Decision) -> Checked {
    let told =
        decision.message.as_deref().filter(|_| matches!(decision.action, Action::Nudge | Action::Block));
    let Some(told) = told else { return Ok(()) };
    let counted = |f: &Finding| told.contains(&(f.count - u64::from(f.evidence.pending)).to_string());
    if !decision.findings.iter().any(counted) {
        return Err("the message has the count of no finding".to_owned());
    }
    let unchanged = told.contains("without changing anything");
    if unchanged && !decision.findings.iter().any(|f| f.changed == Some(false)) {
        return Err("the message says that nothing was changed, and no finding does".to_owned());
    }
    if told.starts_with("[deloop] ") && told.len() <= 1000 {
        Ok(())
    } else {
        Err(format!("{} bytes", told.len()))
    }
}

/// The same call: it was made in so many turns since, and came back as the finding says.
fn same_call(finding: &Finding, count: u64, now: &Now, agent: &Agent) -> Checked {
    let shown = finding.calls.last().ok_or("no call is shown")?;
    let bare = format!("`{}`", shown.tool);
    if shown.about.is_empty() && (finding.summary.starts_with(&bare)) {
        let said = now.about.iter().any(|n| !scalars(&agent.calls[*n].call.args).concat().is_empty());
        if said {
            return Err(format!("{bare} was called for other things as well"));
        }
    }
    let about: Vec<&Made> = now.about.iter().map(|n| &agent.calls[*n]).collect();
    let this = about.iter().find(|c| shows(shown, c)).ok_or("the call shown is not the one in question")?;
    let calls: Vec<&Made> =
        agent.calls.iter().filter(|c| c.step >= finding.since && c.is_same_call(this)).collect();
    if finding.outcome == Some(CameBack::Unseen) {
        let known = calls.iter().any(|c| c.result.as_ref().is_some_and(|r| !r.output.is_null()));
        return if known { Err("a result was seen".to_owned()) } else { at_least(count, turns(&calls)) };
    }
    let answered: Vec<&Made> = calls.into_iter().filter(|c| c.result.is_some()).collect();
    let matching: Vec<&Made> = answered.iter().filter(|c| fits(c, finding.outcome)).copied().collect();
    at_least(count, turns(&matching))?;
    same_way(finding, &matching)?;
    let remembered = agent.calls.iter().filter(|c| c.step >= finding.since).count() <= REMEMBERED;
    if finding.changed == Some(false) && remembered && turns(&matching) > count {
        return Err(format!("it was {} times", turns(&matching)));
    }
    if finding.outcome == Some(CameBack::SameOutput) {
        let mut outputs: Vec<String> =
            matching.iter().filter_map(|c| c.result.as_ref()).map(|r| without_numbers(&r.text())).collect();
        // A change in between ends the row: only the last ones are claimed to be the same.
        outputs.drain(..outputs.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX)));
        outputs.dedup();
        if outputs.len() > 1 {
            return Err(format!(
                "the outputs differ: {:?}",
                outputs.iter().map(|o| short(o)).collect::<Vec<_>>()
            ));
        }
    }
    Ok(())
}

/// The step at which it is said to begin has such a call.
fn begins(finding: &Finding, agent: &Agent) -> Checked {
    let Some(tool) = finding.tool.as_deref().filter(|_| finding.repeats != Repeats::Swarm) else {
        return Ok(());
    };
    let any = matches!(finding.repeats, Repeats::Failure | Repeats::Everything);
    let first = agent.calls.iter().any(|c| c.step == finding.since && (any || named(&c.call.tool, tool)));
    if first { Ok(()) } else { Err(format!("nothing of the kind is at step {}", finding.since)) }
}

/// Failures that are said to be the same have most of their words in common with the last one, or a line.
fn same_way(finding: &Finding, calls: &[&Made]) -> Checked {
    if finding.outcome != Some(CameBack::SameFailure) {
        return Ok(());
    }
    let texts: Vec<String> =
        calls.iter().filter_map(|c| c.result.as_ref()).map(super::record::Answer::text).collect();
    let Some(last) = texts.last() else { return Ok(()) };
    let lines =
        |text: &str| text.lines().map(without_names).filter(|l| !l.is_empty()).collect::<BTreeSet<String>>();
    let known = lines(last);
    let alike =
        texts.iter().filter(|t| t.trim().is_empty() || lines(t).intersection(&known).next().is_some());
    at_least(finding.count - u64::from(finding.evidence.pending), alike.count() as u64)
}

/// Nothing that edits or writes a file succeeded meanwhile, apart from the call that the finding is about.
fn unchanged(finding: &Finding, now: &Now, agent: &Agent) -> Checked {
    if finding.changed != Some(false) {
        return Ok(());
    }
    let repeated = |made: &Made| now.about.iter().any(|n| agent.calls[*n].is_same_call(made));
    let meanwhile = |made: &&Made| {
        let result = made.result.as_ref().filter(|r| r.outcome == Some(Outcome::Ok));
        made.step > finding.since && result.is_some_and(|r| r.step <= now.step)
    };
    let mut written =
        agent.calls.iter().filter(|c| writes(&c.call.tool) || shell_writes(c)).filter(meanwhile);
    let other = written.find(|c| !repeated(c));
    other.map_or(Ok(()), |c| Err(format!("{} changed {} in between", c.call.tool, short(&c.args))))
}

/// Tools that write files, in the agents whose sessions are read here.
fn writes(tool: &str) -> bool {
    let name = tool.to_lowercase().replace(['_', '-'], "");
    let names = [
        "edit",
        "multiedit",
        "write",
        "notebookedit",
        "applypatch",
        "strreplace",
        "strreplaceeditor",
        "createfile",
        "writefile",
        "writetofile",
        "replace",
        "replaceinfile",
        "editfile",
        "insertedit",
        "create",
        "insert",
    ];
    names.contains(&name.as_str())
}

/// Whether a shell command does nothing but write a file.
fn shell_writes(made: &Made) -> bool {
    let command =
        ["command", "cmd"].iter().find_map(|key| made.call.args.get(key)?.as_str()).unwrap_or_default();
    ["sed -i ", "cat > ", "cat >> ", "tee ", "npm install ", "pip install ", "git commit ", "mv ", "rm "]
        .iter()
        .any(|start| command.starts_with(start))
}

/// Whether a call came back like this, as far as the agent says.
fn fits(made: &Made, outcome: Option<CameBack>) -> bool {
    let Some(result) = &made.result else { return false };
    match (outcome, result.outcome) {
        (Some(CameBack::Refused), declared) => matches!(declared, None | Some(Outcome::Denied)),
        (Some(CameBack::TimedOut), declared) => matches!(declared, None | Some(Outcome::Timeout)),
        (Some(CameBack::SameFailure | CameBack::SimilarFailure | CameBack::Failures), _) => {
            made.may_have_failed()
        }
        (Some(CameBack::SameOutput), declared) => matches!(declared, None | Some(Outcome::Ok)),
        // `grep` fails when it finds nothing.
        (Some(CameBack::Nothing), _) => result.text().len() < 600,
        (Some(CameBack::Unseen) | None, _) => true,
        (other, _) => panic!("an outcome that this check does not know: {other:?}"),
    }
}

/// Whether a call failed, was made before, or brought what another had brought.
fn nothing_new(made: &Made, agent: &Agent) -> bool {
    let Some(result) = &made.result else { return false };
    let output = without_numbers(&result.text());
    let earlier = agent.calls.iter().take_while(|c| c.step < made.step);
    made.may_have_failed()
        || earlier.filter(|c| c.result.is_some()).any(|c| {
            c.is_same_call(made)
                || c.call.tool == made.call.tool
                    && c.result.as_ref().is_some_and(|r| without_numbers(&r.text()) == output)
        })
}

fn says_something(made: &Made) -> bool {
    made.result.as_ref().is_some_and(|r| !r.output.is_null())
}

/// The last so many replies came without a call, and each says much of what another of them says.
fn talk(count: u64, agent: &Agent) -> Checked {
    let count = usize::try_from(count).map_err(|e| e.to_string())?;
    let said: Vec<&(String, bool)> =
        agent.turns.iter().rev().filter(|t| t.1 || !t.0.trim().is_empty()).collect();
    let last = said.get(..count).ok_or("there were not so many replies")?;
    if last.iter().any(|(_, calls)| *calls) {
        return Err("one of the replies has a call".to_owned());
    }
    let words: Vec<BTreeSet<&str>> = last.iter().map(|(text, _)| text.split_whitespace().collect()).collect();
    let alike = |a: &BTreeSet<&str>, b: &BTreeSet<&str>| {
        let both = a.intersection(b).count();
        5 * both >= a.union(b).count()
    };
    let alone = words
        .iter()
        .enumerate()
        .find(|(n, one)| !words.iter().enumerate().any(|(m, other)| m != *n && alike(one, other)));
    alone.map_or(Ok(()), |(n, _)| Err(format!("a reply says something of its own: {}", short(&last[n].0))))
}

/// Some words of the message come so often, or so many of its sentences do.
fn chant(count: u64, agent: &Agent) -> Checked {
    let text = match agent.streams.is_empty() {
        false => &agent.streams,
        true => &agent.turns.last().ok_or("there is no message")?.0,
    };
    let words: Vec<String> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect();
    let mut tally: HashMap<&[String], u64> = HashMap::new();
    words.windows(3).for_each(|three| *tally.entry(three).or_default() += 1);
    let phrase = tally.values().copied().max().unwrap_or(0);
    let mut sentences: HashMap<String, u64> = HashMap::new();
    for sentence in text.split_inclusive(['.', '!', '?', '\n']) {
        *sentences.entry(without_numbers(sentence)).or_default() += 1;
    }
    let again: u64 = sentences.values().map(|n| n - 1).sum();
    at_least(count, phrase.max(again))
}

/// The call shown is one that was made.
fn occurred(shown: &ShortCall, agent: &Agent) -> Checked {
    let any = agent.calls.iter().rev().any(|c| shows(shown, c));
    if any { Ok(()) } else { Err(format!("{shown} was never called")) }
}

/// Whether `shown` is this call, shortened: the beginning of one of its arguments, or of all of them.
fn shows(shown: &ShortCall, made: &Made) -> bool {
    let about = shown.about.trim_end_matches('…');
    named(&made.call.tool, &shown.tool)
        && (about.is_empty()
            || one_line(&made.args).starts_with(about)
            || scalars(&made.call.args).iter().any(|text| one_line(text).starts_with(about)))
}

fn named(tool: &str, shown: &str) -> bool {
    one_line(tool).starts_with(shown.trim_end_matches('…'))
}

fn scalars(args: &Value) -> Vec<String> {
    match args {
        Value::Object(map) => map.values().flat_map(scalars).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Null | Value::Array(_) => Vec::new(),
        other => vec![other.to_string()],
    }
}

fn one_line(text: &str) -> String {
    // Back-ticks are left out of what stands between back-ticks.
    let visible = |c: char| !matches!(c, '`' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let text: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).filter(|c| visible(*c)).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text without the words that have a number in them: times, ids, addresses, temporary names.
fn without_numbers(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '-' | '_' | ':' | '/'));
    let words = words.filter(|w| !w.is_empty() && !w.contains(|c: char| c.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

/// A line without numbers, quoted names and paths.
fn without_names(line: &str) -> String {
    let mut quoted = false;
    let mut out = String::new();
    for c in line.chars() {
        match c {
            '"' | '\'' | '`' => quoted = !quoted,
            _ if !quoted => out.push(c),
            _ => {}
        }
    }
    without_numbers(&out).split(' ').filter(|w| !w.contains(['/', '.'])).collect::<Vec<_>>().join(" ")
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

fn turns(calls: &[&Made]) -> u64 {
    calls.iter().map(|c| c.turn).collect::<BTreeSet<_>>().len() as u64
}

fn at_least(claimed: u64, found: u64) -> Checked {
    if found >= claimed { Ok(()) } else { Err(format!("{claimed} are claimed, {found} are there")) }
}
