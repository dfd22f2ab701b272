use deloop_types::Call;
use serde_json::{Map, Value};

use super::command::{COMMAND_ARGUMENTS, command_line};
use super::{PatternOf, Vocabulary};
use crate::{Fingerprint, ToolKind};

/// What identifies a call among others for `default`, if that isn't all of its arguments.
pub(crate) struct Identity {
    /// Without the arguments that describe or limit it, and with the command that a list of words carries.
    pub(crate) signature: Fingerprint,
    /// Hash of the arguments that limit it; 0 without any.
    pub(crate) limits: u8,
}

/// Returns what identifies a call, if that isn't all of its arguments.
pub(crate) fn identity(call: &Call, kind: ToolKind, vocabulary: &Vocabulary) -> Option<Identity> {
    let Value::Object(args) = &call.args else { return None };
    let limits = |name: &str| vocabulary.is_a(PatternOf::Limit, name);
    let describes = |name: &str| vocabulary.is_a(PatternOf::Description, name) || limits(name);
    let carried = (kind == ToolKind::Run)
        .then(|| COMMAND_ARGUMENTS.iter().find(|name| args.get(**name).is_some_and(Value::is_array)))
        .flatten();
    if carried.is_none() && !args.keys().any(|name| describes(name)) {
        return None;
    }
    let mut own: Map<String, Value> = Map::new();
    for (name, value) in args.iter().filter(|(name, _)| !describes(name)) {
        let value = match carried {
            Some(carries) if carries == name => command_line(&call.args).map_or(Value::Null, Value::from),
            _ => value.clone(),
        };
        own.insert(name.clone(), value);
    }
    let limited: Map<String, Value> = args
        .iter()
        .filter(|(name, _)| limits(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let limits = match limited.is_empty() {
        true => 0,
        false => Fingerprint::of_call("", &Value::Object(limited)).short().to_le_bytes()[0].max(1),
    };
    // A tool whose arguments all describe is known by them.
    (!own.is_empty())
        .then(|| Identity { signature: Fingerprint::of_call(&call.tool, &Value::Object(own)), limits })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(args: Value) -> Option<Fingerprint> {
        identity(&Call::new("Bash", args), ToolKind::Run, &Vocabulary::builtin())
            .map(|identity| identity.signature)
    }

    #[test]
    fn what_describes_a_call_is_no_part_of_it() {
        let one = of(json!({"command": "pwd", "description": "Where am I?"}));
        assert!(one.is_some());
        assert_eq!(one, of(json!({"command": "pwd", "description": "Change the folder", "timeout": 5000})));
        assert_ne!(one, of(json!({"command": "ls", "description": "Where am I?"})));
        assert_eq!(of(json!({"command": "pwd"})), None);
        assert_eq!(of(json!({"description": "x"})), None);
    }

    #[test]
    fn a_list_of_words_is_the_command_that_it_carries() {
        let list = of(json!({"command": ["bash", "-lc", "ls"], "timeout_ms": 120_000}));
        assert_eq!(list, of(json!({"command": ["/bin/sh", "-c", "ls"]})));
        assert_eq!(list, Some(Fingerprint::of_call("Bash", &json!({"command": "ls"}))));
    }
}
