//! Embeddings for `deloop hook`, which ends with its reply: a process in the background computes them.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use deloop_detect::Fingerprint;
use deloop_live::{EmbeddingSource, SqliteJournal};
use deloop_types::Millis;
use serde::{Deserialize, Serialize};

use super::args::EmbedArgs;
use super::provider::{Provider, prepared};
use crate::args::RuleArgs;
use crate::config::{self, Config};
use crate::exit::{self, Failure};
use crate::state::{State, now};

/// Maximum size of all requests of one hook, in bytes: what a pipe takes without a reader.
const ROOM: usize = 48 << 10;
/// After a failure, nothing is requested for this time, in milliseconds.
const REST: u64 = 60_000;

/// Texts to embed.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct EmbeddingRequests {
    texts: Vec<RequestedText>,
}

#[derive(Serialize, Deserialize)]
struct RequestedText {
    fingerprint: Fingerprint,
    text: String,
}

/// The embeddings in the database, and what to compute in the background.
pub(crate) struct HookEmbeddings<'a> {
    journal: &'a SqliteJournal,
    model: String,
    now: Millis,
    requests: RefCell<EmbeddingRequests>,
}

impl<'a> HookEmbeddings<'a> {
    /// Returns `None` if the profile doesn't compare embeddings, or the configuration names no usable model.
    pub(crate) fn open(config: &Config, journal: &'a SqliteJournal) -> Option<Self> {
        if !config.profile.compares_embeddings() {
            return None;
        }
        let model = Provider::of(&config.embeddings).ok().flatten()?.id;
        Some(Self { journal, model, now: now(), requests: RefCell::default() })
    }

    /// Returns what to compute.
    pub(crate) fn into_requests(self) -> EmbeddingRequests {
        self.requests.into_inner()
    }

    fn rests(&self) -> bool {
        let failed = self.journal.embedding_failure(&self.model).ok().flatten();
        failed.is_some_and(|failed| self.now.since(failed) < REST)
    }
}

impl EmbeddingSource for HookEmbeddings<'_> {
    fn ready(&self, text: Fingerprint) -> Option<Vec<f32>> {
        self.journal.embedding(&self.model, text).ok().flatten()
    }

    fn request(&self, text: &str) {
        if self.rests() {
            return;
        }
        let fingerprint = Fingerprint::of_bytes(text.as_bytes());
        self.requests.borrow_mut().texts.push(RequestedText { fingerprint, text: prepared(text) });
    }
}

/// Starts the process that computes them. A failure leaves the turns to be compared by words.
pub(crate) fn start(requests: &EmbeddingRequests, rules: &RuleArgs) {
    if requests.texts.is_empty() {
        return;
    }
    let Ok(body) = serde_json::to_vec(requests) else { return };
    let Ok(program) = std::env::current_exe() else { return };
    if body.len() > ROOM {
        return;
    }
    let mut command = Command::new(program);
    command.arg("embed").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(file) = &rules.config {
        command.arg("--config").arg(file);
    }
    // In a group of its own, so that it isn't ended together with the agent's hook.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    if let Ok(mut child) = command.spawn()
        && let Some(mut input) = child.stdin.take()
    {
        let _ = input.write_all(&body);
    }
}

/// Computes the embeddings of the texts on standard input and stores them.
pub(crate) fn embed(args: &EmbedArgs) -> Result<u8, Failure> {
    let mut text = Vec::new();
    std::io::stdin().lock().take(2 * ROOM as u64).read_to_end(&mut text)?;
    let requests: EmbeddingRequests = serde_json::from_slice(&text)?;
    let config = config::load_for_hook(&args.rules);
    let Some(provider) = Provider::of(&config.embeddings)? else { return Ok(exit::OK) };
    let state = State::here()?;
    let journal = state.open()?;
    let stored = |e: deloop_store::StoreError| Failure::new(e.to_string());
    let texts: Vec<&str> = requests.texts.iter().map(|one| one.text.as_str()).collect();
    let computed = provider
        .load()
        .and_then(|embedder| embedder.embed(&texts).map_err(|e| Failure::new(format!("embeddings: {e}"))));
    let vectors = match computed {
        Ok(vectors) => vectors,
        Err(failure) => {
            journal.set_embedding_failure(&provider.id, Some(now())).map_err(stored)?;
            if let Failure::Message(why) = &failure {
                state.log("embed", why);
            }
            return Err(failure);
        }
    };
    for (one, vector) in requests.texts.iter().zip(vectors) {
        journal.keep_embedding(&provider.id, one.fingerprint, &vector, now()).map_err(stored)?;
    }
    journal.set_embedding_failure(&provider.id, None).map_err(stored)?;
    Ok(exit::OK)
}
