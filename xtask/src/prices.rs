//! Makes the price table that comes with deloop, with the converter of `deloop prices update`.

use std::process::{Command, ExitCode};

use crate::tools::build_deloop;

const HELP: &str = "\
cargo xtask prices FILE VERSION

Makes crates/policy/prices.tsv from the price table in LiteLLM's Python package:

    pip download litellm --no-deps -d DIR
    unzip -d DIR DIR/litellm-*.whl litellm/model_prices_and_context_window_backup.json
    cargo xtask prices DIR/litellm/model_prices_and_context_window_backup.json VERSION
";

/// The table that comes with deloop.
const TABLE: &str = "crates/policy/prices.tsv";

pub(crate) fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let arguments: Vec<String> = arguments.collect();
    let [file, version] = arguments.as_slice() else {
        eprint!("{HELP}");
        return ExitCode::from(2);
    };
    let Some(deloop) = build_deloop() else { return ExitCode::FAILURE };
    // A state folder of its own, so that the user's prices stay.
    let state = std::env::temp_dir().join(format!("deloop-prices-{}", std::process::id()));
    let mut update = Command::new(deloop);
    update.args(["prices", "update", file, "--source", &format!("litellm {version}")]);
    update.env("XDG_STATE_HOME", &state).env("LOCALAPPDATA", &state);
    let is_updated = update.status().is_ok_and(|status| status.success());
    let copied = is_updated.then(|| std::fs::copy(state.join("deloop/prices.tsv"), TABLE));
    let _ = std::fs::remove_dir_all(&state);
    match copied {
        Some(Ok(_)) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("{TABLE}: {error}");
            ExitCode::FAILURE
        }
        None => ExitCode::FAILURE,
    }
}
