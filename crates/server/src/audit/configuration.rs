use deloop_detect::write_canonical;
use deloop_engine::Options;
use serde_json::{Value, json};

/// Returns the hash that identifies a configuration in the records: of the merged profile and settings, the mode, and
/// whether a person is there. The same configuration has the same hash on every machine.
#[must_use]
pub fn configuration_hash(document: &Value, options: &Options) -> String {
    let whole = json!({"configuration": document, "mode": options.mode, "attended": options.attended});
    let mut text = String::new();
    write_canonical(&whole, &mut text);
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use deloop_types::Mode;

    use super::*;

    #[test]
    fn it_depends_on_every_setting_and_on_no_order() {
        let of = |text: &str, mode, attended| {
            configuration_hash(&serde_json::from_str(text).unwrap(), &Options::new(mode, attended))
        };
        let one = of(r#"{"a":1,"b":{"c":2,"d":3}}"#, Mode::Enforce, false);
        assert_eq!(one, of(r#"{"b":{"d":3,"c":2},"a":1}"#, Mode::Enforce, false));
        for other in [
            of(r#"{"a":1,"b":{"c":2,"d":4}}"#, Mode::Enforce, false),
            of(r#"{"a":1,"b":{"c":2,"d":3}}"#, Mode::Nudge, false),
            of(r#"{"a":1,"b":{"c":2,"d":3}}"#, Mode::Enforce, true),
        ] {
            assert_ne!(one, other);
        }
    }
}
