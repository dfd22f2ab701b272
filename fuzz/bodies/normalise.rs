//! Any text and any JSON: what is made of them for comparison is bounded, well formed and the same each time.

use deloop_detect::{
    CUT, SECRET, Words, clean, mask, normalise, redact, short_call, test_verdict, write_canonical,
};
use serde_json::Value;

/// # Panics
/// When a derived form breaks its promise.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let masked = mask(&text);
    // Every piece that goes leaves one byte at most; a long text also gets its length written in.
    assert!(masked.len() <= text.len() + 32, "{} of {}", masked.len(), text.len());
    let redacted = redact(&text);
    let secrets = redacted.matches(SECRET).count();
    assert!(redacted.len() <= text.len() + secrets * SECRET.len(), "{redacted}");
    let _ = test_verdict(&text);
    for words in [Words::of_text(&text), Words::of_json(&text), Words::of_text(&masked)] {
        let same = words.jaccard(&words);
        assert!(if words.is_empty() { same == 0.0 } else { same == 1.0 }, "{same}");
    }
    assert!(clean(&text, 40).chars().count() <= 41);
    args(&Value::String(text.clone().into_owned()));
    if let Ok(value) = serde_json::from_str::<Value>(&text) {
        args(&value);
    }
}

fn args(args: &Value) {
    let form = normalise(args);
    assert!(form.chars().count() <= CUT, "{form}");
    assert_eq!(form, normalise(args));
    let _ = Words::of_json(&form);

    let mut canonical = String::new();
    write_canonical(args, &mut canonical);
    let back: Value = serde_json::from_str(&canonical).unwrap_or_else(|e| panic!("{e}: {canonical}"));
    assert_eq!(&back, args, "{canonical}");

    let short = short_call("bash", args);
    let short = short.to_string();
    assert!(short.chars().count() <= 81, "{short}");
    assert!(!short.contains(char::is_control), "{short:?}");
}
