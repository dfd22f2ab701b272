//! The table of prices: lines of text, sorted by name, so that a lookup reads a dozen of them.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{LongPromptPrice, Price};

/// The built-in table.
const BUILT_IN: &str = include_str!("../../prices.tsv");

/// The start of a table's first lines.
const SOURCE: &str = "# source: ";
const DATE: &str = "# date: ";
/// Stands for a price that a model doesn't have.
const NONE: &str = "-";

/// A table of model prices. Each line has a name, the prices of input, output, cache reads, cache writes and cache
/// writes for one hour in dollars per million tokens, and for each tier of long prompts the length above which it
/// applies and the same five prices. Tabs separate the fields, and `-` stands for none. Lines are sorted by name.
#[derive(Debug, Clone)]
pub struct PriceTable {
    text: Cow<'static, str>,
    /// Where the first line with a price starts.
    start: usize,
}

/// A model's line in the table.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceRow {
    /// The model.
    pub name: String,
    /// Its price.
    pub price: Price,
}

impl Default for PriceTable {
    fn default() -> Self {
        Self::over(Cow::Borrowed(BUILT_IN))
    }
}

impl PriceTable {
    /// Returns the table with this text, which [`to_text`](Self::to_text) or [`of_rows`](Self::of_rows) made. A line
    /// that isn't one of a table has no price.
    #[must_use]
    pub fn from_text(text: String) -> Self {
        Self::over(Cow::Owned(text))
    }

    /// Makes a table. `source` and `date` say where the prices come from.
    #[must_use]
    pub fn of_rows(source: &str, date: &str, mut rows: Vec<PriceRow>) -> Self {
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        let one_line = |text: &str| text.replace(|c: char| c.is_control(), " ");
        let mut text = format!(
            "# Model prices in dollars per million tokens, sorted by name. `deloop prices` shows them.\n\
             {SOURCE}{}\n{DATE}{}\n\
             # name\tinput\toutput\tcache_read\tcache_write\tcache_write_1h, and for long prompts: above, and again\n",
            one_line(source),
            one_line(date)
        );
        for row in &rows {
            row.write(&mut text);
        }
        Self::from_text(text)
    }

    fn over(text: Cow<'static, str>) -> Self {
        let header: usize =
            text.split_inclusive('\n').take_while(|line| line.starts_with('#')).map(str::len).sum();
        Self { text, start: header }
    }

    /// Returns the table as text.
    #[must_use]
    pub fn to_text(&self) -> &str {
        &self.text
    }

    /// Returns where the prices come from, such as `litellm 1.109.1`.
    #[must_use]
    pub fn source(&self) -> &str {
        self.header(SOURCE)
    }

    /// Returns the date of the prices, such as `2026-11-06`.
    #[must_use]
    pub fn date(&self) -> &str {
        self.header(DATE)
    }

    fn header(&self, key: &str) -> &str {
        self.text[..self.start].lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default()
    }

    /// Returns all models with their prices, sorted by name.
    pub fn rows(&self) -> impl Iterator<Item = PriceRow> {
        self.text[self.start..].lines().filter_map(PriceRow::read)
    }

    /// Returns the price of the model with exactly this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Price> {
        let line = self.search(name).ok()?;
        PriceRow::read(line).map(|row| row.price)
    }

    /// Returns the price of the model whose name has the longest beginning in common with `name`, up to the end of a
    /// word or number. The first words must be the same.
    pub(super) fn relative(&self, name: &str) -> Option<Price> {
        let at = match self.search(name) {
            Ok(line) => return PriceRow::read(line).map(|row| row.price),
            Err(at) => at,
        };
        // In a sorted list, the most similar beginnings are next to each other.
        let before = self.text[self.start..at].lines().next_back();
        let after = self.text[at..].lines().next();
        let shared = |line: &&str| shared_beginning(name, name_of(line));
        let closest = [before, after].into_iter().flatten().max_by_key(shared)?;
        (shared(&closest) > 0).then(|| PriceRow::read(closest)).flatten().map(|row| row.price)
    }

    /// Finds the line of a name, or the place where it would be.
    fn search(&self, name: &str) -> Result<&str, usize> {
        let bytes = self.text.as_bytes();
        let (mut low, mut high) = (self.start, bytes.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let begin = bytes[low..middle].iter().rposition(|b| *b == b'\n').map_or(low, |at| low + at + 1);
            let end = bytes[middle..high].iter().position(|b| *b == b'\n').map_or(high, |at| middle + at);
            let line = &self.text[begin..end];
            match name_of(line).cmp(name) {
                Ordering::Equal => return Ok(line),
                Ordering::Less => low = (end + 1).min(high),
                Ordering::Greater => high = begin,
            }
        }
        Err(low)
    }
}

impl PriceRow {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let name = fields.next()?.to_owned();
        let mut next = || fields.next();
        let input = next()?.parse().ok()?;
        let mut price = Price { input, output: next()?.parse().ok()?, ..Price::default() };
        price.cache_read = number(next()?);
        price.cache_write = number(next()?);
        price.cache_write_1h = number(next()?);
        while let Some(above) = next() {
            price.long_prompts.push(LongPromptPrice {
                above: above.parse().ok()?,
                input: next()?.parse().ok()?,
                output: next()?.parse().ok()?,
                cache_read: number(next()?),
                cache_write: number(next()?),
                cache_write_1h: number(next()?),
            });
        }
        Some(Self { name, price })
    }

    fn write(&self, text: &mut String) {
        let Self { name, price } = self;
        let option = |price: Option<f64>| price.map_or_else(|| NONE.to_owned(), |price| price.to_string());
        text.push_str(name);
        let mut add = |field: &str| {
            text.push('\t');
            text.push_str(field);
        };
        for field in
            [Some(price.input), Some(price.output), price.cache_read, price.cache_write, price.cache_write_1h]
        {
            add(&option(field));
        }
        for long in &price.long_prompts {
            add(&long.above.to_string());
            for field in
                [Some(long.input), Some(long.output), long.cache_read, long.cache_write, long.cache_write_1h]
            {
                add(&option(field));
            }
        }
        text.push('\n');
    }
}

fn number(field: &str) -> Option<f64> {
    (field != NONE).then(|| field.parse().ok()).flatten()
}

fn name_of(line: &str) -> &str {
    line.split('\t').next().unwrap_or(line)
}

/// Returns how many bytes two names have in common at their start, up to the end of a word or number; 0 if their first
/// words differ.
fn shared_beginning(a: &str, b: &str) -> usize {
    let letters = |name: &str| name.bytes().take_while(u8::is_ascii_alphabetic).count();
    let word = letters(a);
    if word == 0 || word != letters(b) || a.as_bytes()[..word] != b.as_bytes()[..word] {
        return 0;
    }
    let same = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let kind = |name: &str, at: usize| {
        name.as_bytes().get(at).map(|b| (b.is_ascii_alphabetic(), b.is_ascii_digit()))
    };
    let is_end = |at: usize| {
        let ends =
            |name: &str| kind(name, at - 1) != kind(name, at) || kind(name, at) == Some((false, false));
        ends(a) && ends(b)
    };
    (word..=same).rev().find(|at| is_end(*at)).unwrap_or(word)
}
