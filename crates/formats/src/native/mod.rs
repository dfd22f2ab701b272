//! deloop's own Steps, one a line.

use crate::bounded::read_step;
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
        line.is_some_and(|l| read_step(l).is_ok())
    }

    fn reader(&self, _source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(Lines)
    }
}

struct Lines;

impl Reader for Lines {
    fn read(&mut self, line: &[u8], out: &mut Sink<'_>) {
        match read_step(line) {
            Ok(step) => out.step(step),
            Err(error) => out.unreadable(error),
        }
    }
}
