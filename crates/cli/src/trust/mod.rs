//! `deloop trust`: which configurations that were found in folders count.
//!
//! Anybody can put a `deloop.toml` into a repository. It is ignored until the user says `deloop trust`; that holds for
//! the content the file has then, and for its owner.

mod records;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

pub(crate) use self::records::{Standing, TRUSTED_FILE, Trusted, digest};
use crate::config::{self, sources};
use crate::exit::{self, Failure};

pub(crate) const TRUST_HELP: &str = "\
Examples:
  deloop trust                 the nearest deloop.toml upward from here
  deloop trust ~/src/app       the one in that folder
  deloop trust --list
  deloop trust --remove ~/src/app

A deloop.toml or deloop.yaml in a folder is ignored until you trust it, because whoever wrote the folder wrote it too.
Trust holds for its present content and owner, and for the profile file it names: when one of them changes, it is
ignored again. Your own configuration (~/.config/deloop), --config and DELOOP_* need no trust.";

/// `deloop trust`
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The configuration, or the folder it is in; the nearest one upward from here if none is named
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Show what you trust
    #[arg(long, conflicts_with_all = ["path", "remove"])]
    pub(crate) list: bool,
    /// No longer trust it
    #[arg(long)]
    pub(crate) remove: bool,
}

pub(crate) fn run(args: &TrustArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let mut trusted = Trusted::read()?;
    if args.list {
        return list(&trusted, out);
    }
    if args.remove {
        let path = named(args.path.as_deref()).or_else(|failure| args.path.clone().ok_or(failure))?;
        let shown = shown(&path);
        if !trusted.remove(&path)? {
            return Err(Failure::new(format!("{shown} is not trusted; `deloop trust --list` shows what is")));
        }
        writeln!(out, "No longer trusted: {shown}")?;
        return Ok(exit::OK);
    }
    let path = named(args.path.as_deref())?;
    let (record, layer) = records::examine(&path)?;
    config::check(&layer).map_err(|failure| match failure {
        Failure::Told(why) => Failure::new(format!("{why}. It was not trusted: fix it first")),
        other => other,
    })?;
    writeln!(out, "Trusted: {}", shown(&layer.path))?;
    writeln!(out, "  sha256 {}", record.sha256)?;
    if let Some(profile) = &record.profile {
        writeln!(out, "  and the profile it names, {}", deloop_detect::clean(&profile.path, 300))?;
    }
    if let Some(owner) = record.foreign_owner() {
        writeln!(out, "  note: it belongs to another user (uid {owner})")?;
    }
    writeln!(out, "It applies to everything started in its folder, until it changes.")?;
    trusted.add(record)?;
    Ok(exit::OK)
}

fn list(trusted: &Trusted, out: &mut dyn Write) -> Result<u8, Failure> {
    if trusted.records().is_empty() {
        writeln!(out, "No configuration is trusted.")?;
    }
    for record in trusted.records() {
        let path = Path::new(&record.path);
        let state = match trusted.standing(path) {
            Standing::Trusted(_) => "trusted".to_owned(),
            Standing::Not(why) => format!("ignored: {why}"),
        };
        writeln!(out, "{}  {state}", shown(path))?;
    }
    Ok(exit::OK)
}

/// The configuration that is meant.
fn named(path: Option<&Path>) -> Result<PathBuf, Failure> {
    match path {
        None => sources::nearest().ok_or_else(|| {
            Failure::new("there is no deloop.toml or deloop.yaml here or above; name one: deloop trust PATH")
        }),
        Some(path) if path.is_dir() => sources::first_in(path).ok_or_else(|| {
            Failure::new(format!("{}: there is no deloop.toml or deloop.yaml in it", shown(path)))
        }),
        Some(path) => Ok(path.to_owned()),
    }
}

fn shown(path: &Path) -> String {
    deloop_detect::clean(&path.to_string_lossy(), 1000)
}
