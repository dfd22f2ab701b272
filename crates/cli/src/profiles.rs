//! `deloop profiles`: lists and prints the built-in profiles.

use std::io::Write;

use deloop_policy::{PROFILES, Profile, profile_text};

use crate::args::{ProfilesArgs, ProfilesCommand};
use crate::exit::{self, Failure};

/// The comment above a printed profile.
const HEADER: &str = "\
# A deloop profile. Save it as deloop.toml and edit it. Keys that you leave out keep the value they have in
# the profile that `profile` names. In a project it applies after you run `deloop trust`. `deloop config` prints the result.
";

pub(crate) fn run(args: &ProfilesArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    match &args.command {
        Some(ProfilesCommand::Show { name }) => {
            let text = profile_text(name)?;
            // Based on the profile it was printed from, so that it means the same.
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
