//! Model prices.

use std::collections::BTreeMap;

use deloop_types::Usage;
use serde::Deserialize;

use crate::Price;

/// The built-in prices.
const LIST: &str = include_str!("../prices.toml");

/// Model prices in dollars per million tokens: the built-in list and the user's own, which take precedence.
#[derive(Debug, Clone)]
pub struct Prices {
    date: String,
    listed: BTreeMap<String, Price>,
    own: BTreeMap<String, Price>,
}

#[derive(Deserialize)]
struct PriceList {
    date: String,
    prices: BTreeMap<String, Price>,
}

impl Prices {
    /// Reads the built-in list and adds the user's `own` prices, which take precedence.
    ///
    /// # Errors
    /// When the embedded list isn't valid TOML.
    pub fn new(own: BTreeMap<String, Price>) -> Result<Self, toml::de::Error> {
        let PriceList { date, prices } = toml::from_str(LIST)?;
        Ok(Self { date, listed: prices, own })
    }

    /// Returns the date of the list, such as `2026-11-06`.
    #[must_use]
    pub fn date(&self) -> &str {
        &self.date
    }

    /// Returns a model's price: by its exact name, else by its name without vendor, date or version suffix.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<&Price> {
        let find = |prices| candidates(model).find_map(|name| BTreeMap::get(prices, name));
        find(&self.own).or_else(|| find(&self.listed))
    }

    /// Returns the cost of a request in dollars: the agent's own figure if there is one, else its tokens at the
    /// price of its model; `None` if that price is unknown.
    ///
    /// ```
    /// use deloop_policy::Prices;
    /// use deloop_types::Usage;
    /// let prices = Prices::new(Default::default())?;
    /// let mut usage = Usage::default();
    /// (usage.model, usage.input_tokens) = (Some("claude-sonnet-4-5".into()), 1_000_000);
    /// assert_eq!(prices.cost(&usage), Some(3.0));
    /// usage.model = Some("mystery".into());
    /// assert_eq!(prices.cost(&usage), None);
    /// # Ok::<(), toml::de::Error>(())
    /// ```
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        usage.cost_usd.or_else(|| Some(self.of(usage.model.as_deref()?)?.cost(usage)))
    }
}

impl Price {
    /// Returns the cost of a request's tokens at this price, in dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let cache_read = self.cache_read.unwrap_or(self.input);
        let cache_write = self.cache_write.unwrap_or(self.input);
        let dollars = usage.input_tokens as f64 * self.input
            + usage.output_tokens as f64 * self.output
            + usage.cache_read_tokens as f64 * cache_read
            + usage.cache_write_tokens as f64 * cache_write;
        dollars / 1e6
    }
}

/// Returns the names of a model, most specific first: `anthropic/claude-opus-4-5-20251101`, then without the vendor,
/// then without a date or version suffix.
fn candidates(model: &str) -> impl Iterator<Item = &str> {
    let own = model.rsplit('/').next().unwrap_or(model);
    let own_dotted = own.strip_prefix("anthropic.").unwrap_or(own);
    [model, own, own_dotted, undated(own_dotted)].into_iter()
}

/// Returns a model's name without `-20251101`, `-2025-11-01`, `@20251101`, `-latest` or `[1m]` at its end.
#[must_use]
pub fn undated(name: &str) -> &str {
    let name = name.split_once('[').map_or(name, |(before, _)| before);
    let name = name.split_once("-v1:").map_or(name, |(before, _)| before);
    if let Some(before) = name.strip_suffix("-latest") {
        return before;
    }
    let is_date = |text: &str| {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        digits == 8 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
    };
    for length in [8, 10] {
        let Some(cut) = name.len().checked_sub(length + 1) else { continue };
        if name.is_char_boundary(cut)
            && let Some(date) = name[cut..].strip_prefix(['-', '@'])
            && is_date(date)
        {
            return &name[..cut];
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_its_name_with_or_without_a_date() {
        let prices = Prices::new(BTreeMap::new()).unwrap();
        for name in [
            "claude-sonnet-4-5",
            "claude-sonnet-4-5-20250929",
            "claude-sonnet-4-5@20250929",
            "anthropic/claude-sonnet-4-5",
            "anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5-latest",
            "claude-sonnet-4-5-20250929[1m]",
        ] {
            assert_eq!(prices.of(name).map(|p| p.input), Some(3.0), "{name}");
        }
        assert_eq!(prices.of("gpt-4o-2024-08-06").map(|p| p.output), Some(10.0));
        assert_eq!(prices.of("gpt-5.1-codex-mini").map(|p| p.output), Some(2.0));
    }

    #[test]
    fn an_unknown_model_has_no_price() {
        let prices = Prices::new(BTreeMap::new()).unwrap();
        for name in
            ["", "claude", "claude-sonnet-9", "claude-sonnet-4-5-turbo", "gpt-5.1-ü2025110", "<synthetic>"]
        {
            assert_eq!(prices.of(name), None, "{name}");
        }
    }

    #[test]
    fn the_users_price_wins_and_names_what_is_unknown() {
        let own = Price { input: 1.0, output: 2.0, ..Price::default() };
        let prices =
            Prices::new(BTreeMap::from([("gpt-5".to_owned(), own), ("house-model".to_owned(), own)]))
                .unwrap();
        assert_eq!(prices.of("gpt-5-2025-08-07"), Some(&own));
        assert_eq!(prices.of("house-model"), Some(&own));
    }

    #[test]
    fn the_list_is_sane() {
        let prices = Prices::new(BTreeMap::new()).unwrap();
        assert!(deloop_types::Millis::parse(&format!("{}T00:00:00Z", prices.date)).is_some());
        for (name, price) in &prices.listed {
            let read = price.cache_read.unwrap_or(price.input);
            assert!(read <= price.input && price.input < price.output && price.output <= 200.0, "{name}");
            assert!(price.cache_write.is_none_or(|w| w >= price.input), "{name}");
        }
    }
}
