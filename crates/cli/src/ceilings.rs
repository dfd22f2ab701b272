//! Ceilings in words: which are on, and how much of today's is used.

use std::io::Write;
use std::path::Path;

use deloop_detect::{LimitShare, UsageAmounts};
use deloop_live::{DayUsage, SqliteJournal, day_of};
use deloop_policy::Profile;

use crate::config;
use crate::exit::Failure;
use crate::redaction::harmless;
use crate::sessions::home_relative;
use crate::state::now;

/// Number of projects listed.
const PROJECTS: usize = 5;

/// Prints which ceilings are on, and the line that changes them.
pub(crate) fn print_installed(profile: &Profile, out: &mut dyn Write) -> Result<(), Failure> {
    let (session, day) = (listed(&profile.ceilings.session()), listed(&profile.ceilings.day()));
    let has_detector = profile.watches.iter().any(|watch| watch.detector.name() == "over-budget");
    let session = session.filter(|_| has_detector);
    if session.is_none() && day.is_none() {
        return Ok(writeln!(out, "Ceilings: none are set in profile {}.", profile.name)?);
    }
    let off = || "none".to_owned();
    writeln!(out, "Ceilings per session: {}", session.unwrap_or_else(off))?;
    writeln!(out, "Ceilings per project and day: {}", day.unwrap_or_else(off))?;
    writeln!(
        out,
        "At 80 % deloop warns you; at 100 % it asks before the next call or, unattended, stops the run. To change one: {}",
        setting()
    )?;
    Ok(())
}

/// Prints how much of today's ceilings each project has used.
pub(crate) fn print_today(store: Option<&SqliteJournal>, out: &mut dyn Write) -> Result<(), Failure> {
    let limits = config::load_for_hook(&crate::args::RuleArgs::default()).profile.ceilings.day();
    let (Some(store), true) = (store, limits != UsageAmounts::default()) else { return Ok(()) };
    let mut days = store.day_usage(day_of(now())).map_err(|e| Failure::new(e.to_string()))?;
    let percent =
        |day: &DayUsage| day.used.closest(&limits, day.raises).map_or(0, |closest| closest.percent());
    days.sort_by_key(|day| std::cmp::Reverse(percent(day)));
    for day in days.iter().take(PROJECTS) {
        let project = harmless(&home_relative(Path::new(&day.project)));
        let shares = day.used.shares(&limits, day.raises);
        let parts: Vec<String> = shares
            .map(|share| format!("{} of {}", amount(&share, share.used), with_unit(&share, share.limit)))
            .collect();
        let raised = match day.raises {
            0 => String::new(),
            raises => format!(", raised {raises} × by half"),
        };
        writeln!(out, "Today (UTC) in {project}: {} ({} %{raised})", parts.join(", "), percent(day))?;
    }
    if days.len() > PROJECTS {
        writeln!(out, "Today (UTC) in {} more projects: less", days.len() - PROJECTS)?;
    }
    Ok(())
}

/// Lists limits, such as `$300, 2,000 turns`; `None` if there are none.
fn listed(limits: &UsageAmounts) -> Option<String> {
    let parts: Vec<String> = limits.shares(limits, 0).map(|share| with_unit(&share, share.limit)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns the line that sets a ceiling, and where it goes.
fn setting() -> String {
    let file = config::own_file();
    let yaml = file.as_ref().and_then(|file| file.extension()).is_some_and(|ending| ending != "toml");
    let line = if yaml { "`ceilings: {usd: 50}`" } else { "`ceilings.usd = 50`" };
    let place = file.map_or_else(|| "deloop.toml".to_owned(), |file| harmless(&home_relative(&file)));
    format!("{line} at the top of {place} (0 turns it off; docs/ceilings.md lists the others)")
}

fn with_unit(share: &LimitShare, n: f64) -> String {
    match share.unit {
        "dollars" => amount(share, n),
        "minutes" => format!("{} active minutes", amount(share, n)),
        unit => format!("{} {unit}", amount(share, n)),
    }
}

fn amount(share: &LimitShare, n: f64) -> String {
    if share.unit == "dollars" && n.fract() != 0.0 {
        return format!("${n:.2}");
    }
    let digits = format!("{n:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if share.unit == "dollars" { format!("${grouped}") } else { grouped }
}
