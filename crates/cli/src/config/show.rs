//! `deloop config`: prints the effective configuration and its files.

use std::borrow::Cow;
use std::io::Write;

use deloop_detect::{SECRET, redact};
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
    for kept in &config.kept {
        let key = deloop_detect::clean(&kept.key, 200);
        writeln!(out, "# the project's `{key}` doesn't apply: yours stays")?;
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
    // People show this output to others.
    let mut is_masked = false;
    for block in ["serve", "server"] {
        is_masked |= document.get_mut(block).is_some_and(mask);
    }
    if is_masked {
        writeln!(out, "# passwords in addresses are shown as {SECRET}")?;
    }
    let text = toml::to_string_pretty(&document).map_err(|e| Failure::new(e.to_string()))?;
    out.write_all(text.as_bytes())?;
    Ok(exit::OK)
}

/// Replaces passwords in addresses, and returns whether there are any.
fn mask(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let masked = match redact(text) {
                Cow::Owned(masked) if text.contains("://") => masked,
                _ => return false,
            };
            *text = masked;
            true
        }
        // Counted, because all of them must be seen.
        Value::Array(items) => items.iter_mut().map(mask).filter(|masked| *masked).count() > 0,
        Value::Object(map) => map.values_mut().map(mask).filter(|masked| *masked).count() > 0,
        _ => false,
    }
}

/// TOML has no null, so a key without a value is left out.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, v| !v.is_null());
        map.values_mut().for_each(drop_nulls);
    }
}
