//! deloop's own Steps, one a line.

use deloop_types::{Step, limits};

use crate::json::bounded::read_step;
use crate::{Format, Place, Reader, Shape, Sink, Source};

/// deloop's own Steps, one a line.
pub(crate) struct Native;

impl Format for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn title(&self) -> &'static str {
        "deloop Steps"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        true
    }

    fn places(&self) -> &'static [Place] {
        &[]
    }

    fn shape(&self) -> Shape {
        Shape::Lines
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let line = head.split(|b| *b == b'\n').find(|l| !l.trim_ascii().is_empty());
        line.is_some_and(|l| Step::from_slice(l).is_ok())
    }

    fn reader(&self, _source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(StepLines)
    }
}

struct StepLines;

impl Reader for StepLines {
    fn read(&mut self, line: &[u8], out: &mut Sink<'_>) {
        // What is broken in a file is mended and reported by who reads the file.
        let step = match line.len() {
            0..=limits::PLAIN => Step::from_slice(line).map_err(|e| e.to_string()),
            _ => read_step(line),
        };
        match step {
            Ok(step) => out.step(step),
            Err(error) => out.unreadable(error),
        }
    }
}
