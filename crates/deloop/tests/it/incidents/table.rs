use std::collections::BTreeMap;
use std::fmt::Write;

use super::measure::{Intervention, MeasuredIncident};
use super::report::{LossUnit, ReportedLoss};

const INTRODUCTION: &str = "\
# Incidents

How early would deloop have ended the runaways that people report? This page replays public reports, rebuilt as
[Steps](steps.md) in [corpus/incidents](../corpus/incidents/README.md), against the profile `default` as in an unattended
run: deloop may message the agent, block a call and end the run.

*Person* is the step after which someone who watches would have stepped in. *Message* and *block* are the first steps at
which deloop did so, each with the share of the reported loss up to then. *End* is the step at which deloop ended the run,
and the detector that led to it. *Loss* is the share of the loss that had happened by the end. With several sessions it is
the share that deloop didn't prevent, since each session is ended on its own.

The recorded agents don't listen: a stream continues after a message or a block as it was reported. Real agents that are
told often change course, so these figures are an upper limit. They say nothing about false alarms, which
[evaluation.md](evaluation.md) measures.

The loss is what the report says was lost. Each stream adds up to it, within 3 %, so its shares are shares of the reported
loss: a report of 6,239 turns has 6,239 turns here. Where a stream has fewer steps than the report, each has the tokens of
those that it stands for, and its file says so.

Hangs can't be seen in a stream of steps. They are ended by `deloop run` at its stall limit, which is shorter while a call
runs, and *loss* is that limit as a share of the reported hours.

## What ends late or never, and why

- **Short losses.** Two nudges and a stop take five calls at the least, and mostly eight. That is more than 10 % of a loss of
  50 calls or of ten rounds: goose-truncated-write-24, moltis-empty-exec-25, openclaw-identical-edit, prime-agent-52-diagnostics,
  hermes-skill-file-47, hermes-compressed-every-turn, hermes-44-children, kilo-same-file-8-million, open-design-wrong-class,
  firstmate-court-twice, langgraph-two-agents-47k, opencode-20-levels, claude-code-24-agents, claude-code-48-research-agents,
  claude-code-orphaned-children, claude-code-skill-spawns, claude-code-binary-after-compaction, codex-spark-rereads,
  codex-34-compactions, codex-avatar-compactions and claude-code-compact-agents. Most of these end later.
- **Good work first.** In hermes-novel-5-9-million and kimi-reads-instead-of-edits, the reported loss includes work from before
  the loop.
- **New every time.** Edits that differ while a test fails as before (cursor-stuck-test-3-hours, devin-same-test-3-hours), a log
  that grows (claude-code-zombie-agents), a login with a new state (openclaw-oauth-236-turns) and errors in other words with a
  success now and then (qwen-138-rounds-of-errors) look like honest work for so long that
  healthy sessions would be stopped, too.
- **Talk.** Two agents that answer each other in many different sentences (five-agents-variable-name,
  hermes-telegram-132-messages) repeat themselves word for word too late.
- **Waiting.** Only a limit in dollars ends what waits for something outside, and honest waits cost up to $3. codex-wait-712 waits
  for processes that are declared running, between edits, openclaw-rate-limit-219-turns for a limit of requests to pass, and
  claude-code-empty-output-hour reports no cost.
- **Nobody can know.** In hermes-mcp-90-retries, a tool of another server isn't connected. Nothing shows whether that will change, so the
  agent is only messaged.
- **Sessions that each fail once.** antfarm-failing-crons, claude-code-124-limit-messages, ralph-docker-66-empty-branches and
  hermes-memory-94-failures are loops of the program that starts the sessions. deloop remembers failures that a session met
  twice.
- **Hangs.** claude-code-subagent-curl-hang and codex-spawn-hang-5-hours lasted less than ten times the stall limit.

This page is written by `UPDATE_SCHEMAS=1 cargo test -p deloop --test it incidents` and checked by the same test.
";

/// Renders the page on incidents.
pub(super) fn page(measured: &[MeasuredIncident]) -> String {
    let mut page = format!("{INTRODUCTION}\n## Summary\n\n");
    let early = measured.iter().filter(|one| one.is_ended_early()).count();
    let ended = measured.iter().filter(|one| one.is_ended()).count();
    let _ = writeln!(
        page,
        "Of {} incidents, deloop ends {ended}, {early} of them before 10 % of the loss.\n",
        measured.len()
    );
    page.push_str(
        "| kind | incidents | ended before 10 % | ended later | not ended |\n|---|---|---|---|---|\n",
    );
    let mut kinds: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for one in measured {
        let counts = kinds.entry(&one.report.kind).or_default();
        counts[0] += 1;
        counts[if one.is_ended_early() {
            1
        } else if one.is_ended() {
            2
        } else {
            3
        }] += 1;
    }
    for (kind, [all, early, late, never]) in kinds {
        let _ = writeln!(page, "| {kind} | {all} | {early} | {late} | {never} |");
    }
    page.push_str("\n## Each incident\n\n");
    page.push_str("| incident | kind | reported loss | steps | person | message | block | end | loss |\n");
    page.push_str("|---|---|---|---|---|---|---|---|---|\n");
    for one in measured {
        page.push_str(&row(one));
    }
    page
}

fn row(one: &MeasuredIncident) -> String {
    let report = &one.report;
    let step = |found: Option<Intervention>| found.map_or("-".to_owned(), at);
    let end = match (report.is_stall(), one.is_ended()) {
        (true, true) => "stall limit".to_owned(),
        (true, false) => "-".to_owned(),
        (false, _) => {
            let by = one.stopped_by.as_deref().map_or(String::new(), |by| format!(", {by}"));
            one.stop.map_or("-".to_owned(), |stop| thousands(stop.step)) + &by
        }
    };
    let loss = if one.is_ended() { percent(one.spent) } else { "not ended".to_owned() };
    format!(
        "| [{}](../corpus/incidents/{}.toml) | {} | {} | {} | {} | {} | {} | {end} | {loss} |\n",
        report.slug,
        report.slug,
        report.kind,
        amount(&report.loss),
        thousands(one.steps),
        at(one.person),
        step(one.message),
        step(one.block),
    )
}

fn at(found: Intervention) -> String {
    format!("{} ({})", thousands(found.step), percent(found.share))
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        less if less < 0.1 => "under 0.1 %".to_owned(),
        less if less < 10.0 => format!("{less:.1} %"),
        more => format!("{more:.0} %"),
    }
}

fn amount(loss: &ReportedLoss) -> String {
    let unit = loss.unit.word();
    match loss.unit {
        LossUnit::Dollars => format!("${}", decimal(loss.amount)),
        LossUnit::Hours if loss.amount < 1.0 => format!("{:.0} minutes", loss.amount * 60.0),
        LossUnit::Hours if loss.amount <= 1.0 => "1 hour".to_owned(),
        _ => format!("{} {unit}", decimal(loss.amount)),
    }
}

fn decimal(amount: f64) -> String {
    if amount.fract() > 0.0 {
        return format!("{amount:.2}");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole, positive number")]
    let whole = amount as usize;
    thousands(whole)
}

fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
