//! What kind of thing a tool does, by its name; users declare what the name does not tell.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a tool does, as far as repetition is concerned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// Shows something and changes nothing.
    Read,
    /// Changes something.
    Write,
    /// Runs shell commands.
    Run,
    /// Looks for something.
    Search,
    /// Waits for something that runs elsewhere: repeating it is its purpose.
    Poll,
    /// Shows the next piece of something long.
    Page,
    /// Talks to a person or to another agent, or keeps notes.
    Talk,
    /// Runs tests.
    Test,
    /// Anything else.
    #[default]
    Other,
}

/// What a user says about one tool: `[tools.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolRule {
    /// What the tool does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The arguments that say what a call is about; the others do not tell one call from another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
    /// How often the same call may come in a row before it counts as repeated; for a poll, its budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// What is known about tools: the names that agents use, and what the user declared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Tools(BTreeMap<String, ToolRule>);

impl Tools {
    /// These rules, by tool name.
    #[must_use]
    pub fn new(rules: BTreeMap<String, ToolRule>) -> Self {
        Self(rules)
    }

    /// What the user said about this tool.
    #[must_use]
    pub fn rule(&self, tool: &str) -> Option<&ToolRule> {
        if self.0.is_empty() { None } else { self.0.get(tool) }
    }

    /// What a tool does: as declared, else as its name says.
    ///
    /// ```
    /// use deloop_detect::{ToolKind, Tools};
    /// let tools = Tools::default();
    /// assert_eq!(tools.kind("run_shell_command"), ToolKind::Run);
    /// assert_eq!(tools.kind("mcp__fs__read_file"), ToolKind::Read);
    /// assert_eq!(tools.kind("frobnicate"), ToolKind::Other);
    /// ```
    #[must_use]
    pub fn kind(&self, tool: &str) -> ToolKind {
        self.rule(tool).and_then(|rule| rule.kind).unwrap_or_else(|| by_name(tool))
    }
}

/// Whole names, lower-cased, with `_`, `-` and spaces left out.
const NAMES: &[(ToolKind, &[&str])] = &[
    (
        ToolKind::Run,
        &[
            "bash",
            "shell",
            "sh",
            "zsh",
            "terminal",
            "runcommand",
            "executecommand",
            "exec",
            "execcommand",
            "runshellcommand",
            "shellcommand",
            "localshell",
            "runinterminal",
            "executebash",
            "runterminalcmd",
            "powershell",
            "cmd",
            "console",
            "developershell",
            "runbash",
            "bashtool",
            "containerexec",
        ],
    ),
    (
        ToolKind::Poll,
        &[
            "bashoutput",
            "taskoutput",
            "writestdin",
            "sleep",
            "wait",
            "readbash",
            "getterminaloutput",
            "waitagent",
            "agentoutput",
            "taskget",
            "monitor",
            "waitforinput",
            "commandstatus",
        ],
    ),
    (
        ToolKind::Page,
        &["scroll", "scrolldown", "scrollup", "pagedown", "pageup", "goto", "nextpage", "prevpage"],
    ),
    (
        ToolKind::Talk,
        &[
            "todowrite",
            "todoread",
            "updateplan",
            "writetodos",
            "think",
            "askuserquestion",
            "askuser",
            "task",
            "agent",
            "exitplanmode",
            "reportintent",
            "reportprogress",
            "sendmessage",
            "transfertohumanagents",
            "finish",
            "submit",
            "finalanswer",
            "attemptcompletion",
            "message",
        ],
    ),
];

/// Words in a name, tried in this order.
const WORDS: &[(ToolKind, &[&str])] = &[
    (ToolKind::Poll, &["poll", "wait", "sleep", "status", "await"]),
    (ToolKind::Page, &["scroll", "page", "paginate", "next"]),
    (
        ToolKind::Write,
        &[
            "write",
            "edit",
            "create",
            "update",
            "delete",
            "remove",
            "insert",
            "replace",
            "patch",
            "apply",
            "multiedit",
            "append",
            "move",
            "rename",
            "set",
            "add",
            "book",
            "cancel",
            "send",
            "submit",
            "modify",
            "undo",
        ],
    ),
    (ToolKind::Search, &["search", "grep", "find", "glob", "query", "rg"]),
    (
        ToolKind::Read,
        &["read", "view", "open", "get", "list", "ls", "cat", "fetch", "show", "lookup", "load"],
    ),
    (ToolKind::Run, &["bash", "shell", "terminal", "exec", "command"]),
];

fn by_name(tool: &str) -> ToolKind {
    // An MCP tool is called after its server: mcp__SERVER__TOOL.
    let own = tool.rsplit("__").next().unwrap_or(tool);
    let mut squeezed = [0_u8; 32];
    let mut length = 0;
    for byte in own.bytes().filter(u8::is_ascii_alphanumeric).take(squeezed.len()) {
        squeezed[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    let squeezed = &squeezed[..length];
    let whole = NAMES.iter().find(|(_, names)| names.iter().any(|n| n.as_bytes() == squeezed));
    if let Some((kind, _)) = whole {
        return *kind;
    }
    if crate::test_runs::is_test_tool(own) {
        return ToolKind::Test;
    }
    let has = |wanted: &&str| name_words(own).any(|word| word.eq_ignore_ascii_case(wanted));
    WORDS.iter().find(|(_, words)| words.iter().any(has)).map_or(ToolKind::Other, |(kind, _)| *kind)
}

/// The words of a tool's name: `runTests`, `run_tests` and `run-tests` have the same two.
pub(crate) fn name_words(name: &str) -> impl Iterator<Item = &str> {
    let bytes = name.as_bytes();
    let starts = |i: usize| bytes[i].is_ascii_uppercase() && i > 0 && bytes[i - 1].is_ascii_lowercase();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && !bytes[at].is_ascii_alphanumeric() {
            at += 1;
        }
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_alphanumeric() && (at == start || !starts(at)) {
            at += 1;
        }
        (at > start).then(|| name.get(start..at).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_tools_are_known() {
        use ToolKind::{Other, Page, Poll, Read, Run, Search, Talk, Test, Write};
        for (kind, names) in [
            (
                Run,
                &[
                    "Bash",
                    "shell",
                    "exec_command",
                    "run_shell_command",
                    "run_in_terminal",
                    "developer__shell",
                ][..],
            ),
            (Read, &["Read", "read_file", "view", "get_user_details", "list_directory", "WebFetch"]),
            (
                Write,
                &[
                    "Edit",
                    "Write",
                    "MultiEdit",
                    "apply_patch",
                    "str_replace",
                    "create_file",
                    "update_reservation",
                ],
            ),
            (Search, &["Grep", "Glob", "search_dir", "web_search", "find_file"]),
            (Poll, &["BashOutput", "write_stdin", "wait_for_job", "job_status"]),
            (Page, &["scroll_down", "goto", "page_down"]),
            (Talk, &["TodoWrite", "update_plan", "think", "Task"]),
            (Test, &["run_tests", "runTests", "pytest"]),
            (Other, &["frobnicate", "calculate", ""]),
        ] {
            for name in names {
                assert_eq!(Tools::default().kind(name), kind, "{name}");
            }
        }
    }

    #[test]
    fn a_declared_kind_wins() {
        let rule = ToolRule { kind: Some(ToolKind::Poll), ..ToolRule::default() };
        let tools = Tools::new(BTreeMap::from([("bash".to_owned(), rule)]));
        assert_eq!(tools.kind("bash"), ToolKind::Poll);
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(
            name_words("runTests_now-HTTPGet").collect::<Vec<_>>(),
            ["run", "Tests", "now", "HTTPGet"]
        );
    }
}
