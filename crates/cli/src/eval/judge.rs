//! One session under one variant of the rules: which episodes were found, and what each alarm was worth.

use std::sync::Arc;

use serde::Serialize;

use crate::eval::alarm::{Alarm, Fire, Worth, alarms};
use crate::eval::label::{Class, SessionLabels};
use crate::replay::{Replay, ReplayedFile};

/// What is known about a session, whatever the rules.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct EvalSession {
    /// The set it belongs to.
    pub(crate) set: String,
    /// Relative to the set's corpus folder.
    pub(crate) path: String,
    /// The session in the file, if the file holds several.
    pub(crate) id: Option<String>,
    /// The format it is written in.
    pub(crate) agent: String,
    pub(crate) model: String,
    pub(crate) project: String,
    pub(crate) turns: u64,
    pub(crate) calls: u64,
    /// Whether there are labels for it.
    pub(crate) labelled: bool,
}

/// A loop that should be found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LabelledLoop {
    pub(crate) onset_turn: Option<u64>,
    pub(crate) last_turn: Option<u64>,
    pub(crate) kind: String,
    pub(crate) why: String,
    pub(crate) found: bool,
    /// Turns from the onset to the first fire in its window.
    pub(crate) delay: Option<i64>,
}

/// One judged session.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    pub(crate) about: Arc<EvalSession>,
    pub(crate) class: Class,
    pub(crate) episodes: Vec<LabelledLoop>,
    pub(crate) alarms: Vec<Alarm>,
    /// The readers' reasons.
    pub(crate) why: String,
}

impl Judged {
    pub(crate) fn new(about: &Arc<EvalSession>, labels: &SessionLabels, fires: &[Fire]) -> Self {
        let episodes = labels.loops().map(|label| {
            let first = fires.iter().find(|f| label.covers(f.turn));
            let delay =
                first.zip(label.onset_turn).map(|(f, onset)| f.turn.cast_signed() - onset.cast_signed());
            LabelledLoop {
                onset_turn: label.onset_turn,
                last_turn: label.last_turn,
                kind: label.kind.clone().unwrap_or_default(),
                why: label.why.clone().unwrap_or_default(),
                found: first.is_some(),
                delay,
            }
        });
        let why: Vec<&str> = labels.lines.iter().filter_map(|l| l.why.as_deref()).collect();
        Self {
            about: Arc::clone(about),
            class: labels.class(),
            episodes: episodes.collect(),
            alarms: alarms(fires, labels),
            why: why.join("; "),
        }
    }

    /// Whether at least one of its loops was found.
    pub(crate) fn hit(&self) -> bool {
        self.episodes.iter().any(|e| e.found)
    }

    pub(crate) fn false_alarms(&self) -> impl Iterator<Item = &Alarm> {
        self.alarms.iter().filter(|a| a.worth == Worth::False)
    }
}

impl EvalSession {
    pub(crate) fn new(
        set: &str,
        path: &str,
        id: Option<String>,
        file: &ReplayedFile,
        replay: &Replay,
    ) -> Self {
        Self {
            set: set.to_owned(),
            path: path.to_owned(),
            id,
            agent: file.format.to_owned(),
            model: replay.model.clone().unwrap_or_else(|| folder(path).to_owned()),
            project: project(path, file.project.as_deref()),
            turns: replay.turns,
            calls: replay.calls,
            labelled: true,
        }
    }
}

/// The folder of a file: where a corpus is sorted by model or project, it names that.
fn folder(path: &str) -> &str {
    path.rsplit('/').nth(1).unwrap_or_default()
}

/// The project: from a file name like PROJECT__SESSION, else as the file says, else the folder.
fn project(path: &str, reported: Option<&str>) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    if let Some((project, _)) = name.split_once("__").filter(|(project, _)| !project.is_empty()) {
        return project.to_owned();
    }
    let reported = reported.and_then(|p| p.rsplit(['/', '\\']).find(|part| !part.is_empty()));
    reported.unwrap_or_else(|| folder(path)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::project;

    #[test]
    fn a_project_comes_from_the_name_the_file_or_the_folder() {
        assert_eq!(project("pi/yinshi__019d.jsonl.gz", Some("/w/other")), "yinshi");
        assert_eq!(project("pi/019d.jsonl", Some("/work/app/")), "app");
        assert_eq!(project("pi/runs/019d.jsonl", None), "runs");
    }
}
