//! `deloop trust`: decides which configurations in folders apply.
//!
//! Anyone can put a `deloop.toml` into a repository, so it is ignored until the user runs `deloop trust`. Trust covers
//! the file's current content and owner.

mod changes;
mod records;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

pub(crate) use self::records::{Standing, TRUSTED_FILE, Trusted, digest};
use crate::config::{self, sources};
use crate::exit::{self, Failure};

pub(crate) const TRUST_HELP: &str = "\
Examples:
  deloop trust                 the nearest deloop.toml in this folder or above
  deloop trust ~/src/app       the one in that folder
  deloop trust --list
  deloop trust --remove ~/src/app

A deloop.toml or deloop.yaml in a folder is ignored until you trust it, because it may come with a
repository that somebody else wrote. Trust covers the current content and owner of the file and of
the profile it names; after a change it is ignored again. `deloop trust` shows what the file changes
in your settings. What you set yourself stays: a project can make it stricter, never looser. Your own
configuration (~/.config/deloop), --config and DELOOP_* need no trust.";

/// `deloop trust`
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The configuration or its folder [default: the nearest one in this folder or above]
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// List trusted configurations
    #[arg(long, conflicts_with_all = ["path", "remove"])]
    pub(crate) list: bool,
    /// Stop trusting it
    #[arg(long)]
    pub(crate) remove: bool,
}

pub(crate) fn run(args: &TrustArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    if args.list {
        return list(&Trusted::read()?, out);
    }
    if args.remove {
        let path = named(args.path.as_deref()).or_else(|failure| args.path.clone().ok_or(failure))?;
        let shown = shown(&path);
        if !Trusted::remove(&path)? {
            return Err(Failure::new(format!("{shown} is not trusted; `deloop trust --list` shows what is")));
        }
        writeln!(out, "No longer trusted: {shown}")?;
        return Ok(exit::OK);
    }
    let path = named(args.path.as_deref())?;
    let (record, layer) = records::examine(&path)?;
    let preview = config::preview(&layer).map_err(|failure| match failure {
        Failure::Message(why) => {
            Failure::new(format!("{why}. It is still not trusted; fix it, then try again"))
        }
        other => other,
    })?;
    changes::print(&preview, out)?;
    Trusted::add(record.clone())?;
    writeln!(out, "Trusted: {}", shown(&layer.path))?;
    writeln!(out, "  sha256 {}", record.sha256)?;
    if let Some(profile) = &record.profile {
        writeln!(out, "  and the profile it names, {}", deloop_detect::clean(&profile.path, 300))?;
    }
    if let Some(owner) = record.foreign_owner() {
        writeln!(out, "  note: it belongs to another user (uid {owner})")?;
    }
    writeln!(out, "It applies to everything started in its folder, until it changes.")?;
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

/// Returns the configuration that the argument names.
fn named(path: Option<&Path>) -> Result<PathBuf, Failure> {
    match path {
        None => sources::nearest().ok_or_else(|| {
            Failure::new("no deloop.toml or deloop.yaml in this folder or above; name one: deloop trust PATH")
        }),
        Some(path) if path.is_dir() => sources::first_in(path).ok_or_else(|| {
            Failure::new(format!("{}: no deloop.toml or deloop.yaml in this folder", shown(path)))
        }),
        Some(path) => Ok(path.to_owned()),
    }
}

fn shown(path: &Path) -> String {
    deloop_detect::clean(&path.to_string_lossy(), 1000)
}
