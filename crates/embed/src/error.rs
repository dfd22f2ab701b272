use std::error::Error;
use std::fmt;

/// Why there is no embedding.
#[derive(Debug)]
#[non_exhaustive]
pub enum EmbedError {
    /// A file of the model can't be read as what it should be.
    Model {
        /// The file's name in the model's folder.
        file: &'static str,
        /// What is wrong with it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The model's tokenizer has a part that isn't supported.
    Unsupported {
        /// Which part: `normalizer`, `pre_tokenizer` or `model`.
        part: &'static str,
        /// Its type, as tokenizer.json names it.
        name: String,
    },
    /// The endpoint didn't answer, or answered with an error.
    Endpoint(Box<dyn Error + Send + Sync>),
    /// The endpoint's answer isn't a list of embeddings.
    Answer(String),
}

impl EmbedError {
    pub(crate) fn model(file: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Model { file, source: source.into() }
    }
}

impl fmt::Display for EmbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model { file, source } => write!(f, "{file}: {source}"),
            Self::Unsupported { part, name } => write!(
                f,
                "tokenizer.json: the {part} `{name}` isn't supported; use a WordPiece model, or serve this one at an endpoint"
            ),
            Self::Endpoint(source) => write!(f, "the endpoint: {source}"),
            Self::Answer(why) => write!(f, "the endpoint's answer: {why}"),
        }
    }
}

impl Error for EmbedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Model { source, .. } | Self::Endpoint(source) => Some(source.as_ref()),
            Self::Unsupported { .. } | Self::Answer(_) => None,
        }
    }
}
