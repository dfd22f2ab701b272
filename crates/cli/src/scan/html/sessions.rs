//! Each session with a loop: what it cost, and a strip on which the loop is seen at a glance.

use deloop_engine::Engine;
use deloop_types::Outcome;
use maud::{Markup, html};

use super::prose;
use crate::scan::find::Input;
use crate::scan::numbers::{cost, count, minute, plural};
use crate::scan::prices::undated;
use crate::scan::report::{LoopRow, Report, SessionRow};
use crate::scan::story::{Ask, Cell, Kind, Story, story};
use crate::scan::table::id;
use crate::scan::veil::Veil;

/// So many sessions are told, the costliest first.
const SESSIONS: usize = 60;
/// So many cells of a strip are shown; a longer session is shown around its loops.
const CELLS: usize = 1200;
/// Steps told before and after a loop, at its beginning and at its end.
const AROUND: u32 = 4;
const FIRST: u32 = 60;
const LAST: u32 = 24;
/// Characters told of a text.
const ROOM: usize = 700;
/// How many colours there are.
const COLOURS: u32 = 8;

/// A session with its loops and steps.
pub(super) struct Told<'a> {
    pub(super) row: &'a SessionRow,
    pub(super) loops: Vec<&'a LoopRow>,
    pub(super) story: Story,
}

/// The sessions with loops, the costliest first, each read again for its steps.
pub(super) fn told<'a>(report: &'a Report, inputs: &[Input], engine: &Engine, veil: &Veil) -> Vec<Told<'a>> {
    let mut seen: Vec<(usize, &str)> = Vec::new();
    for one in &report.loops {
        if !seen.contains(&(one.input, one.session.as_str())) && seen.len() < SESSIONS {
            seen.push((one.input, one.session.as_str()));
        }
    }
    let of = |(input, session): (usize, &str)| {
        let row = report.sessions.iter().find(|s| s.input == input && s.session == session)?;
        let mut loops: Vec<&LoopRow> =
            report.loops.iter().filter(|l| l.input == input && l.session == session).collect();
        loops.sort_by_key(|l| l.step);
        let wanted = |step: u32| {
            loops.iter().any(|l| {
                (l.step.saturating_sub(AROUND)
                    ..=l.step.saturating_add(FIRST).min(l.last_step.saturating_add(AROUND)))
                    .contains(&step)
                    || (l.last_step.saturating_sub(LAST).max(l.step)..=l.last_step.saturating_add(AROUND))
                        .contains(&step)
            })
        };
        let ask = Ask { session, loops: &loops, wanted: &wanted, room: ROOM, veil };
        // What cannot be read a second time is shown without its steps.
        let story = story(&inputs[input], engine, &ask).unwrap_or_default();
        Some(Told { row, loops, story })
    };
    seen.into_iter().filter_map(of).collect()
}

/// All of them.
pub(super) fn section(told: &[Told<'_>], report: &Report) -> Markup {
    html! {
        section.sessions aria-label="Sessions with loops" {
            div.title {
                h2 { "Sessions with loops" }
                @if told.len() > 6 {
                    input #filter type="search" placeholder="Filter: a tool, a model, a project …" aria-label="Filter sessions";
                }
            }
            p.how {
                "Each square is one call. Squares of one colour do the same; "
                span.key.quiet {} " is done once, "
                span.key.failed {} " failed, "
                span.key.told {} " deloop would have stepped in. Click one for its steps."
            }
            @for (index, one) in told.iter().enumerate() {
                (card(index, one))
            }
            @if report.totals.sessions_with_loops as usize > told.len() {
                p.how { "The " (told.len()) " costliest of " (report.totals.sessions_with_loops) " sessions with loops." }
            }
        }
    }
}

fn card(index: usize, told: &Told<'_>) -> Markup {
    let row = told.row;
    let spend = told.loops.iter().fold(crate::scan::spend::Spend::default(), |mut sum, l| {
        sum.merge(&l.spend);
        sum
    });
    let turns: u64 = told.loops.iter().map(|l| u64::from(l.turns)).sum();
    let model = row.model.as_deref().map(undated);
    html! {
        article.session id=(format!("session-{index}")) {
            div.head {
                div.what {
                    @for one in &told.loops {
                        h3 {
                            (prose(&one.pattern))
                            @if let Some(agent) = &one.agent { " " span.agent { (agent) } }
                        }
                        p.place {
                            "from turn " (one.turn) " of " (one.of_turns)
                            @for decision in &one.decisions {
                                ", " span class=(format!("action {}", decision.action)) { (decision.action) } " at " (decision.turn)
                            }
                        }
                    }
                    p.meta {
                        span { (row.format) @if let Some(model) = model { " · " (model) } }
                        @if let Some(project) = &row.project { span { (project) } }
                        @if let Some(started) = &row.started { span { (minute(started)) } }
                        code title=(row.session) { (id(&row.session)) }
                    }
                }
                dl {
                    div { dt { "spent in it" } dd { (cost(&spend)) } }
                    div { dt { "turns" } dd { (turns) " of " (row.turns) } }
                    div { dt { "tokens" } dd { (count(spend.tokens())) } }
                }
            }
            (strip(index, told))
            div.steps hidden {}
        }
    }
}

/// The cells that are shown: all, or those around the loops.
fn shown(told: &Told<'_>) -> Vec<(usize, Cell)> {
    let cells: Vec<(usize, Cell)> = told.story.cells.iter().copied().enumerate().collect();
    if cells.len() <= CELLS {
        return cells;
    }
    let near = |step: u32| {
        told.loops
            .iter()
            .any(|l| (l.step.saturating_sub(120)..=l.last_step.saturating_add(120)).contains(&step))
    };
    cells.into_iter().filter(|(_, c)| near(c.step)).take(CELLS).collect()
}

fn strip(index: usize, told: &Told<'_>) -> Markup {
    let cells = shown(told);
    let hidden = told.story.cells.len() - cells.len();
    let inside = |step: u32| told.loops.iter().any(|l| (l.step..=l.last_step).contains(&step));
    let colours = Colours::new(told);
    let decided = |step: u32, next: Option<u32>| {
        let decisions = told.loops.iter().flat_map(|l| &l.decisions);
        decisions.filter(|d| d.step >= step && next.is_none_or(|n| d.step < n)).max_by_key(|d| d.action)
    };
    html! {
        div.strip data-session=(index) role="group" aria-label="The session's calls in order" {
            @for (at, (_, cell)) in cells.iter().enumerate() {
                @let next = cells.get(at + 1).map(|(_, c)| c.step).filter(|n| *n > cell.step);
                @let last_of_step = cells.get(at + 1).is_none_or(|(_, c)| c.step != cell.step);
                @let decision = decided(cell.step, next).filter(|_| last_of_step);
                button type="button" data-step=(cell.step) tabindex=(if at == 0 { "0" } else { "-1" })
                    class=(class(*cell, inside(cell.step), &colours, decision.is_some()))
                    title=(label(*cell, told, decision.map(|d| d.action.as_str()))) {}
            }
        }
        @if hidden > 0 {
            p.how { (plural(hidden as u64, "call")) " far from a loop left out." }
        }
        (legend(told, &colours))
    }
}

fn class(cell: Cell, inside: bool, colours: &Colours, told: bool) -> String {
    let mut class = String::new();
    if let Some(colour) = colours.of(cell.group) {
        class.push_str(&format!("g{colour} "));
    }
    for (is, name) in [
        (inside, "in "),
        (cell.outcome.is_some_and(Outcome::failed), "failed "),
        (cell.tool == u16::MAX, "talk "),
        (told, "told "),
    ] {
        if is {
            class.push_str(name);
        }
    }
    class.truncate(class.trim_end().len());
    class
}

fn label(cell: Cell, told: &Told<'_>, decided: Option<&str>) -> String {
    let tool = told.story.tools.get(usize::from(cell.tool)).map_or("a turn without a call", String::as_str);
    let failed = if cell.outcome.is_some_and(Outcome::failed) { ", failed" } else { "" };
    let decided = decided.map_or_else(String::new, |action| format!(", deloop: {action}"));
    format!("step {}: {tool}{failed}{decided}", cell.step)
}

/// The colours of a session's groups: the most frequent inside the loops get one.
struct Colours(Vec<(u32, u64)>);

impl Colours {
    fn new(told: &Told<'_>) -> Self {
        let inside = |step: u32| told.loops.iter().any(|l| (l.step..=l.last_step).contains(&step));
        let mut counts: std::collections::BTreeMap<u32, u64> = std::collections::BTreeMap::new();
        for cell in told.story.cells.iter().filter(|c| c.group > 0 && inside(c.step)) {
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

fn legend(told: &Told<'_>, colours: &Colours) -> Markup {
    let name = |group: u32| {
        let calls = told.story.scenes.iter().filter_map(|s| match &s.kind {
            Kind::Turn { calls, .. } => Some(calls),
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
