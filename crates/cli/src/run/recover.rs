//! Starts an agent that ignored two nudges again: in a new session, and with another model if the user names one.

use std::ffi::OsString;

use deloop_live::RecordedDecision;
use deloop_policy::RecoverWith;

use super::attempt::{Attempt, Retry};
use super::{Runner, guarded, retry, say};
use crate::exit::Failure;

/// The words after which an agent takes its options.
const SUBCOMMANDS: [&str; 3] = ["exec", "e", "run"];

/// Reads `fresh` or `model=NAME`.
pub(super) fn parse(text: &str) -> Result<RecoverWith, Failure> {
    match text.split_once('=') {
        None if text == "fresh" => Ok(RecoverWith::Fresh),
        Some(("model", name)) if !name.trim().is_empty() => Ok(RecoverWith::Model(name.to_owned())),
        _ => Err(Failure::new(format!("--recover takes fresh or model=NAME, not {text:?}"))),
    }
}

impl Runner<'_> {
    /// Returns the decision that shows that the agent ignores deloop's messages, if the run recovers from that and hasn't
    /// yet.
    pub(super) fn ignores_nudges(&self, run: &str, earlier: &[Attempt]) -> Option<RecordedDecision> {
        if self.recover.is_none() || earlier.iter().any(|attempt| attempt.ignored.is_some()) {
            return None;
        }
        // A failed check is repeated.
        self.store.as_ref()?.ignored_nudges_of_run(run).ok().flatten()
    }

    /// Returns what the next attempt follows, and tells the user.
    pub(super) fn fresh_start(&self, last: &Attempt, ignored: &RecordedDecision) -> Retry {
        let model = match &self.recover {
            Some(RecoverWith::Model(name)) => Some(name),
            _ => None,
        };
        let known = model.filter(|_| guarded::model_flag(&self.args.command[0]).is_some());
        say(&match (model, known) {
            (_, Some(name)) => format!("starting again in a new session, with model {}", deloop_detect::clean(name, 100)),
            (Some(_), None) => {
                "starting again in a new session, with the same model: deloop doesn't know how to choose one here".to_owned()
            }
            (None, None) => "starting again in a new session".to_owned(),
        });
        Retry { model: known.cloned(), ..retry(last, ignored, None) }
    }

    /// Returns the arguments of the agent, with this model.
    pub(super) fn arguments(&self, model: Option<&str>) -> Vec<OsString> {
        let arguments = &self.args.command[1..];
        match (model, guarded::model_flag(&self.args.command[0])) {
            (Some(model), Some(flag)) => with_model(arguments, flag, model),
            _ => arguments.to_vec(),
        }
    }
}

/// Returns the arguments with another model: the one they name is replaced, else the flag is added.
fn with_model(arguments: &[OsString], flag: &str, model: &str) -> Vec<OsString> {
    let mut words = arguments.to_vec();
    for index in 0..words.len() {
        let word = words[index].to_string_lossy().into_owned();
        if word == "--" {
            break;
        }
        if (word == flag || word == "--model") && index + 1 < words.len() {
            words[index + 1] = model.into();
            return words;
        }
        if word.starts_with("--model=") {
            words[index] = format!("--model={model}").into();
            return words;
        }
    }
    let after = words.first().is_some_and(|word| SUBCOMMANDS.iter().any(|name| word.as_os_str() == *name));
    let at = usize::from(after);
    words.splice(at..at, [OsString::from(flag), model.into()]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_takes_the_place_of_another_or_comes_first() {
        for (before, flag, after) in [
            ("-p task", "--model", "--model new -p task"),
            ("--model old -p task", "--model", "--model new -p task"),
            ("-p task --model=old", "--model", "-p task --model=new"),
            ("exec task", "-m", "exec -m new task"),
            ("exec -m old task", "-m", "exec -m new task"),
            ("run --model old task", "-m", "run --model new task"),
            ("-p -- -m old", "-m", "-m new -p -- -m old"),
            ("", "-m", "-m new"),
        ] {
            let words: Vec<OsString> = before.split_whitespace().map(OsString::from).collect();
            let made: Vec<String> = with_model(&words, flag, "new")
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            assert_eq!(made.join(" "), after, "{before}");
        }
    }

    #[test]
    fn recover_is_fresh_or_a_model() {
        assert_eq!(parse("fresh").ok(), Some(RecoverWith::Fresh));
        assert_eq!(parse("model=a/b").ok(), Some(RecoverWith::Model("a/b".to_owned())));
        for wrong in ["", "model", "model= ", "new"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
