//! `deloop prices`: the prices that apply.

use std::collections::BTreeMap;
use std::io::Write;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use deloop_policy::{LongPromptPrice, Price, PriceRow};
use serde_json::json;

use super::in_use;
use crate::args::RuleArgs;
use crate::config;
use crate::exit::{self, Failure};
use crate::redaction::harmless;
use crate::scan::numbers::{count, plural};

/// A model's price, and whether the user set it.
struct ListedPrice {
    row: PriceRow,
    own: bool,
}

pub(super) fn run(name: Option<&str>, json: bool, out: &mut dyn Write) -> Result<u8, Failure> {
    let own = config::load(&RuleArgs::default())?.prices()?;
    let prices = in_use(own.clone());
    let (source, date) = (harmless(prices.table().source()), harmless(prices.date()));
    let wanted = name.unwrap_or_default().to_ascii_lowercase();
    let mut models: BTreeMap<String, ListedPrice> = BTreeMap::new();
    models.extend(prices.table().rows().map(|row| (row.name.clone(), ListedPrice { row, own: false })));
    for (name, price) in own {
        models.insert(name.to_ascii_lowercase(), ListedPrice { row: PriceRow { name, price }, own: true });
    }
    models.retain(|name, _| name.contains(&wanted));
    if json {
        let models: Vec<_> = models
            .values()
            .map(|model| json!({"name": model.row.name, "own": model.own, "price": model.row.price}))
            .collect();
        serde_json::to_writer_pretty(&mut *out, &json!({"source": source, "date": date, "models": models}))?;
        writeln!(out)?;
        return Ok(exit::OK);
    }
    if models.is_empty() {
        writeln!(out, "No price for `{}`. To add one, see `deloop prices --help`.", harmless(&wanted))?;
    } else {
        print(models.values(), out)?;
        writeln!(out)?;
    }
    writeln!(
        out,
        "{} of {source}, {date}, in dollars per million tokens.",
        plural(models.len() as u64, "price")
    )?;
    Ok(exit::OK)
}

fn print<'a>(models: impl Iterator<Item = &'a ListedPrice>, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["model", "input", "output", "cache read", "cache write", "for 1 h", ""]);
    for ListedPrice { row, own } in models {
        let Price { input, output, cache_read, cache_write, cache_write_1h, ref long_prompts } = row.price;
        let note = if *own { "yours" } else { "" };
        table.add_row(cells(
            &harmless(&row.name),
            [Some(input), Some(output), cache_read, cache_write, cache_write_1h],
            note,
        ));
        for long in long_prompts {
            let LongPromptPrice { above, input, output, cache_read, cache_write, cache_write_1h } = *long;
            let name = format!("  prompts over {}", count(above));
            table.add_row(cells(
                &name,
                [Some(input), Some(output), cache_read, cache_write, cache_write_1h],
                "",
            ));
        }
    }
    for column in 1..=5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in table.lines() {
        writeln!(out, "{}", line.strip_prefix(' ').unwrap_or(&line).trim_end())?;
    }
    Ok(())
}

fn cells(name: &str, prices: [Option<f64>; 5], note: &str) -> Vec<Cell> {
    let number =
        |price: Option<f64>| Cell::new(price.map_or_else(|| "-".to_owned(), |price| price.to_string()));
    let mut cells = vec![Cell::new(name)];
    cells.extend(prices.map(number));
    cells.push(Cell::new(note));
    cells
}
