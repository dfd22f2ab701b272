//! Which calls of a transcript do the same.

use std::collections::HashMap;

use super::transcript::{SessionTranscript, StepKind, TranscriptEntry};
use super::{Selection, small};

impl SessionTranscript {
    /// Gives calls that do the same the same number. Exactly the same counts everywhere; nearly the same only inside
    /// a loop, where a detector has said that it is.
    pub(super) fn group(&mut self, selection: &Selection) {
        let mut exact: HashMap<(u16, u64), u32> = HashMap::new();
        let mut near: HashMap<(u16, u64), u32> = HashMap::new();
        for cell in &self.cells {
            *exact.entry((cell.agent, cell.exact)).or_default() += 1;
            if selection.is_inside(cell.step) {
                *near.entry((cell.agent, cell.near)).or_default() += 1;
            }
        }
        let mut numbers: HashMap<(u16, u64), u32> = HashMap::new();
        for cell in &mut self.cells {
            let is_near = selection.is_inside(cell.step) && near[&(cell.agent, cell.near)] > 1;
            let is_exact = exact[&(cell.agent, cell.exact)] > 1;
            if is_near || is_exact {
                // Near ones share a number with each other, whatever their exact forms.
                let key = (cell.agent, if is_near { cell.near } else { cell.exact });
                let known = numbers.get(&key).or_else(|| numbers.get(&(cell.agent, cell.exact))).copied();
                let number = known.unwrap_or_else(|| small(numbers.len() as u64) + 1);
                numbers.insert(key, number);
                numbers.insert((cell.agent, cell.exact), number);
                cell.group = number;
            }
        }
        let mut results: HashMap<u64, u32> = HashMap::new();
        for step in self.steps() {
            if let StepKind::Result { exact, .. } = &step.kind {
                *results.entry(*exact).or_default() += 1;
            }
        }
        for entry in &mut self.entries {
            let TranscriptEntry::Step(step) = entry else { continue };
            match &mut step.kind {
                StepKind::Turn { calls, .. } => {
                    for call in calls {
                        call.group = self.cells.get(call.cell).map_or(0, |c| c.group);
                    }
                }
                StepKind::Result { again, exact, .. } => *again = *exact != 0 && results[exact] > 1,
                StepKind::User { .. } | StepKind::Compact | StepKind::Other => {}
            }
        }
    }
}
