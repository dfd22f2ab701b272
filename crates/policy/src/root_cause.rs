//! The root-cause hypothesis and the recommendation for a loop that ended a task, drawn from its evidence.

use deloop_types::{ArgumentVariation, CameBack, RunEvidence};

/// A hypothesis about a loop and a recommendation, each without a full stop at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootCause {
    /// Why the agent got stuck, as far as the calls show it.
    pub hypothesis: String,
    /// What to change in the task prompt or the approach.
    pub recommendation: String,
}

/// Returns what the evidence of a run suggests. `tool` is shown as given.
#[must_use]
pub fn root_cause(tool: &str, run: &RunEvidence) -> RootCause {
    let reported = run.results > 0;
    let came = match run.outcome {
        _ if !reported => "what came back wasn't reported",
        Some(CameBack::SameFailure | CameBack::SimilarFailure) => "it failed the same way each time",
        Some(CameBack::Failures) => "it failed each time, with different errors",
        Some(CameBack::Refused) => "it was refused each time",
        Some(CameBack::TimedOut) => "it timed out each time",
        Some(CameBack::SameOutput) => "it returned the same output each time",
        Some(CameBack::Nothing) => "it found nothing each time",
        Some(_) | None => "it returned something different each time",
    };
    let arguments = match run.variation {
        ArgumentVariation::Identical => "identical arguments",
        ArgumentVariation::Details => "arguments that differ only in numbers, ids, times or folders",
        ArgumentVariation::Words => "arguments that differ in a few words",
    };
    let changed = match run.changed {
        Some(false) => "; nothing was edited in between",
        Some(true) => "; something was edited in between",
        None => "",
    };
    let others = if run.other_tools == 0 { "; no other tool was tried" } else { "" };
    RootCause {
        hypothesis: format!("{tool} was called with {arguments}, and {came}{changed}{others}"),
        recommendation: recommendation(tool, run),
    }
}

fn recommendation(tool: &str, run: &RunEvidence) -> String {
    let what = match run.outcome {
        _ if run.results == 0 => {
            format!(
                "report results to `deloop hook behavioral post-execute`, and say in the task prompt when to stop calling {tool}"
            )
        }
        Some(CameBack::SameFailure | CameBack::SimilarFailure) => {
            format!(
                "fix the cause of the error before the task runs again, or say in the task prompt what to do if {tool} fails"
            )
        }
        Some(CameBack::Failures) => {
            format!("check the arguments that {tool} accepts, and give a working example in the task prompt")
        }
        Some(CameBack::Refused) => {
            format!("allow what the task needs of {tool}, or say in the task prompt that it isn't available")
        }
        Some(CameBack::TimedOut) => {
            format!("give {tool} a smaller part of the work or a longer time limit")
        }
        Some(CameBack::SameOutput) => {
            format!("say in the task prompt how to use what {tool} returns, and what the next step is")
        }
        Some(CameBack::Nothing) => {
            "give the place or the name of what is searched for, or say that it may not exist".to_owned()
        }
        Some(_) | None => {
            format!("give the task a limit or a definition of done; {tool} returned something new each time")
        }
    };
    if run.other_tools == 0 { format!("{what}; name another tool to try") } else { what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_evidence_decides() {
        let run = |outcome, results, changed, variation, other_tools| {
            let cause =
                root_cause("Read", &RunEvidence { outcome, results, changed, variation, other_tools });
            format!("{} | {}", cause.hypothesis, cause.recommendation)
        };
        use ArgumentVariation::{Details, Identical, Words};
        use CameBack::{Failures, Nothing, Refused, SameFailure, SameOutput, TimedOut};
        let table = [
            (
                run(Some(SameFailure), 7, Some(false), Identical, 0),
                "Read was called with identical arguments, and it failed the same way each time; nothing was edited in between; no other tool was tried | fix the cause of the error before the task runs again, or say in the task prompt what to do if Read fails; name another tool to try",
            ),
            (
                run(Some(Failures), 7, Some(true), Words, 2),
                "Read was called with arguments that differ in a few words, and it failed each time, with different errors; something was edited in between | check the arguments that Read accepts, and give a working example in the task prompt",
            ),
            (
                run(Some(SameOutput), 7, None, Details, 1),
                "Read was called with arguments that differ only in numbers, ids, times or folders, and it returned the same output each time | say in the task prompt how to use what Read returns, and what the next step is",
            ),
            (
                run(None, 0, None, Identical, 1),
                "Read was called with identical arguments, and what came back wasn't reported | report results to `deloop hook behavioral post-execute`, and say in the task prompt when to stop calling Read",
            ),
        ];
        for (said, expected) in table {
            assert_eq!(said, expected);
        }
        let mut all: Vec<String> = [SameFailure, Failures, Refused, TimedOut, SameOutput, Nothing]
            .into_iter()
            .map(Some)
            .chain([None])
            .map(|outcome| run(outcome, 3, None, Words, 1))
            .collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 7, "every kind of evidence leads to its own words");
    }
}
