//! `deloop install` and `deloop uninstall`: add hooks to the settings of agents and remove them.

pub(crate) mod args;
mod file;
pub(crate) mod here;

use std::io::Write;

use deloop_formats::hooks::{HookLine, Installable, WiringError, installable, installables};
use deloop_types::Mode;
use similar::TextDiff;

use self::args::{InstallArgs, Scope, UninstallArgs};
use self::file::SettingsFile;
use crate::args::RuleArgs;
use crate::ceilings;
use crate::config::{self, Config};
use crate::exit::{self, Failure};
use crate::server_link::{ServerGreeting, ServerSettings, check_url, greet};

/// Says what the key for a server allows.
fn server_note(config: &Config, url: &str) -> String {
    let shown = deloop_detect::clean(url, 200);
    let greeted = ServerSettings::of(&config.server, Some(url))
        .and_then(|settings| settings.map(|settings| greet(&settings)).transpose());
    match greeted {
        Ok(Some(ServerGreeting { key: Some(key), .. })) => format!("Server {shown}: {}", key.describe()),
        Ok(_) => format!("Server {shown}: it doesn't say what your key allows"),
        Err(Failure::Message(why)) => {
            format!("Server {shown}: {why}. Until it works, deloop decides on this machine")
        }
        Err(Failure::ClosedPipe) => format!("Server {shown}: it can't be asked"),
    }
}

/// The planned change to one agent's file.
struct Plan {
    agent: Installable,
    file: SettingsFile,
    /// The new content; `None` if the file is to be removed.
    after: Option<String>,
    /// What happens to the copy of the file.
    copy: BackupChange,
}

/// What happens to the copy of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BackupChange {
    /// The current file is copied.
    Write,
    /// The copy stays: it is the file from before deloop was installed.
    Keep,
    /// The copy is removed, because the file is restored.
    Remove,
}

pub(crate) fn install(args: &InstallArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let agents = match args.agents.is_empty() {
        false => named(&args.agents),
        true => found(out)?,
    };
    let line = hook_line(args)?;
    // All files are read before the first one is changed.
    let plans: Vec<Plan> =
        agents.into_iter().map(|agent| plan_install(agent, args.scope, &line)).collect::<Result<_, _>>()?;
    for plan in &plans {
        let title = plan.agent.title;
        let path = plan.file.path.display();
        if plan.is_idle() {
            writeln!(out, "{title}: {path} already has these hooks")?;
        } else {
            plan.show(out)?;
            if args.dry_run {
                continue;
            }
            plan.carry_out()?;
            write!(out, "{title}: installed in {path}")?;
            if plan.copy == BackupChange::Write && plan.file.text.is_some() {
                write!(out, "; the original is in {}", plan.file.backup().display())?;
            }
            writeln!(out)?;
        }
        if !plan.agent.wiring.then.is_empty() {
            writeln!(out, "{title}: {}", plan.agent.wiring.then)?;
        }
    }
    let rules = RuleArgs { profile: args.profile.clone(), ..RuleArgs::default() };
    let config = config::load_for_hook(&rules);
    ceilings::print_installed(&config.profile, out)?;
    if let Some(url) = &args.server {
        writeln!(out, "{}", server_note(&config, url))?;
    }
    if args.dry_run {
        writeln!(out, "Dry run: nothing was changed.")?;
    }
    Ok(exit::OK)
}

pub(crate) fn uninstall(args: &UninstallArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let every = args.agents.is_empty();
    let agents = if every { installables().collect() } else { named(&args.agents) };
    let plans: Vec<Plan> =
        agents.into_iter().map(|agent| plan_uninstall(agent, args.scope)).collect::<Result<_, _>>()?;
    let mut any = false;
    for plan in &plans {
        let title = plan.agent.title;
        let path = plan.file.path.display();
        if plan.is_idle() {
            if !every {
                writeln!(out, "{title}: {path} has no deloop hooks")?;
            }
            continue;
        }
        any = true;
        plan.show(out)?;
        if !args.dry_run {
            plan.carry_out()?;
            writeln!(out, "{title}: removed from {path}")?;
        }
    }
    if every && !any {
        writeln!(out, "No agent has deloop hooks in its {} settings.", args.scope.name())?;
    }
    if args.dry_run {
        writeln!(out, "Dry run: nothing was changed.")?;
    }
    Ok(exit::OK)
}

fn named(names: &[String]) -> Vec<Installable> {
    names.iter().filter_map(|name| installable(name)).collect()
}

/// Returns the verified agents on this machine, and lists what was found.
fn found(out: &mut dyn Write) -> Result<Vec<Installable>, Failure> {
    let (verified, unverified): (Vec<Installable>, Vec<Installable>) =
        installables().filter(here::is_here).partition(|agent| agent.verified);
    for agent in unverified {
        let Installable { title, name, .. } = agent;
        writeln!(
            out,
            "Skipped {title}: never tested with the program itself. To install anyway: deloop install {name}"
        )?;
    }
    if verified.is_empty() {
        let known: Vec<&str> = installables().map(|agent| agent.name).collect();
        return Err(Failure::new(format!(
            "found no verified agent on this machine; name one: deloop install {}",
            known.join(" | ")
        )));
    }
    let titles: Vec<&str> = verified.iter().map(|agent| agent.title).collect();
    writeln!(out, "Found on this machine: {}.", titles.join(", "))?;
    Ok(verified)
}

fn hook_line(args: &InstallArgs) -> Result<HookLine, Failure> {
    let mut profile = args.profile.clone();
    if profile.is_some() {
        config::load(&RuleArgs { profile: profile.clone(), ..RuleArgs::default() })?;
        // The hook runs in other folders than this one.
        profile = profile.map(|name| match std::path::absolute(&name) {
            Ok(path) if path.is_file() => path.to_string_lossy().into_owned(),
            _ => name,
        });
    }
    if let Some(url) = &args.server {
        let allow_http = config::load_for_hook(&RuleArgs::default()).server.allow_http;
        check_url(url, allow_http)?;
    }
    let mode = args.mode.map(|mode| Mode::from(mode).as_str().to_owned());
    Ok(HookLine { program: here::this_program()?, mode, profile, server: args.server.clone() })
}

fn plan_install(agent: Installable, scope: Scope, line: &HookLine) -> Result<Plan, Failure> {
    let file = SettingsFile::read(here::settings(&agent, scope)?, here::root(scope)?)?;
    let told = |e: WiringError| told(&file, &e);
    let after = agent.install(file.text.as_deref(), line).map_err(told)?;
    let was_in = agent.installed(file.text.as_deref().unwrap_or_default()).map_err(told)?.is_some();
    let copy = if was_in && is_original(&agent, file.kept()?.as_deref()) {
        BackupChange::Keep
    } else {
        BackupChange::Write
    };
    Ok(Plan { agent, file, after: Some(after), copy })
}

fn plan_uninstall(agent: Installable, scope: Scope) -> Result<Plan, Failure> {
    let file = SettingsFile::read(here::settings(&agent, scope)?, here::root(scope)?)?;
    let told = |e: WiringError| told(&file, &e);
    let text = file.text.clone().unwrap_or_default();
    let Some(installed) = agent.installed(&text).map_err(told)? else {
        let after = file.text.clone();
        return Ok(Plan { agent, file, after, copy: BackupChange::Keep });
    };
    // If only deloop's entries were added since, the file is restored.
    let kept = file.kept()?.filter(|kept| is_original(&agent, Some(kept)));
    let before = [kept, None].into_iter().find(|before| {
        let again = agent.install(before.as_deref(), &installed.line);
        again.is_ok_and(|again| again == text)
    });
    let (after, copy) = match before {
        Some(before) => (before, BackupChange::Remove),
        None => (agent.uninstall(&text).map_err(told)?, BackupChange::Write),
    };
    Ok(Plan { agent, file, after, copy })
}

/// Returns whether this is a file without deloop entries.
fn is_original(agent: &Installable, kept: Option<&str>) -> bool {
    kept.is_some_and(|kept| agent.installed(kept).is_ok_and(|found| found.is_none()))
}

fn told(file: &SettingsFile, error: &WiringError) -> Failure {
    Failure::new(format!("{}: {error}; nothing was changed", file.path.display()))
}

impl Plan {
    fn is_idle(&self) -> bool {
        self.after == self.file.text
    }

    /// Returns the change as a unified diff.
    fn show(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (before, after) = (&self.file.text, &self.after);
        let path = self.file.path.display().to_string();
        let name = |text: &Option<String>| if text.is_some() { path.clone() } else { "/dev/null".to_owned() };
        let diff =
            TextDiff::from_lines(before.as_deref().unwrap_or_default(), after.as_deref().unwrap_or_default());
        write!(out, "{}", diff.unified_diff().header(&name(before), &name(after)))?;
        Ok(())
    }

    fn carry_out(&self) -> Result<(), Failure> {
        if self.copy == BackupChange::Write {
            self.file.keep()?;
        }
        match &self.after {
            Some(text) => self.file.write(text)?,
            None => self.file.remove()?,
        }
        if self.copy == BackupChange::Remove {
            self.file.forget()?;
        }
        Ok(())
    }
}
