//! Model prices: what requests cost, and how much each kind of token weighs.

mod litellm;
mod names;
mod price;
mod table;
mod weights;

use std::collections::BTreeMap;

use deloop_types::Usage;

pub use litellm::{PriceTableError, table_from_litellm};
pub use names::undated;
pub use price::{LongPromptPrice, Price};
pub use table::{PriceRow, PriceTable};

use self::names::candidates;
use self::weights::TokenWeights;

/// Model prices in dollars per million tokens: a table, and the user's own prices, which take precedence.
///
/// Creating it is cheap: the table is searched, never parsed as a whole.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    table: PriceTable,
    own: BTreeMap<String, Price>,
}

impl Prices {
    /// Returns the built-in table with the user's `own` prices, which take precedence.
    #[must_use]
    pub fn new(own: BTreeMap<String, Price>) -> Self {
        Self::with_table(own, PriceTable::default())
    }

    /// Does the same with another table.
    #[must_use]
    pub fn with_table(own: BTreeMap<String, Price>, table: PriceTable) -> Self {
        Self { table, own }
    }

    /// Returns the table.
    #[must_use]
    pub fn table(&self) -> &PriceTable {
        &self.table
    }

    /// Returns the date of the table, such as `2026-11-06`.
    #[must_use]
    pub fn date(&self) -> &str {
        self.table.date()
    }

    /// Returns a model's price: by its exact name, else by its name without region, vendor, date or version.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<Price> {
        let names = candidates(model);
        let own = |name: &String| self.own.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        let own = names.iter().find_map(own).map(|(_, price)| price.clone());
        own.or_else(|| names.iter().find_map(|name| self.table.find(name)))
    }

    /// Returns the cost of a request in dollars: the agent's own figure if there is one, else its tokens at the
    /// price of its model; `None` if that price is unknown.
    ///
    /// ```
    /// use deloop_policy::Prices;
    /// use deloop_types::Usage;
    /// let prices = Prices::new(Default::default());
    /// let mut usage = Usage::default();
    /// (usage.model, usage.input_tokens) = (Some("claude-sonnet-4-5".into()), 1_000_000);
    /// assert_eq!(prices.cost(&usage), Some(3.0));
    /// usage.model = Some("mystery".into());
    /// assert_eq!(prices.cost(&usage), None);
    /// ```
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        usage.dollars().or_else(|| Some(self.of(usage.model.as_deref()?)?.cost(usage)))
    }

    /// Returns a request's tokens as input tokens of the same price: an output token counts as many times as it costs
    /// more than an input token. The ratios are those of the model, else of the most similar name of its family, else
    /// generic ones. So requests of models without a price can be compared, too.
    #[must_use]
    pub fn weighted_tokens(&self, usage: &Usage) -> f64 {
        let model = usage.model.as_deref();
        let price = model.and_then(|model| self.of(model));
        self.weights(model, price.as_ref()).sum(usage)
    }

    /// Fills in the cost and the weighted tokens of a request, unless it has them.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from f64 saturates")]
    pub fn complete(&self, usage: &mut Usage) {
        if usage.dollars().is_some() && usage.weighted_tokens.is_some() {
            return;
        }
        let model = usage.model.as_deref();
        let price = model.and_then(|model| self.of(model));
        let weighted = self.weights(model, price.as_ref()).sum(usage).round() as u64;
        let cost = price.map(|price| price.cost(usage));
        usage.weighted_tokens = usage.weighted_tokens.or(Some(weighted));
        usage.cost_usd = usage.dollars().or(cost);
    }

    fn weights(&self, model: Option<&str>, price: Option<&Price>) -> TokenWeights {
        let of_family = || {
            let names = candidates(model?);
            // The last candidate is the bare name, without host, date and version.
            self.table.relative(names.last()?)
        };
        price.cloned().or_else(of_family).and_then(|price| TokenWeights::of(&price)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
