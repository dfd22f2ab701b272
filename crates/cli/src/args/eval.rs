//! `deloop eval`.

use std::path::PathBuf;

use clap::Args;

use crate::sessions::LinkArgs;

/// Below the options of `deloop eval --help`.
pub(super) const EVAL_HELP: &str = "\
Examples:
  deloop eval sessions/labels.jsonl                     the profile `default`
  deloop eval a/labels.jsonl b/labels.jsonl --ablate    two sets, and what each detector adds
  deloop eval labels.jsonl --corpus sessions/ -p default -p mine.toml --verbose

A label is a JSON line; a session can have several:
  {\"path\":…,\"label\":\"loop|legit|none|borderline\",\"onset_turn\":N,\"last_turn\":N}

Decisions that belong together are one alarm. An alarm is right if it comes at most 6 turns before
a loop starts and at most 2 turns after it ends. An alarm on legitimate work, on a session without
a label or earlier than that is false.

Exit codes: 0 success; 2 the command failed, or a file or labelled session couldn't be read.";

/// `deloop eval`
#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// Label files, one JSON object per line; each is a set, named after its folder
    #[arg(required = true, value_name = "LABELS")]
    pub(crate) labels: Vec<PathBuf>,
    /// The folder that paths in the labels are relative to [default: the label file's folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) corpus: Option<PathBuf>,
    /// A profile or its file; can be repeated
    #[arg(long = "profile", short, value_name = "PROFILE")]
    pub(crate) profiles: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// List the decisions behind every false alarm and in every session with a missed loop
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Leave out sessions without a label
    #[arg(long)]
    pub(crate) labelled_only: bool,
    /// Also show the scores with one detector or rule turned off at a time
    #[arg(long)]
    pub(crate) ablate: bool,
    /// Score against the resource-abuse labels instead, and leave out sessions without one
    #[arg(long)]
    pub(crate) resource_abuse: bool,
    #[command(flatten)]
    pub(crate) links: LinkArgs,
}
