//! The arguments of `deloop prices`.

use clap::{Args, Subcommand};

pub(crate) const PRICES_HELP: &str = "\
Examples:
  deloop prices                    every model with a price
  deloop prices sonnet             those whose name contains `sonnet`
  deloop prices gpt-5 --json
  deloop prices update model_prices_and_context_window.json
  deloop prices update https://example.com/prices.json
  deloop prices reset              back to the prices that come with deloop

Prices are in dollars per million tokens. `update` reads a table in LiteLLM's format, and deloop uses
it from then on. To price a single model, add it to your configuration, which takes precedence:

  [prices.house-model]
  input = 0.5
  output = 2.0";

/// `deloop prices`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct PricesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<PricesCommand>,
    /// Part of a model's name [default: all models]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The subcommands of `deloop prices`.
#[derive(Debug, Subcommand)]
pub(crate) enum PricesCommand {
    /// Replace the prices by those of a file or URL in LiteLLM's format
    Update {
        /// A file, or an https address
        #[arg(value_name = "FILE|URL")]
        from: String,
        /// Where the prices come from, as `deloop prices` shows it [default: the file or URL]
        #[arg(long, value_name = "TEXT")]
        source: Option<String>,
    },
    /// Return to the prices that come with deloop
    Reset,
}
