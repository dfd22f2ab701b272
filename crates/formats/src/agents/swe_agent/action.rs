use deloop_types::Call;
use serde_json::json;

/// SWE-agent's own commands, which it hands to the model beside the shell.
const COMMANDS: &[&str] = &[
    "append",
    "click_mouse",
    "close_site",
    "connect_exec",
    "connect_sendline",
    "connect_start",
    "connect_stop",
    "create",
    "debug_add_breakpoint",
    "debug_continue",
    "debug_exec",
    "debug_start",
    "debug_step",
    "debug_stop",
    "decompile",
    "disassemble",
    "edit",
    "execute_script_on_page",
    "exit_forfeit",
    "filemap",
    "find_file",
    "goto",
    "insert",
    "open",
    "open_site",
    "screenshot_site",
    "scroll_down",
    "scroll_on_page",
    "scroll_up",
    "search_dir",
    "search_file",
    "str_replace_editor",
    "submit",
    "type_text",
    "undo_edit",
    "view_image",
];

/// The call that an action's text is: one of SWE-agent's own commands with the rest as its input, or else a command
/// for the shell. `None` when there was no action.
pub(super) fn call(action: &str) -> Option<Call> {
    let action = action.trim();
    let (word, rest) = action.split_once(char::is_whitespace).unwrap_or((action, ""));
    match COMMANDS.binary_search(&word) {
        _ if action.is_empty() => None,
        Ok(_) => Some(Call { id: None, tool: word.to_owned(), args: json!({"input": rest}) }),
        Err(_) => Some(Call { id: None, tool: "bash".to_owned(), args: json!({"command": action}) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_commands_keep_their_input_whole() {
        let call = call("edit 4:5\n    total = 0\nend_of_edit\n").unwrap();
        assert_eq!(call.tool, "edit");
        assert_eq!(call.args, json!({"input": "4:5\n    total = 0\nend_of_edit"}));
    }

    #[test]
    fn the_rest_is_for_the_shell() {
        assert_eq!(call("find. -name x\n").unwrap().tool, "bash");
        assert_eq!(call("cd src && open a.rs").unwrap().args, json!({"command": "cd src && open a.rs"}));
        assert_eq!(call("submit\n").unwrap().args, json!({"input": ""}));
        assert!(call(" \n").is_none());
    }

    #[test]
    fn the_commands_are_sorted() {
        assert!(COMMANDS.is_sorted());
    }
}
