//! `deloop profiles`: the rules that come with deloop.

use std::io::Write;

use deloop_policy::{PROFILES, Profile, profile_text};

use crate::args::{ProfilesArgs, ProfilesCommand};
use crate::exit::{self, Failure};

/// Stands above a printed profile, so that editors complete it.
const HEADER: &str = "\
# A profile of deloop. Save it as deloop.toml and change what you like: what you leave out stays as it is in the
# profile that `profile` names. In a project it applies once you ran `deloop trust`. `deloop config` shows what it
# amounts to.
";

pub(crate) fn run(args: &ProfilesArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    match &args.command {
        Some(ProfilesCommand::Show { name }) => {
            let text = profile_text(name)?;
            // Laid over the profile it was printed from, so that it means the same.
            write!(out, "{HEADER}profile = \"{name}\"\n{text}")?;
        }
        None => {
            for (name, _) in PROFILES {
                let profile = Profile::named(name)?;
                writeln!(out, "{name:<16} {}", profile.about)?;
                let watches: Vec<&str> = profile.watches.iter().map(|w| w.detector.name()).collect();
                writeln!(out, "{:<16} {}\n", "", watches.join(", "))?;
            }
            writeln!(out, "`deloop profiles show NAME` prints one as a template for your own.")?;
        }
    }
    Ok(exit::OK)
}
