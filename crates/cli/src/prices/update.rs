//! `deloop prices update` and `deloop prices reset`.

use std::io::Write;
use std::path::Path;

use deloop_policy::{PriceTable, table_from_litellm};

use super::fetch::{fetch, is_url};
use super::stored;
use crate::exit::{self, Failure};
use crate::redaction::harmless;
use crate::safe_file::{self, Links};
use crate::scan::numbers::plural;
use crate::state::now;

/// Maximum size of a price table, in bytes. LiteLLM's has about 3 MB.
pub(super) const LARGEST: u64 = 16 << 20;

pub(super) fn run(from: &str, source: Option<&str>, out: &mut dyn Write) -> Result<u8, Failure> {
    let json = if is_url(from) {
        fetch(from)?
    } else {
        let read = safe_file::read(Path::new(from), LARGEST, Links::Follow);
        read.map_err(|e| Failure::new(format!("{}: {e}", harmless(from))))?
    };
    let today = now().to_string();
    let date = today.get(..10).unwrap_or(&today);
    // An address may hold a token.
    let plain = from.split(['?', '#']).next().unwrap_or(from);
    let plain = if plain.contains('@') { "a URL with a user name" } else { plain };
    let source = source.unwrap_or(if is_url(from) { plain } else { from });
    let table = table_from_litellm(&json, source, date).map_err(|error| {
        let format = "deloop reads the format of LiteLLM's model_prices_and_context_window.json";
        Failure::new(format!("{}: {error}; {format}", harmless(plain)))
    })?;
    let file = stored::store(&table)?;
    writeln!(
        out,
        "Stored {} in {}. `deloop prices reset` returns to the built-in ones.",
        plural(table.rows().count() as u64, "price"),
        harmless(&file.to_string_lossy())
    )?;
    Ok(exit::OK)
}

pub(super) fn reset(out: &mut dyn Write) -> Result<u8, Failure> {
    let was_stored = stored::delete()?;
    let built_in = PriceTable::default();
    let then = if was_stored { "deloop uses" } else { "Nothing to reset: deloop already uses" };
    writeln!(out, "{then} its built-in prices ({}, {}).", built_in.source(), built_in.date())?;
    Ok(exit::OK)
}
