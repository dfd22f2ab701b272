//! Labels: what readers said about a session.

use std::path::Path;

use serde::Deserialize;

use crate::exit::Failure;
use crate::safe_file::{self, Links};

/// A larger file of labels is a mistake.
const LONGEST: u64 = 256 << 20;
/// A fire this many turns before the onset still counts for the loop.
const EARLY: u64 = 6;
/// A fire this many turns after the end still counts for the loop.
const LATE: u64 = 2;

/// One line of a labels file: an episode, or a word on the whole session.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LoopLabel {
    /// The file, relative to the corpus folder.
    pub(crate) path: String,
    /// The session in it, if the file holds several.
    pub(crate) id: Option<String>,
    pub(crate) label: LabelKind,
    /// The agent turn, from 0, at which an observer should first step in.
    pub(crate) onset_turn: Option<u64>,
    /// The agent turn at which the episode ends.
    pub(crate) last_turn: Option<u64>,
    /// The kind of loop or repetition.
    pub(crate) kind: Option<String>,
    /// The reason, in words.
    pub(crate) why: Option<String>,
}

/// What a reader called an episode or a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LabelKind {
    /// A loop.
    Loop,
    /// Visible repetition that makes progress.
    Legit,
    /// Hardly any repetition.
    None,
    /// Readers disagreed or could not tell.
    Borderline,
    /// Wasted tokens or time; wider than looping, and without an onset.
    ResourceAbuse,
    /// No wasted tokens or time.
    NoResourceAbuse,
}

impl LabelKind {
    /// Whether this label is about resource abuse rather than loops.
    pub(crate) fn is_abuse(self) -> bool {
        matches!(self, Self::ResourceAbuse | Self::NoResourceAbuse)
    }
}

impl LoopLabel {
    /// Whether it marks something that should be found.
    pub(crate) fn is_loop(&self) -> bool {
        matches!(self.label, LabelKind::Loop | LabelKind::ResourceAbuse)
    }

    /// Returns the first and last turn at which a fire counts for this episode.
    pub(crate) fn window(&self) -> (u64, u64) {
        let first = self.onset_turn.unwrap_or(0).saturating_sub(EARLY);
        (first, self.last_turn.map_or(u64::MAX, |last| last.saturating_add(LATE)))
    }

    /// Whether a fire at this turn counts for this episode.
    pub(crate) fn covers(&self, turn: u64) -> bool {
        let (first, last) = self.window();
        (first..=last).contains(&turn)
    }
}

/// All labels of one session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionLabels {
    pub(crate) id: Option<String>,
    pub(crate) lines: Vec<LoopLabel>,
}

/// What the labels make of a session as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// It has at least one loop.
    Loop,
    /// Honest work only, or no label at all.
    Healthy,
    /// Doubtful; left out of precision, recall and the share of healthy sessions alarmed.
    Borderline,
}

impl SessionLabels {
    pub(crate) fn loops(&self) -> impl Iterator<Item = &LoopLabel> {
        self.lines.iter().filter(|l| l.is_loop())
    }

    pub(crate) fn borderline(&self) -> impl Iterator<Item = &LoopLabel> {
        self.lines.iter().filter(|l| l.label == LabelKind::Borderline)
    }

    pub(crate) fn class(&self) -> Class {
        if self.loops().next().is_some() {
            Class::Loop
        } else if self.borderline().next().is_some() {
            Class::Borderline
        } else {
            Class::Healthy
        }
    }
}

/// Reads all labels of a file.
///
/// # Errors
/// When the file cannot be read or a line is not a label; the message names the line.
pub(crate) fn read(path: &Path) -> Result<Vec<LoopLabel>, Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
    let text = safe_file::read_text(path, LONGEST, Links::Follow).map_err(|e| failed(&e))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(n, line)| serde_json::from_str(line).map_err(|e| failed(&format!("line {}: {e}", n + 1))))
        .collect()
}
