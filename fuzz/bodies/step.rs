//! Any bytes: they are a Step or an error; a Step, written and read back, is the same Step.

use deloop_types::Step;

/// # Panics
/// When a Step does not survive its own JSON.
pub(crate) fn run(data: &[u8]) {
    match Step::from_slice(data) {
        Ok(step) => {
            let line = serde_json::to_string(&step).expect("a Step can be written");
            assert!(!line.contains('\n'), "a Step is one line: {line}");
            let again = Step::from_slice(line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}"));
            assert_eq!(step, again, "{line}");
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
    }
}
