//! The arguments of `deloop similarity` and `deloop embed`.

use clap::Args;

use crate::args::RuleArgs;

pub(crate) const SIMILARITY_HELP: &str = "\
Examples:
  deloop similarity 'check price and decide trade' 'check price and decide on trade'
  deloop similarity 'analyze the price movement' 'examine how prices changed'

The detector similar-turn compares turns by words, or by embeddings if you set
`by = \"embeddings\"`. Use this command to see both for your own texts before you choose a
threshold. Embeddings come from the model or endpoint in `[embeddings]` of your configuration.";

/// `deloop similarity`
#[derive(Debug, Args)]
pub(crate) struct SimilarityArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// The first text
    pub(crate) a: String,
    /// The second text
    pub(crate) b: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `deloop embed`
#[derive(Debug, Args)]
pub(crate) struct EmbedArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}
