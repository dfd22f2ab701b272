//! `deloop config`: prints the effective configuration and its files.

use std::io::Write;

use deloop_policy::merge;
use serde_json::{Value, json};

use super::load_quietly;
use crate::args::ConfigArgs;
use crate::exit::{self, Failure};

pub(crate) fn run(args: &ConfigArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let config = load_quietly(&args.rules)?;
    for notice in &config.notices {
        writeln!(out, "# {notice}")?;
    }
    if config.files.is_empty() {
        writeln!(
            out,
            "# no configuration file; `deloop profiles show {}` prints a template",
            config.profile.name
        )?;
    }
    for file in &config.files {
        writeln!(out, "# from {}", deloop_detect::clean(&file.to_string_lossy(), 1000))?;
    }
    let (mut document, options) = (config.document, config.options);
    // A default printed as a setting would also apply to hooks if the output is used as a file.
    if args.rules.mode.is_some() || document.get("mode").is_some_and(|mode| !mode.is_null()) {
        merge(&mut document, json!({"mode": options.mode}));
    } else {
        writeln!(
            out,
            "# mode isn't set: hooks use \"nudge\"; `deloop stream`, `run` and `demo` use \"enforce\""
        )?;
    }
    if options.attended || document.get("attended").is_some_and(|attended| !attended.is_null()) {
        merge(&mut document, json!({"attended": options.attended}));
    } else {
        writeln!(
            out,
            "# attended isn't set: hooks detect it from the agent; everything else assumes an unattended run"
        )?;
    }
    drop_nulls(&mut document);
    let text = toml::to_string_pretty(&document).map_err(|e| Failure::new(e.to_string()))?;
    out.write_all(text.as_bytes())?;
    Ok(exit::OK)
}

/// TOML has no null, so a key without a value is left out.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, v| !v.is_null());
        map.values_mut().for_each(drop_nulls);
    }
}
