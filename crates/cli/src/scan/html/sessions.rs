//! Each session with a loop: what it cost, and a strip on which the loop is seen at a glance.

use deloop_engine::Engine;
use deloop_policy::undated;
use deloop_types::Outcome;
use maud::{Markup, html};

use super::prose;
use crate::redaction::Redaction;
use crate::replay::{
    CallCell, ReplayedFiles, Selection, SessionTranscript, StepKind, TranscriptSize, transcript,
};
use crate::scan::numbers::{cost, count, duration, minute, plural};
use crate::scan::report::{LoopRow, ScanReport, SessionRow};
use crate::scan::table::{id, place};
use crate::sessions::SessionInput;

/// How many sessions are shown, the costliest first.
const SESSIONS: usize = 60;
/// How many cells of a strip are shown; a longer session is shown around its loops.
const CELLS: usize = 1200;
/// A page with more steps of one session would be slow to open.
const SIZE: TranscriptSize = TranscriptSize { steps: 2000, room: 700 };
/// How many colours there are.
const COLOURS: u32 = 8;

/// A session with its loops and steps.
pub(super) struct SessionCard<'a> {
    row: &'a SessionRow,
    loops: Vec<&'a LoopRow>,
    selection: Selection,
    pub(super) transcript: SessionTranscript,
}

/// Returns the sessions with loops, the costliest first, each read again for its steps.
pub(super) fn cards<'a>(
    report: &'a ScanReport,
    read: &ReplayedFiles,
    inputs: &[SessionInput],
    engine: &Engine,
    redaction: &Redaction,
) -> Vec<SessionCard<'a>> {
    let mut places = Vec::new();
    for one in &report.loops {
        if !places.contains(&one.place.0) && places.len() < SESSIONS {
            places.push(one.place.0);
        }
    }
    let card = |place| {
        let row = report.sessions.iter().find(|s| s.place == place)?;
        let mut loops: Vec<&LoopRow> = report.loops.iter().filter(|l| l.place.0 == place).collect();
        loops.sort_by_key(|l| l.step);
        let file = &read.files[place.file];
        let replay = &file.sessions[place.session];
        let found = &replay.verdicts.first()?.loops;
        let shown = loops.iter().map(|l| &found[l.place.1]);
        let selection = Selection::new(shown, row.actions.iter().map(|a| (a.step, a.turn)), false);
        let input = &inputs[file.input];
        // What cannot be read a second time is shown without its steps.
        let transcript =
            transcript(input, &replay.session, engine, &selection, redaction, SIZE).unwrap_or_default();
        Some(SessionCard { row, loops, selection, transcript })
    };
    places.into_iter().filter_map(card).collect()
}

/// Renders all of them.
pub(super) fn section(cards: &[SessionCard<'_>], report: &ScanReport) -> Markup {
    html! {
        section.sessions aria-label="Sessions with loops" {
            div.title {
                h2 { "Sessions with loops" }
                @if cards.len() > 6 {
                    input #filter type="search" placeholder="Filter: a tool, a model, a project …" aria-label="Filter sessions";
                }
            }
            p.how {
                "Each square is one call; squares of one colour are the same call. "
                span.key.quiet {} " made once, "
                span.key.failed {} " failed, "
                span.key.acted {} " deloop would have stepped in. Click a square to see the steps."
            }
            @for (index, one) in cards.iter().enumerate() {
                (article(index, one))
            }
            @if report.totals.sessions_with_loops as usize > cards.len() {
                p.how { "The " (cards.len()) " costliest of " (report.totals.sessions_with_loops) " sessions with loops." }
            }
        }
    }
}

fn article(index: usize, card: &SessionCard<'_>) -> Markup {
    let row = card.row;
    let model = row.model.as_deref().map(undated);
    html! {
        article.session id=(format!("session-{index}")) {
            div.head {
                div.what {
                    @for one in &card.loops {
                        h3 {
                            (prose(&one.pattern))
                            @if let Some(agent) = &one.agent { " " span.agent { (agent) } }
                        }
                        p.place { (place(one)) }
                    }
                    p.meta {
                        span { (row.format) @if let Some(model) = model { " · " (model) } }
                        @if let Some(project) = &row.project { span { (project) } }
                        @if let Some(started) = &row.started { span { (minute(started)) } }
                        code title=(row.session) { (id(&row.session)) }
                    }
                }
                dl {
                    div { dt { "cost of repeats" } dd { (cost(&row.loop_spend)) } }
                    div { dt { "turns repeated" } dd { (row.repeated_turns) " of " (row.turns) } }
                    div { dt { "tokens" } dd { (count(row.loop_spend.tokens())) } }
                    div { dt { "time" } dd { (duration(row.minutes)) } }
                }
            }
            (strip(index, card))
            div.steps hidden {}
        }
    }
}

/// Returns the cells that are shown: all, or those around the loops.
fn shown(card: &SessionCard<'_>) -> Vec<CallCell> {
    let cells = &card.transcript.cells;
    if cells.len() <= CELLS {
        return cells.clone();
    }
    let near = |step: u32| {
        card.loops
            .iter()
            .any(|l| (l.step.saturating_sub(120)..=l.last_step.saturating_add(120)).contains(&step))
    };
    cells.iter().filter(|c| near(c.step)).take(CELLS).copied().collect()
}

fn strip(index: usize, card: &SessionCard<'_>) -> Markup {
    let cells = shown(card);
    let hidden = card.transcript.cells.len() - cells.len();
    let colours = Colours::new(card);
    let acted = |step: u32, next: Option<u32>| {
        let actions = card.row.actions.iter();
        actions.filter(|a| a.step >= step && next.is_none_or(|n| a.step < n)).max_by_key(|a| a.action)
    };
    html! {
        div.strip data-session=(index) role="group" aria-label="The session's calls in order" {
            @for (at, cell) in cells.iter().enumerate() {
                @let next = cells.get(at + 1).map(|c| c.step).filter(|n| *n > cell.step);
                @let last_of_step = cells.get(at + 1).is_none_or(|c| c.step != cell.step);
                @let action = acted(cell.step, next).filter(|_| last_of_step);
                button type="button" data-step=(cell.step) tabindex=(if at == 0 { "0" } else { "-1" })
                    class=(class(*cell, card.selection.is_inside(cell.step), &colours, action.is_some()))
                    title=(label(*cell, card, action.map(|a| a.action.as_str()))) {}
            }
        }
        @if hidden > 0 {
            p.how { (plural(hidden as u64, "call")) " far from a loop not shown." }
        }
        (legend(card, &colours))
    }
}

fn class(cell: CallCell, inside: bool, colours: &Colours, acted: bool) -> String {
    let mut class = String::new();
    if let Some(colour) = colours.of(cell.group) {
        class.push_str(&format!("g{colour} "));
    }
    for (is, name) in [
        (inside, "in "),
        (cell.outcome.is_some_and(Outcome::failed), "failed "),
        (cell.tool == u16::MAX, "talk "),
        (acted, "acted "),
    ] {
        if is {
            class.push_str(name);
        }
    }
    class.truncate(class.trim_end().len());
    class
}

fn label(cell: CallCell, card: &SessionCard<'_>, action: Option<&str>) -> String {
    let tool =
        card.transcript.tools.get(usize::from(cell.tool)).map_or("a turn without a call", String::as_str);
    let failed = if cell.outcome.is_some_and(Outcome::failed) { ", failed" } else { "" };
    let action = action.map_or_else(String::new, |action| format!(", deloop: {action}"));
    format!("turn {}: {tool}{failed}{action}", cell.turn)
}

/// The colours of a session's groups: the most frequent inside the loops get one.
struct Colours(Vec<(u32, u64)>);

impl Colours {
    fn new(card: &SessionCard<'_>) -> Self {
        let mut counts: std::collections::BTreeMap<u32, u64> = std::collections::BTreeMap::new();
        for cell in card.transcript.cells.iter().filter(|c| c.group > 0 && card.selection.is_inside(c.step)) {
            *counts.entry(cell.group).or_default() += 1;
        }
        let mut order: Vec<(u32, u64)> = counts.into_iter().collect();
        order.sort_by_key(|(group, count)| (std::cmp::Reverse(*count), *group));
        order.truncate(COLOURS as usize);
        Self(order)
    }

    fn of(&self, group: u32) -> Option<usize> {
        if group == 0 {
            return None;
        }
        // Groups that are only repeated outside of loops share the colours that are left.
        let known = self.0.iter().position(|(g, _)| *g == group);
        Some(known.unwrap_or_else(|| {
            let free = COLOURS as usize - self.0.len();
            if free == 0 { COLOURS as usize } else { self.0.len() + group as usize % free }
        }))
    }
}

fn legend(card: &SessionCard<'_>, colours: &Colours) -> Markup {
    let name = |group: u32| {
        let calls = card.transcript.steps().filter_map(|s| match &s.kind {
            StepKind::Turn { calls, .. } => Some(calls),
            _ => None,
        });
        let call = calls.flatten().find(|c| c.group == group);
        call.map(|c| {
            let args = c.args.split_whitespace().collect::<Vec<_>>().join(" ");
            let short: String = args.chars().take(60).collect();
            let cut = if short.len() < args.len() { "…" } else { "" };
            if args.is_empty() { c.tool.clone() } else { format!("{} {short}{cut}", c.tool) }
        })
    };
    let names: Vec<(usize, String, u64)> = colours
        .0
        .iter()
        .enumerate()
        .take(4)
        .filter_map(|(colour, (group, times))| Some((colour, name(*group)?, *times)))
        .collect();
    html! {
        @if !names.is_empty() {
            ul.legend {
                @for (colour, name, times) in &names {
                    li { span class=(format!("key g{colour} in")) {} code { (name) } span.times { "×" (times) } }
                }
            }
        }
    }
}
