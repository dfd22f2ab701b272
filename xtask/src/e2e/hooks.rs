//! Who is installed into the agent: the real deloop, as a user would do it, or the stand-in.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::agents::Agent;
use super::place::{self, Place};
use super::stand_in::{AT, Want};

/// A way to put hooks into an agent.
pub(super) trait Hooks: Sync {
    /// Puts a program at [`Place::deloop`] and makes the agent call it, with this profile configured.
    fn install(
        &self,
        agent: &dyn Agent,
        place: &Place,
        want: Want,
        profile: Option<&str>,
    ) -> Result<(), String>;

    /// What goes before the agent's own command line, the arguments of deloop in `deloop run -- AGENT`; nothing if deloop does not start it.
    fn launcher(&self, agent: &dyn Agent, want: Want) -> &'static [&'static str];

    /// The call, from 1, at which it speaks, if that is known.
    fn speaks_at(&self) -> Option<usize>;
}

/// The binary, installed by its own `install`.
pub(super) struct RealDeloop {
    pub(super) binary: PathBuf,
}

impl Hooks for RealDeloop {
    fn install(
        &self,
        agent: &dyn Agent,
        place: &Place,
        want: Want,
        profile: Option<&str>,
    ) -> Result<(), String> {
        // A name of its own, because the cases of failure take it away; a copy would take 100 MB.
        fs::hard_link(&self.binary, place.deloop())
            .or_else(|_| fs::copy(&self.binary, place.deloop()).map(drop))
            .map_err(|e| format!("cannot copy {}: {e}", self.binary.display()))?;
        let mode = if want == Want::Nudge { "nudge" } else { "enforce" };
        let profile = profile.map(|name| format!("profile = \"{name}\"\n")).unwrap_or_default();
        let own_mode = if agent.is_installable() { String::new() } else { format!("mode = \"{mode}\"\n") };
        place::write(&place.home.join(".config/deloop/deloop.toml"), &(profile + &own_mode))
            .map_err(|e| format!("cannot write the configuration: {e}"))?;
        if !agent.is_installable() {
            return Ok(());
        }
        let mut install = Command::new(place.deloop());
        install.args(["install", agent.name(), "--scope", "user", "--mode", mode]);
        install.current_dir(&place.work).env_clear().env("HOME", &place.home);
        install.env("PATH", std::env::join_paths([&place.bin]).unwrap_or_default());
        let output = install.output().map_err(|e| format!("deloop does not start: {e}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{install:?} failed: {}", said.lines().next().unwrap_or_default()))
    }

    fn launcher(&self, agent: &dyn Agent, want: Want) -> &'static [&'static str] {
        // The model here answers at once: in the time that an agent usually gets, the loop would be over.
        if want == Want::Stop && agent.ends_by_signal_only() { &["run", "--grace", "0.3", "--"] } else { &[] }
    }

    fn speaks_at(&self) -> Option<usize> {
        None
    }
}

/// The shell script that answers in each agent's dialect.
pub(super) struct StandIns;

impl Hooks for StandIns {
    fn install(&self, agent: &dyn Agent, place: &Place, want: Want, _: Option<&str>) -> Result<(), String> {
        let script =
            agent.stand_in(place, want).map_err(|e| format!("cannot write the settings: {e}"))?.script();
        place::write_program(&place.deloop(), &script).map_err(|e| format!("cannot write the stand-in: {e}"))
    }

    /// The stand-in sends the signal itself.
    fn launcher(&self, _agent: &dyn Agent, _want: Want) -> &'static [&'static str] {
        &[]
    }

    fn speaks_at(&self) -> Option<usize> {
        Some(AT)
    }
}
