//! `deloop demo`: plays a stuck session and shows what deloop does about it.

use std::io::{IsTerminal, Write};

use deloop_detect::short_call;
use deloop_engine::Guard;
use deloop_store::Limits;
use deloop_types::{Action, Body, Outcome, Step};

use crate::args::DemoArgs;
use crate::config;
use crate::exit::{self, Failure};

/// An agent that runs the same failing test again and again.
const SESSION: &str = include_str!("../examples/stuck.jsonl");

pub(crate) fn run(args: &DemoArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let config = config::load(&args.rules)?;
    writeln!(out, "A stuck session, judged step by step by the profile `{}`:\n", config.profile.name)?;
    let guard = Guard::with(config.profile, config.options, Limits::default());
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut refused: Option<(Vec<String>, String)> = None;
    for line in SESSION.lines() {
        let mut step: Step =
            line.parse().map_err(|e: deloop_types::StepError| Failure::new(e.to_string()))?;
        match refused.take() {
            // A refused call never runs; its result is the refusal.
            Some((calls, message)) if refuse(&mut step, &calls, &message) => {}
            _ => print_step(&step, out)?,
        }
        let decision = guard.observe(&step);
        if decision.action == Action::Continue {
            continue;
        }
        let (on, off) = if colour { (colour_of(decision.action), "\x1b[0m") } else { ("", "") };
        let label = format!("deloop: {} (level {})", decision.action, decision.level);
        writeln!(out, "{on}      ⟲ {label}{off}")?;
        for text in decision.message.iter().flat_map(|m| m.lines()) {
            writeln!(out, "{on}        {text}{off}")?;
        }
        if decision.action == Action::Stop {
            writeln!(out, "\nThe run has ended: {}.", decision.status.as_deref().unwrap_or("stopped"))?;
            break;
        }
        if matches!(decision.action, Action::Ask | Action::Block) {
            refused = Some((decision.calls, decision.message.unwrap_or_default()));
        }
    }
    writeln!(
        out,
        "\nNext: run `deloop install` to guard your own agents, or `deloop explain` to see what deloop detects."
    )?;
    Ok(exit::OK)
}

fn colour_of(action: Action) -> &'static str {
    match action {
        Action::Continue | Action::Warn | Action::Nudge => "\x1b[33m",
        Action::Ask | Action::Block | Action::Stop => "\x1b[31m",
    }
}

/// Turns the result of a refused call into the refusal; returns whether it is one.
fn refuse(step: &mut Step, calls: &[String], message: &str) -> bool {
    let Body::Result(result) = &mut step.body else { return false };
    if !result.id.as_ref().is_some_and(|id| calls.contains(id)) {
        return false;
    }
    (result.ok, result.outcome, result.output) = (None, Some(Outcome::Denied), message.into());
    true
}

fn print_step(step: &Step, out: &mut dyn Write) -> Result<(), Failure> {
    match &step.body {
        Body::User(user) => writeln!(out, "user  {}", user.text)?,
        Body::Turn(turn) => {
            if let Some(text) = turn.said() {
                writeln!(out, "agent {text}")?;
            }
            for call in &turn.calls {
                writeln!(out, "   →  {}", short_call(&call.tool, &call.args))?;
            }
        }
        Body::Result(result) => {
            let mark = if result.ok == Some(false) { "✗" } else { "✓" };
            let text = result.output.as_str().unwrap_or_default();
            writeln!(out, "   {mark}  {}", text.lines().next().unwrap_or_default())?;
        }
        _ => {}
    }
    Ok(())
}
