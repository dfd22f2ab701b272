//! What the server reads of bytes that others wrote, for the fuzz target `requests`. No part of the API.

use axum::http::Uri;
use deloop_engine::Checkpoint;
use deloop_store::EventCursor;
use deloop_types::{Decision, SessionId};

use crate::KeyFile;
use crate::audit::{AuditHead, read_line};
use crate::caller_options::CallerOptions;
use crate::money::OverrideRequest;
use crate::routes::read_object;
use crate::step_batch::StepBatch;

/// Reads bytes as the body, query, file or line of this kind.
///
/// # Panics
/// When reading panics, or when what was read can't be answered.
pub fn read_request(kind: u8, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match kind % 7 {
        0 => read_steps(bytes, false),
        1 => read_steps(bytes, true),
        2 => drop(read_object::<Checkpoint>(bytes)),
        3 => drop(serde_json::from_slice::<OverrideRequest>(bytes)),
        4 => drop(KeyFile::parse(bytes)),
        5 => {
            drop(text.parse::<EventCursor>());
            drop(AuditHead::parse(&text));
            drop(text.parse::<Uri>().map(|uri| CallerOptions::read(&uri)));
        }
        _ => read_line(bytes),
    }
}

fn read_steps(body: &[u8], lines: bool) {
    let mut steps = Vec::new();
    let Ok(batch) = StepBatch::read(body, lines, &mut steps) else { return };
    assert_eq!(batch.len(), steps.len(), "a step is counted once");
    let decisions: Vec<Decision> = steps.iter().map(|_| Decision::go_on(SessionId::from("s"), 0)).collect();
    let decisions: Vec<_> = decisions.into_iter().map(Ok).collect();
    let answer = batch.answer(&decisions).expect("decisions can be written");
    let answers = serde_json::Deserializer::from_slice(&answer).into_iter::<serde::de::IgnoredAny>();
    assert!(answers.into_iter().all(|answer| answer.is_ok()), "{}", answer.escape_ascii());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the seeds of the fuzz target, each as every kind, whole and cut off anywhere.
    #[test]
    fn the_seeds_are_read_or_refused() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/requests");
        let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(seeds.len() >= 10, "{}", seeds.len());
        for seed in seeds {
            let bytes = std::fs::read(seed).unwrap();
            for kind in 0..7 {
                for end in 1..=bytes.len() {
                    read_request(kind, &bytes[1..end]);
                }
            }
        }
    }
}
