//! OpenAI-compatible endpoints: `POST {"model": …, "input": […]}` returns `{"data": [{"index": 0, "embedding": […]}]}`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use ureq::Agent;

use crate::{EmbedError, Embedder};

/// Maximum size of an answer, in bytes.
const ANSWER: u64 = 64 << 20;

/// Where an endpoint is, and how long to wait for it.
#[derive(Debug, Clone)]
pub struct EndpointOptions {
    /// The URL, such as `http://127.0.0.1:11434/v1/embeddings`.
    pub url: String,
    /// The model's name.
    pub model: String,
    /// The API key, if the endpoint needs one.
    pub key: Option<String>,
    /// How long a request may take.
    pub timeout: Duration,
}

/// An OpenAI-compatible endpoint.
pub struct Endpoint {
    options: EndpointOptions,
    agent: Agent,
}

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [&'a str],
}

#[derive(Deserialize)]
struct EmbeddingAnswer {
    data: Vec<AnswerItem>,
}

#[derive(Deserialize)]
struct AnswerItem {
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Endpoint {
    /// Creates an endpoint. Nothing is sent yet.
    #[must_use]
    pub fn new(options: EndpointOptions) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(options.timeout))
            // A redirect could lead the texts and the key elsewhere.
            .max_redirects(0)
            .max_redirects_will_error(true)
            .build();
        Self { options, agent: config.into() }
    }

    fn ask(&self, texts: &[&str]) -> Result<Vec<u8>, ureq::Error> {
        let request = EmbeddingRequest { model: &self.options.model, input: texts };
        let body = serde_json::to_vec(&request).map_err(std::io::Error::other)?;
        let mut post = self.agent.post(&self.options.url).header("content-type", "application/json");
        if let Some(key) = &self.options.key {
            post = post.header("authorization", format!("Bearer {key}"));
        }
        post.send(&body[..])?.body_mut().with_config().limit(ANSWER).read_to_vec()
    }
}

impl Embedder for Endpoint {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let answer = self.ask(texts).map_err(|e| EmbedError::Endpoint(e.into()))?;
        let EmbeddingAnswer { mut data } =
            serde_json::from_slice(&answer).map_err(|e| EmbedError::Answer(e.to_string()))?;
        if data.iter().all(|item| item.index.is_some()) {
            data.sort_by_key(|item| item.index);
        }
        if data.len() != texts.len() {
            return Err(EmbedError::Answer(format!("{} embeddings for {} texts", data.len(), texts.len())));
        }
        Ok(data.into_iter().map(|item| item.embedding).collect())
    }
}
