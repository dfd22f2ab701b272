//! The loops as a table for people.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, Width, presets,
};
use deloop_policy::undated;
use deloop_types::Action;

use crate::exit::Failure;
use crate::scan::numbers::{bytes, cost, count, dollars, duration, minute, plural};
use crate::scan::report::{ActionRow, LoopRow, ScanReport};

/// How many loops are shown by default.
const ROWS: usize = 20;
/// A narrower terminal gets a list instead of a table.
const NARROW: u16 = 84;
/// How wide a table in a pipe is.
const PIPE: u16 = 132;
/// A wider table is harder to read.
const WIDEST: u16 = 160;
/// How many models without a price are named.
const NAMED: usize = 3;
/// How many turns of one kind of action are listed.
const LISTED: usize = 8;

/// Where the table goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) width: u16,
    pub(crate) colour: bool,
}

impl Screen {
    /// Describes standard output: a terminal of some width, or a pipe.
    pub(crate) fn here() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let width = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        let width = width.or_else(|| terminal.then(|| Table::new().width()).flatten());
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        Self { width: width.unwrap_or(PIPE).clamp(20, WIDEST), colour: terminal && !plain }
    }

    /// Colours text, if the screen has colours.
    pub(crate) fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Prints the report.
pub(crate) fn print(
    report: &ScanReport,
    top: Option<usize>,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let rows = match top {
        Some(0) => report.loops.len(),
        Some(top) => top,
        None => ROWS,
    };
    let shown = &report.loops[..rows.min(report.loops.len())];
    if !shown.is_empty() {
        if screen.width < NARROW {
            list(shown, screen, out)?;
        } else {
            writeln!(out, "{}", table(shown, screen))?;
        }
        let more = report.loops.len() - shown.len();
        if more > 0 {
            writeln!(out, "… and {} (`--top 0` shows all)", plural(more as u64, "more loop"))?;
        }
        writeln!(out)?;
    }
    totals(report, screen, out)
}

fn table(rows: &[LoopRow], screen: Screen) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(screen.width);
    if !screen.colour {
        table.force_no_tty();
    } else {
        table.enforce_styling();
    }
    let head = ["SESSION", "PROJECT", "LOOP", "REPEATED", "TOKENS", "COST"];
    table.set_header(head.map(|name| Cell::new(name).add_attribute(Attribute::Dim)));
    for row in rows {
        table.add_row([
            Cell::new(format!("{}\n{}", who(row), agent(row))),
            Cell::new(format!("{}\n{}", project(row), when(row))),
            Cell::new(format!("{}\n{}", row.pattern, place(row))),
            Cell::new(row.repeated.len()).set_alignment(CellAlignment::Right),
            Cell::new(tokens(row)).set_alignment(CellAlignment::Right),
            Cell::new(cost(&row.spend)).set_alignment(CellAlignment::Right).fg(colour(row.action)),
        ]);
    }
    let narrow = |percent| ColumnConstraint::UpperBoundary(Width::Percentage(percent));
    for (index, percent) in [(0, 26), (1, 18)] {
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(narrow(percent));
        }
    }
    for index in [3, 4, 5] {
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table
}

fn list(rows: &[LoopRow], screen: Screen, out: &mut dyn Write) -> Result<(), Failure> {
    for row in rows {
        writeln!(out, "{}", screen.paint("1", &row.pattern))?;
        writeln!(out, "  {}", screen.paint(code(row.action), &spent(row)))?;
        writeln!(out, "  {}", place(row))?;
        writeln!(out, "  {} · {}", who(row), agent(row))?;
        writeln!(out, "  {} · {}\n", project(row), when(row))?;
    }
    Ok(())
}

fn totals(report: &ScanReport, screen: Screen, out: &mut dyn Write) -> Result<(), Failure> {
    let totals = &report.totals;
    let since = report.since.as_deref().map_or_else(String::new, |t| format!(" since {}", minute(t)));
    if totals.sessions == 0 {
        writeln!(out, "{}", no_sessions(report.since.as_deref(), report.older))?;
        return Ok(());
    }
    let sessions = format!("{}{since} ({})", plural(totals.sessions, "session"), bytes(totals.bytes));
    if totals.loops == 0 {
        let none = screen.paint("32", "No loops");
        writeln!(out, "{none} in {sessions}, judged by the profile `{}`.", report.profile)?;
        return unpriced(report, out);
    }
    let spent = &totals.loop_spend;
    let share = |part: f64, whole: f64| {
        if whole > 0.0 { format!(" ({:.0} %)", 100.0 * part / whole) } else { String::new() }
    };
    #[expect(clippy::cast_precision_loss, reason = "a percentage needs no more")]
    let turns = share(totals.repeated_turns as f64, totals.turns as f64);
    let money = if spent.tokens() == 0 && spent.usd == 0.0 {
        "the transcripts don't record the cost".to_owned()
    } else {
        format!("{} tokens, {}{}", count(spent.tokens()), cost(spent), share(spent.usd, totals.spend.usd))
    };
    let headline =
        format!("{} in {} of {sessions}", plural(totals.loops, "loop"), totals.sessions_with_loops);
    writeln!(
        out,
        "{}: {} of {} repeated{turns}, {money}{}.",
        screen.paint("1", &headline),
        count(totals.repeated_turns),
        plural(totals.turns, "turn"),
        and_time(totals.minutes),
    )?;
    let after: f64 = report.loops.iter().map(|l| l.spend_after.usd).sum();
    if after >= 0.005 {
        writeln!(out, "{} of that came after deloop would have stepped in.", dollars(after))?;
    }
    unpriced(report, out)?;
    if let Some(first) = report.loops.first() {
        writeln!(out, "\nTo see a session around its loop, run `deloop show {}`.", id(&first.session))?;
    }
    Ok(())
}

/// Prints how many tokens have no price, and what to do about it.
fn unpriced(report: &ScanReport, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(note) = unpriced_note(report) {
        writeln!(out, "{note}: `deloop prices` lists prices, `[prices]` in your configuration adds one.")?;
    }
    Ok(())
}

/// Returns how many tokens of which models have no price; `None` if all have one.
pub(crate) fn unpriced_note(report: &ScanReport) -> Option<String> {
    let (tokens, models) = (report.totals.spend.unpriced_tokens, &report.totals.unpriced_models);
    if tokens == 0 {
        return None;
    }
    let tokens = plural(tokens, "token");
    let have = if tokens == "1 token" { "has" } else { "have" };
    if models.is_empty() {
        return Some(format!("{tokens} {have} no price, because the sessions don't name the model"));
    }
    let mut names = models.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if models.len() > NAMED {
        names.push_str(", …");
    }
    Some(format!("{tokens} of {} {have} no price ({names})", plural(models.len() as u64, "model")))
}

/// Returns as much of a session's id as tells it apart from others.
pub(crate) fn id(session: &str) -> &str {
    let is_uuid = session.len() == 36 && session.bytes().filter(|b| *b == b'-').count() == 4;
    session.get(..13).filter(|_| is_uuid && session.is_ascii()).unwrap_or(session)
}

fn who(row: &LoopRow) -> String {
    let session = shortened(id(&row.session), 28);
    match &row.agent {
        Some(agent) => format!("{session} / {}", shortened(agent, 20)),
        None => session,
    }
}

/// Returns a long name without its middle: names mostly differ at their ends.
pub(crate) fn shortened(name: &str, room: usize) -> String {
    let length = name.chars().count();
    if length <= room {
        return name.to_owned();
    }
    let half = room / 2;
    let start: String = name.chars().take(room - half - 1).collect();
    let end: String = name.chars().skip(length - half).collect();
    format!("{start}…{end}")
}

fn agent(row: &LoopRow) -> String {
    match &row.model {
        Some(model) => format!("{} · {}", row.format, undated(model)),
        None => row.format.clone(),
    }
}

/// Returns the last part of the project's folder.
pub(crate) fn project(row: &LoopRow) -> String {
    let whole = row.project.as_deref().unwrap_or("–").trim_end_matches(['/', '\\']);
    shortened(whole.rsplit(['/', '\\']).next().unwrap_or(whole), 20)
}

fn when(row: &LoopRow) -> String {
    row.started.as_deref().map_or_else(|| "–".to_owned(), minute)
}

fn tokens(row: &LoopRow) -> String {
    if row.spend.tokens() == 0 { "–".to_owned() } else { count(row.spend.tokens()) }
}

/// Returns what the repeated turns of a loop took: "6 turns repeated, 77.7k tokens, $0.05, 6 min".
pub(crate) fn spent(row: &LoopRow) -> String {
    let turns = plural(row.repeated.len() as u64, "turn");
    format!("{turns} repeated, {} tokens, {}{}", tokens(row), cost(&row.spend), and_time(row.minutes))
}

/// Returns that there are no sessions, and how many were skipped because of `--since`.
pub(crate) fn no_sessions(since: Option<&str>, older: u64) -> String {
    let since = since.map_or_else(String::new, |t| format!(" since {}", minute(t)));
    let older = match older {
        0 => String::new(),
        1 => "; skipped 1 older file or session".to_owned(),
        older => format!("; skipped {} older files and sessions", count(older)),
    };
    format!("No sessions found{since}{older}.")
}

/// Returns a duration to be added to a list, if it is known: ", 6 min".
pub(crate) fn and_time(minutes: f64) -> String {
    if minutes > 0.0 { format!(", {}", duration(minutes)) } else { String::new() }
}

/// Returns where a loop is and what deloop would have done: "turns 2 to 8 of 9; nudge at turns 4, 6; block at turn 7".
pub(crate) fn place(row: &LoopRow) -> String {
    let turns = match (row.first_turn, row.last_turn) {
        (first, last) if first == last => format!("turn {first}"),
        (first, last) => format!("turns {first} to {last}"),
    };
    format!("{turns} of {}; {}", row.of_turns, actions(&row.actions))
}

/// Returns actions by kind, the weakest first, each with its turns; of many turns the first and the last.
fn actions(rows: &[ActionRow]) -> String {
    let mut by_kind: BTreeMap<Action, Vec<u32>> = BTreeMap::new();
    for row in rows {
        let turns = by_kind.entry(row.action).or_default();
        if turns.last() != Some(&row.turn) {
            turns.push(row.turn);
        }
    }
    let kind = |(action, turns): (Action, Vec<u32>)| {
        let text = |turns: &[u32]| turns.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match turns.as_slice() {
            [one] => format!("{action} at turn {one}"),
            [first @ .., last] if turns.len() > LISTED => {
                format!("{action} at {} turns, {}, … {last}", turns.len(), text(&first[..3]))
            }
            all => format!("{action} at turns {}", text(all)),
        }
    };
    by_kind.into_iter().map(kind).collect::<Vec<_>>().join("; ")
}

fn colour(action: Action) -> Color {
    if action >= Action::Ask { Color::Red } else { Color::Yellow }
}

fn code(action: Action) -> &'static str {
    if action >= Action::Ask { "31" } else { "33" }
}
