//! `deloop explain`: explains a detector or a decision.

use std::io::Write;

use deloop_detect::DETECTORS;

use crate::args::ExplainArgs;
use crate::exit::{self, Failure};
use crate::live;

pub(crate) fn run(args: &ExplainArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let Some(name) = &args.name else {
        writeln!(out, "Detectors:\n")?;
        for detector in DETECTORS {
            writeln!(out, "  {:<17} {}", detector.name(), first_sentence(detector.page()))?;
        }
        writeln!(out, "\n`deloop explain NAME` explains one, with examples.")?;
        return Ok(exit::OK);
    };
    let Some(detector) = DETECTORS.iter().find(|d| d.name() == name) else {
        if live::explain::is_id(name) {
            return live::explain::run(name, out);
        }
        let names: Vec<&str> = DETECTORS.iter().map(|d| d.name()).collect();
        return Err(Failure::new(format!(
            "unknown detector `{name}`; known detectors: {}. For a decision, take its id from `deloop log`",
            names.join(", ")
        )));
    };
    out.write_all(detector.page().as_bytes())?;
    Ok(exit::OK)
}

/// What a page says first about what its detector finds.
fn first_sentence(page: &str) -> String {
    let text = page.split("## What it finds").nth(1).unwrap_or_default().trim_start();
    let paragraph = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let end = paragraph.find(['.', ':', ';']).unwrap_or(paragraph.len());
    paragraph[..end].to_owned()
}
