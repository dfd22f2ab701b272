//! The target of a call, whatever its optional arguments: the structural fingerprint.

use serde_json::Value;

use super::canonical::write_canonical;
use super::command::{command_line, files_read};
use super::shell::Script;
use super::tools::ToolKind;
use crate::Fingerprint;

/// The arguments that identify the target of a call.
const PRIMARY: [&str; 10] =
    ["command", "content", "file_path", "filename", "limit", "offset", "path", "pattern", "query", "url"];

/// Returns the structural fingerprint: the tool and its primary arguments. For a shell command that only shows a file,
/// it is the file, whichever program shows it.
///
/// ```
/// use deloop_detect::{ToolKind, target};
/// use serde_json::json;
/// let of = |command| target("bash", &json!({"command": command}), ToolKind::Run);
/// assert_eq!(of("cat foo.ts"), of("head -n 5 foo.ts"));
/// assert_ne!(of("cat foo.ts"), of("cat foo.ts | grep x"));
/// ```
#[must_use]
pub fn target(tool: &str, args: &Value, kind: ToolKind) -> Fingerprint {
    if kind == ToolKind::Run
        && let Some(line) = command_line(args)
    {
        let script = Script::parse(&line);
        if !script.plain {
            return Fingerprint::of_call(tool, args);
        }
        if let [command] = script.commands.as_slice()
            && let Some(files) = files_read(command)
        {
            return Fingerprint::of_bytes(format!("{tool}:file_read:{}", files.join("\0")).as_bytes());
        }
    }
    let primary = |map: &serde_json::Map<String, Value>| PRIMARY.iter().any(|key| map.contains_key(*key));
    match args {
        Value::Object(map) if primary(map) => {
            let mut text = format!("{tool}\0{{");
            for key in PRIMARY {
                if let Some(value) = map.get(key) {
                    text.push_str(key);
                    text.push(':');
                    write_canonical(value, &mut text);
                    text.push(',');
                }
            }
            Fingerprint::of_bytes(text.as_bytes())
        }
        _ => Fingerprint::of_call(tool, args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn optional_arguments_do_not_count() {
        let of = |args| target("read", &args, ToolKind::Read);
        assert_eq!(of(json!({"path": "a", "encoding": "x"})), of(json!({"path": "a"})));
        assert_ne!(of(json!({"path": "a", "offset": 10})), of(json!({"path": "a"})));
        assert_ne!(of(json!({"name": "a"})), of(json!({"name": "b"})));
    }

    #[test]
    fn quoted_operators_are_part_of_the_name() {
        let of = |command| target("bash", &json!({"command": command, "timeout": 5}), ToolKind::Run);
        let other = |command| target("bash", &json!({"command": command}), ToolKind::Run);
        assert_eq!(of("cat 'a|b'"), other("tail 'a|b'"));
        assert_ne!(of("ls | wc"), other("ls | wc"));
        assert_eq!(of("ls -a"), other("ls -a"));
    }
}
