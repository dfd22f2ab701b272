//! Finds what a search looks for, as opposed to where and how.

use deloop_types::Call;
use serde_json::Value;

use super::shell::{Script, program_name};
use super::{Effect, Vocabulary, command_line};

/// The arguments of search tools that contain what they look for.
const KEYS: [&str; 8] =
    ["pattern", "query", "regex", "search_string", "search_term", "keyword", "name", "input"];

/// Returns what a search looks for; `None` when its arguments don't show it.
pub(crate) fn sought(call: &Call, vocabulary: &Vocabulary) -> Option<String> {
    if let Some(line) = command_line(&call.args).filter(|_| call.args.get("input").is_none()) {
        let script = Script::parse(&line);
        return script.commands.iter().find_map(|command| {
            let words: Vec<&str> = command.words.iter().map(AsRef::as_ref).collect();
            let words = vocabulary.unwrapped(&words);
            (vocabulary.effect(words) == Effect::Searches).then(|| of_command(words))
        })?;
    }
    let Value::Object(map) = &call.args else { return call.args.as_str().map(str::to_owned) };
    KEYS.iter().find_map(|key| map.get(*key)?.as_str()).map(str::to_owned)
}

fn of_command(words: &[&str]) -> Option<String> {
    let (program, words) = words.split_first()?;
    match program_name(program) {
        "find" => {
            let named = |w: &str| {
                matches!(w, "-name" | "-iname" | "-path" | "-ipath" | "-regex" | "-iregex" | "-wholename")
            };
            let values = words.windows(2).filter(|w| named(w[0])).map(|w| w[1]);
            let values: Vec<&str> = values.collect();
            (!values.is_empty()).then(|| values.join(" "))
        }
        "ls" | "dpkg" => None,
        _ => {
            let given = words.windows(2).find(|w| matches!(w[0], "-e" | "--regexp")).map(|w| &w[1]);
            given.or_else(|| words.iter().find(|w| !w.starts_with('-'))).map(ToString::to_string)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_and_options_do_not_count() {
        let of = |tool: &str, args: Value| {
            sought(&Call::new(tool, args), &Vocabulary::builtin()).unwrap_or_default()
        };
        assert_eq!(of("bash", json!({"command": "cd x && rg -n 'old name' src"})), "old name");
        assert_eq!(of("bash", json!({"command": "find / -type d -name 'java*' 2>/dev/null"})), "java*");
        assert_eq!(of("Grep", json!({"pattern": "a.*b", "path": "src"})), "a.*b");
        assert_eq!(of("bash", json!({"command": "ls -la"})), "");
    }
}
