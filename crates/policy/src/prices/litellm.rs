//! Reads the price table of LiteLLM, which covers most models that agents run.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::names::{candidates, undated};
use super::{LongPromptPrice, Price, PriceRow, PriceTable};

/// What models an agent would run are used for, as LiteLLM calls it.
const MODES: [&str; 3] = ["chat", "responses", "completion"];

/// The providers that sell models of their own, whose names are known without the provider. If two sell the same model,
/// the first counts.
const VENDORS: [&str; 16] = [
    "anthropic",
    "openai",
    "gemini",
    "deepseek",
    "moonshot",
    "zai",
    "xai",
    "minimax",
    "mistral",
    "xiaomi_mimo",
    "inception",
    "meta",
    "amazon_nova",
    "cohere_chat",
    "dashscope",
    "tencent",
];

/// The providers that sell other vendors' models at list price, which include models that the vendor no longer lists. The
/// first counts.
const RESELLERS: [&str; 4] = ["bedrock", "vertex_ai", "github_copilot", "vercel_ai_gateway"];

/// A higher price per million tokens is a mistake in the table.
const HIGHEST: f64 = 1000.0;

/// What keeps a text from being LiteLLM's price table.
#[derive(Debug)]
pub enum PriceTableError {
    /// The text isn't a JSON object.
    NotJson(serde_json::Error),
    /// It has no model with a price.
    NoPrices,
}

impl std::fmt::Display for PriceTableError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotJson(error) => write!(f, "not a JSON object: {error}"),
            Self::NoPrices => {
                f.write_str("no chat model has `input_cost_per_token` and `output_cost_per_token`")
            }
        }
    }
}

impl std::error::Error for PriceTableError {}

/// How a model's name relates to those of others. Earlier ones take precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Listing {
    /// Under its bare name.
    Bare,
    /// By a vendor, whose place in [`VENDORS`] this is.
    Vendor(usize),
    /// By a provider that sells at list price, whose place in [`RESELLERS`] this is.
    Reseller(usize),
    /// In a region, at a price that may be higher there.
    Region,
    /// By a host that sets its own price.
    Host,
}

struct ModelEntry {
    listing: Listing,
    name: String,
    price: Price,
}

/// Makes a table from the text of LiteLLM's `model_prices_and_context_window.json`. It has each model once, under its bare
/// name if possible. `source` and `date` say where the text comes from.
///
/// # Errors
/// When the text isn't a JSON object, or has no prices.
pub fn table_from_litellm(json: &[u8], source: &str, date: &str) -> Result<PriceTable, PriceTableError> {
    let models: Map<String, Value> = serde_json::from_slice(json).map_err(PriceTableError::NotJson)?;
    let mut entries: Vec<ModelEntry> = models.iter().filter_map(|(key, model)| entry(key, model)).collect();
    if entries.is_empty() {
        return Err(PriceTableError::NoPrices);
    }
    // A name without a date comes first, then the latest.
    entries.sort_by(|a, b| {
        let dated = |entry: &ModelEntry| undated(&entry.name) != entry.name;
        a.listing.cmp(&b.listing).then(dated(a).cmp(&dated(b))).then_with(|| b.name.cmp(&a.name))
    });
    let mut table: BTreeMap<String, Price> = BTreeMap::new();
    for ModelEntry { listing, name, price } in entries {
        let known = candidates(&name).iter().find_map(|name| table.get(name));
        match known {
            Some(known) if *known == price => {}
            Some(_) if listing == Listing::Bare => {
                table.entry(name).or_insert(price);
            }
            Some(_) if listing != Listing::Region => {}
            _ => {
                table.entry(canonical(&name).to_owned()).or_insert(price);
            }
        }
    }
    let rows = table.into_iter().map(|(name, price)| PriceRow { name, price }).collect();
    Ok(PriceTable::of_rows(source, date, rows))
}

fn entry(key: &str, model: &Value) -> Option<ModelEntry> {
    let text = |field: &str| model.get(field).and_then(Value::as_str);
    let mut price = price(model).filter(|price| price.output <= HIGHEST)?;
    let is_plain = key.bytes().all(|b| b.is_ascii_graphic()) && !key.starts_with(['#', '-']);
    if !is_plain || key.starts_with("ft:") || !MODES.contains(&text("mode")?) {
        return None;
    }
    let provider = text("litellm_provider").unwrap_or_default();
    let key = key.to_ascii_lowercase();
    let (listing, name) = listed(&key, provider);
    if name.contains("claude-") && price.cache_write.is_some() && price.cache_write_1h.is_none() {
        // Anthropic's rule, which LiteLLM doesn't repeat for older models.
        price.cache_write_1h = Some(2.0 * price.input);
        price.long_prompts.iter_mut().for_each(|long| long.cache_write_1h = Some(2.0 * long.input));
    }
    Some(ModelEntry { listing, name: name.to_owned(), price })
}

/// Returns a name without its date, unless too little would be left to name a model.
fn canonical(name: &str) -> &str {
    let short = undated(name);
    if short.contains(|c: char| c == '-' || c.is_ascii_digit()) { short } else { name }
}

/// Returns how a model is listed, and the name that it gets.
fn listed<'a>(key: &'a str, provider: &str) -> (Listing, &'a str) {
    let last = key.rsplit('/').next().unwrap_or(key);
    if let Some((_, rest)) = key.split_once('/') {
        if let Some(place) = VENDORS.iter().position(|vendor| *vendor == provider) {
            return (Listing::Vendor(place), rest);
        }
        // Vertex AI has a provider for each vendor, such as `vertex_ai-anthropic_models`.
        let place = RESELLERS.iter().position(|reseller| provider.starts_with(reseller));
        if let Some(place) = place.filter(|place| *place > 0 && !last.ends_with("-maas")) {
            return (Listing::Reseller(place), last);
        }
        return (Listing::Host, key);
    }
    if !provider.starts_with("bedrock") {
        return (Listing::Bare, key);
    }
    match key.strip_prefix("anthropic.") {
        Some(claude) => (Listing::Reseller(0), claude),
        None => (Listing::Region, key),
    }
}

/// Returns the price of a model that has one.
fn price(model: &Value) -> Option<Price> {
    let tiers = model.get("tiered_pricing").and_then(Value::as_array);
    let (first, rest) = match tiers.and_then(|tiers| tiers.split_first()) {
        Some((first, rest)) if first.get("range").is_some() => (first, rest),
        _ => (model, [].as_slice()),
    };
    let base = rates(first, "", 0)?;
    let mut price = Price {
        input: base.input,
        output: base.output,
        cache_read: base.cache_read,
        cache_write: base.cache_write,
        cache_write_1h: base.cache_write_1h,
        long_prompts: Vec::new(),
    };
    for tier in rest {
        let above = tier.get("range").and_then(|range| range.get(0)).and_then(Value::as_f64)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of tokens")]
        price.long_prompts.extend(rates(tier, "", above as u64));
    }
    for key in model.as_object()?.keys() {
        let thousands =
            key.strip_prefix("input_cost_per_token_above_").and_then(|k| k.strip_suffix("k_tokens"));
        if let Some(thousands) = thousands.and_then(|number| number.parse::<u64>().ok()) {
            let suffix = format!("_above_{thousands}k_tokens");
            price.long_prompts.extend(rates(model, &suffix, thousands.saturating_mul(1000)));
        }
    }
    price.long_prompts.sort_by_key(|long| long.above);
    for long in &mut price.long_prompts {
        // Some tiers don't repeat what stays the same, and some name prices that the model otherwise doesn't have.
        long.cache_read = price.cache_read.and_then(|read| long.cache_read.or(Some(read)));
        long.cache_write = price.cache_write.and_then(|write| long.cache_write.or(Some(write)));
        long.cache_write_1h = price.cache_write_1h.and_then(|write| long.cache_write_1h.or(Some(write)));
    }
    Some(price)
}

/// Reads the five prices whose keys end with `suffix`, if input and output have one.
fn rates(model: &Value, suffix: &str, above: u64) -> Option<LongPromptPrice> {
    let cost = |key: &str| model.get(format!("{key}{suffix}")).and_then(Value::as_f64).and_then(per_million);
    Some(LongPromptPrice {
        above,
        input: cost("input_cost_per_token")?,
        output: cost("output_cost_per_token")?,
        cache_read: cost("cache_read_input_token_cost"),
        cache_write: cost("cache_creation_input_token_cost"),
        cache_write_1h: cost("cache_creation_input_token_cost_above_1hr"),
    })
}

/// Returns the price of a million tokens, to a millionth of a dollar; `None` if they are free.
fn per_million(dollars: f64) -> Option<f64> {
    let price = (dollars * 1e12).round() / 1e6;
    (price.is_finite() && price > 0.0).then_some(price)
}
