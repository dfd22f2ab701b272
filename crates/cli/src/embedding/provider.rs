//! The model or endpoint that the configuration names.

use std::path::{Path, PathBuf};
use std::time::Duration;

use deloop_detect::{Fingerprint, redact};
use deloop_embed::{Embedder, Endpoint, EndpointOptions, StaticModel};
use deloop_policy::EmbeddingsBlock;

use crate::config::from_home;
use crate::exit::Failure;
use crate::safe_file::{self, Links};

/// Maximum size of a model, in bytes.
const LARGEST: u64 = 2 << 30;
/// Maximum length of a text, in bytes. The rest of a longer one is ignored.
const LONGEST: usize = 8 << 10;
/// How long a request may take by default, in milliseconds.
const TIMEOUT: u64 = 10_000;

/// Where embeddings come from.
pub(super) struct Provider {
    /// Identifies the model, so that embeddings of different models are never compared.
    pub(super) id: String,
    kind: ProviderKind,
}

enum ProviderKind {
    Model(PathBuf),
    Endpoint(EndpointOptions),
}

impl Provider {
    /// Returns what the configuration names; `None` if it names nothing.
    pub(super) fn of(block: &EmbeddingsBlock) -> Result<Option<Self>, Failure> {
        match (&block.model, &block.endpoint) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                Err(Failure::new("`embeddings` names a model and an endpoint; remove one of them"))
            }
            (Some(folder), None) => Ok(Some(Self::model(&from_home(folder)))),
            (None, Some(url)) => {
                let name = block.name.clone().ok_or_else(|| {
                    Failure::new("`embeddings.endpoint` needs `embeddings.name`, the model's name there")
                })?;
                let key = match &block.key_variable {
                    None => None,
                    Some(variable) => Some(std::env::var(variable).map_err(|_| {
                        Failure::new(format!("`embeddings.key_variable`: {variable} isn't set"))
                    })?),
                };
                let timeout = Duration::from_millis(block.timeout_ms.unwrap_or(TIMEOUT));
                let id = format!("endpoint {url} {name}");
                let options = EndpointOptions { url: url.clone(), model: name, key, timeout };
                Ok(Some(Self { id, kind: ProviderKind::Endpoint(options) }))
            }
        }
    }

    fn model(folder: &Path) -> Self {
        let about = std::fs::metadata(folder.join("model.safetensors"));
        let changed = about.as_ref().ok().and_then(|about| about.modified().ok());
        let id = format!("{}\0{:?}\0{changed:?}", folder.display(), about.map(|about| about.len()).ok());
        let id = format!("model {}", Fingerprint::of_bytes(id.as_bytes()));
        Self { id, kind: ProviderKind::Model(folder.to_owned()) }
    }

    /// Returns whether it answers within microseconds.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.kind, ProviderKind::Model(_))
    }

    /// Returns the embedder. A model is read from its folder.
    pub(super) fn load(&self) -> Result<Box<dyn Embedder>, Failure> {
        let folder = match &self.kind {
            ProviderKind::Endpoint(options) => return Ok(Box::new(Endpoint::new(options.clone()))),
            ProviderKind::Model(folder) => folder,
        };
        let read = |name: &str| {
            let path = folder.join(name);
            safe_file::read(&path, LARGEST, Links::Follow)
                .map_err(|e| Failure::new(format!("`embeddings.model`: {}: {e}", path.display())))
        };
        let model =
            StaticModel::new(&read("config.json")?, &read("tokenizer.json")?, &read("model.safetensors")?);
        let model =
            model.map_err(|e| Failure::new(format!("`embeddings.model`: {}: {e}", folder.display())))?;
        Ok(Box::new(model))
    }
}

/// Returns the form of a text that is embedded: without secrets, and not longer than needed.
pub(super) fn prepared(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    redact(&text[..end]).into_owned()
}
