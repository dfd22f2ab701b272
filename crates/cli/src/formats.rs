//! `deloop formats`: lists the session formats, or prints the page of one.

use std::io::Write;

use deloop_formats::{Base, FORMATS, Format, find};

use crate::args::FormatsArgs;
use crate::exit::{self, Failure};

pub(crate) fn run(args: &FormatsArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    if let Some(name) = &args.name {
        let Some(format) = find(name) else {
            let names: Vec<&str> = FORMATS.iter().map(|f| f.name()).collect();
            return Err(Failure::new(format!(
                "unknown format `{name}`; known formats: {}",
                names.join(", ")
            )));
        };
        out.write_all(format.page().as_bytes())?;
        return Ok(exit::OK);
    }
    writeln!(out, "# Session formats\n")?;
    writeln!(out, "| format | of | run on real files | where its files are |\n|---|---|---|---|")?;
    for format in FORMATS {
        let verified = if format.verified() { "yes" } else { "**unverified**" };
        writeln!(out, "| {} | {} | {verified} | {} |", format.name(), format.title(), places(*format))?;
    }
    writeln!(
        out,
        "\nAn unverified format follows the agent's documentation and has never been run on real files.\n\
         deloop detects the format from the beginning of a file, in this order. `--format` overrides it.\n\
         `deloop formats NAME` describes one format: what its files contain, and their quirks."
    )?;
    Ok(exit::OK)
}

fn places(format: &dyn Format) -> String {
    let place = |place: &deloop_formats::Place| {
        let base = match place.base {
            Base::Home => "~".to_owned(),
            Base::Variable(name, folder) => {
                format!("(${name} or {})", format!("~/{folder}").trim_end_matches('/'))
            }
            Base::Data => "the user's data folder".to_owned(),
            Base::Config => "the user's configuration folder".to_owned(),
        };
        let all = if place.folder.ends_with(place.suffix) { "" } else { "/**" };
        let folder = place.folder.trim_start_matches('/');
        let suffix = if all.is_empty() { "" } else { place.suffix };
        match base.strip_suffix('/').unwrap_or(&base) {
            base if folder.is_empty() => format!("`{base}{all}{suffix}`"),
            base => format!("`{base}/{folder}{all}{suffix}`"),
        }
    };
    let places: Vec<String> = format.places().iter().map(place).collect();
    if places.is_empty() { "anywhere".to_owned() } else { places.join(", ") }
}
