use deloop_types::Call;
use serde_json::Value;

use super::command::{COMMAND_ARGUMENTS, command_line};
use super::{PatternOf, Vocabulary};
use crate::{Fingerprint, ToolKind, short_hash};

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
    let carried = (kind == ToolKind::Run && args.values().any(Value::is_array))
        .then(|| COMMAND_ARGUMENTS.iter().find(|name| args.get(**name).is_some_and(Value::is_array)))
        .flatten();
    let mut own = Vec::with_capacity(args.len());
    let (mut described, mut limited) = (false, 0);
    let command = carried.map(|_| command_line(&call.args).map_or(Value::Null, Value::from));
    for (name, value) in args {
        let kinds = vocabulary.kinds(name);
        let (limits, describes) = (kinds.has(PatternOf::Limit), kinds.has(PatternOf::Description));
        described |= limits || describes;
        match &command {
            _ if limits => limited ^= limit_hash(name, value),
            _ if describes => {}
            Some(command) if carried.is_some_and(|carries| carries == name) => own.push((name, command)),
            _ => own.push((name, value)),
        }
    }
    if !described && carried.is_none() {
        return None;
    }
    let limits = if limited == 0 { 0 } else { limited.to_le_bytes()[0].max(1) };
    // A tool whose arguments all describe is known by them.
    (!own.is_empty()).then(|| Identity { signature: Fingerprint::of_entries(&call.tool, &mut own), limits })
}

/// Hashes an argument that limits a call. Most are numbers.
fn limit_hash(name: &str, value: &Value) -> u64 {
    let value = match value {
        Value::Number(number) if number.is_u64() => short_hash(&number.as_u64().unwrap_or(0).to_le_bytes()),
        other => Fingerprint::of_call("", other).short(),
    };
    short_hash(name.as_bytes()) ^ value
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
