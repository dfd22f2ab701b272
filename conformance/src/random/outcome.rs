//! Made-up results.

use serde_json::{Value, json};

use super::Rng;

/// A result that fails `fails` times in a hundred; of a test run, perhaps with a closing line.
pub(super) fn result(rng: &mut Rng, fails: usize, tests: bool) -> Value {
    let failed = rng.percent(fails);
    let mut result = if tests && rng.percent(50) {
        told_by_output(rng, failed)
    } else if rng.percent(6) {
        neither(rng)
    } else if failed {
        rng.pick(&[
            json!({"ok": false, "output": "error: no such file"}),
            json!({"ok": false}),
            json!({"outcome": "error", "output": {"code": 1}}),
            json!({"outcome": "timeout"}),
            json!({"ok": false, "outcome": "error", "output": "exit 2"}),
            json!({"outcome": "invalid", "output": "unknown argument"}),
            json!({"error_type": "ENOENT", "output": "no such file"}),
        ])
    } else {
        rng.pick(&[
            json!({"ok": true, "output": "done"}),
            json!({"ok": true}),
            json!({"outcome": "ok", "output": ["a", "b"]}),
        ])
    };
    result["type"] = json!("result");
    result
}

/// Nothing that counts for or against the call.
fn neither(rng: &mut Rng) -> Value {
    rng.pick(&[
        json!({"outcome": "denied"}),
        json!({"outcome": "cancelled"}),
        json!({"output": "some text"}),
        json!({}),
    ])
}

fn told_by_output(rng: &mut Rng, failed: bool) -> Value {
    let closing = if failed {
        [
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "== 2 failed, 3 passed in 0.1s ==",
        ]
    } else {
        [
            "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "===== 5 passed in 0.12s =====",
        ]
    };
    let output = format!("running\n{}\n", rng.pick(&closing));
    match rng.below(4) {
        0 if failed => json!({"ok": false, "output": output}),
        0 | 1 => json!({"ok": true, "output": output}),
        2 => json!({"outcome": "ok", "output": output}),
        _ => json!({ "output": output }),
    }
}
