//! The Steps of session files, in pieces.

use std::path::Path;

use deloop_bind::{StepFile, StepFileError};
use deloop_types::Step;
use napi::{Error, Result, Status};
use napi_derive::napi;

/// The Steps of a session file, as JavaScript reads them: in pieces.
#[napi(js_name = "Steps")]
pub struct NodeSteps {
    path: String,
    /// `None` once the file is over or closed.
    file: Option<StepFile>,
    /// What the next call fails with, after the steps that came before.
    failed: Option<Error>,
    notes: Vec<String>,
}

#[napi]
impl NodeSteps {
    /// Opens a file. Without a format, its first bytes tell it.
    #[napi(constructor, catch_unwind)]
    pub fn new(path: String, format: Option<String>) -> Result<Self> {
        match StepFile::open(Path::new(&path), format.as_deref()) {
            Ok(file) => Ok(Self { path, file: Some(file), failed: None, notes: Vec::new() }),
            Err(error) => Err(failure(&path, &error)),
        }
    }

    /// Returns at most this many of the next steps, as a JSON list; null at the end.
    #[napi(catch_unwind)]
    pub fn next(&mut self, most: u32) -> Result<Option<String>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let Some(file) = &mut self.file else { return Ok(None) };
        let mut steps: Vec<Step> = Vec::new();
        for step in file.by_ref().take(most as usize) {
            match step {
                Ok(step) => steps.push(step),
                Err(error) => {
                    self.failed = Some(failure(&self.path, &error));
                    break;
                }
            }
        }
        if steps.is_empty() {
            self.close();
            return self.failed.take().map_or(Ok(None), Err);
        }
        serde_json::to_string(&steps)
            .map(Some)
            .map_err(|error| Error::new(Status::GenericFailure, error.to_string()))
    }

    /// Stops reading.
    #[napi(catch_unwind)]
    pub fn close(&mut self) {
        if let Some(file) = self.file.take() {
            self.notes = file.notes().to_vec();
        }
    }

    /// Returns what couldn't be read, once the file is over.
    #[napi(catch_unwind)]
    pub fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

fn failure(path: &str, error: &StepFileError) -> Error {
    match error {
        StepFileError::Io(error) => Error::new(Status::GenericFailure, format!("{path}: {error}")),
        StepFileError::Format(error) => Error::new(Status::InvalidArg, error.to_string()),
    }
}
