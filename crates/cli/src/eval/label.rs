//! Labelled sessions: where they are and what a person said of them.

use std::path::Path;

use serde::Deserialize;

use crate::exit::Failure;

/// One line of a labels file.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Label {
    /// The file, relative to the corpus folder.
    pub(crate) path: String,
    /// The session in it, where a file holds many.
    pub(crate) id: Option<String>,
    /// What was said.
    pub(crate) label: Verdict,
    /// The agent turn, from 0, at which somebody should first step in.
    pub(crate) onset_turn: Option<u64>,
    /// The agent turn at which the loop ends.
    pub(crate) last_turn: Option<u64>,
    /// What kind of loop or of repetition.
    pub(crate) kind: Option<String>,
    /// Why, in words.
    pub(crate) why: Option<String>,
}

/// What was said of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// It loops.
    Loop,
    /// It repeats visibly, and makes progress.
    Legit,
    /// It does not repeat.
    None,
    /// Readers did not agree; left out.
    Borderline,
    /// It wastes what it may use; wider than looping, and without an onset.
    ResourceAbuse,
    /// It does not.
    NoResourceAbuse,
}

impl Verdict {
    /// Whether something should fire; `None` is left out.
    pub(crate) fn positive(self) -> Option<bool> {
        match self {
            Self::Loop | Self::ResourceAbuse => Some(true),
            Self::Legit | Self::None | Self::NoResourceAbuse => Some(false),
            Self::Borderline => None,
        }
    }
}

impl Label {
    /// Fires before this turn are too early.
    pub(crate) fn earliest(&self) -> u64 {
        self.onset_turn.unwrap_or(0).saturating_sub(6)
    }

    /// Fires after this turn are too late.
    pub(crate) fn latest(&self) -> u64 {
        self.last_turn.map_or(u64::MAX, |last| last.saturating_add(2))
    }

    /// The first part of the path: in a corpus, the format.
    pub(crate) fn group(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }
}

/// All labels of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<Label>, Failure> {
    let told = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| told(&e))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(n, line)| serde_json::from_str(line).map_err(|e| told(&format!("line {}: {e}", n + 1))))
        .collect()
}
