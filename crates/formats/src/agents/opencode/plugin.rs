//! opencode has no hooks but plugins: programs in JavaScript, of which deloop has one.

use crate::Base;
use crate::hooks::wiring::line::{HookLine, Installed, quoted};
use crate::hooks::wiring::{Installable, Settings, Wiring, WiringError};

pub(crate) const OPENCODE: Installable = Installable {
    name: "opencode",
    title: "opencode",
    alias: None,
    verified: true,
    wiring: &Wiring {
        resume: "opencode --session {session}",
        model: "-m",
        programs: &["opencode"],
        base: Base::Variable("XDG_CONFIG_HOME", ".config"),
        user: "opencode/plugins/deloop.js",
        project: ".opencode/plugins/deloop.js",
        file: Settings::Plugin(include_str!("deloop.js")),
        then: "",
    },
};

/// What begins the one line of the plugin that differs.
const COMMAND: &str = "const COMMAND = ";
/// How the plugin begins.
const FIRST: &str = "// deloop's plugin for opencode,";

pub(crate) fn is_ours(text: &str) -> bool {
    text.starts_with(FIRST)
}

pub(crate) fn install(program: &str, text: Option<&str>, line: &HookLine) -> Result<String, WiringError> {
    if text.is_some_and(|text| !text.trim().is_empty() && !is_ours(text)) {
        let why = "this plugin wasn't written by deloop; move it away, then try again";
        return Err(WiringError(why.to_owned()));
    }
    let mut words = vec![&*line.program, "stream", "--agent", "opencode"];
    words.extend(line.flags().flat_map(|(flag, value)| [flag, value]));
    let words: Vec<String> = words.into_iter().map(|w| serde_json::Value::from(w).to_string()).collect();
    let command = format!("{COMMAND}[{}]", words.join(", "));
    let lines = program.split_inclusive('\n');
    Ok(lines.map(|l| if l.starts_with(COMMAND) { format!("{command}\n") } else { l.to_owned() }).collect())
}

pub(crate) fn installed(text: &str) -> Option<Installed> {
    let line = text.lines().find_map(|l| l.strip_prefix(COMMAND)).filter(|_| is_ours(text))?;
    let words: Vec<String> = serde_json::from_str(line).ok()?;
    let (program, flags) = words.split_first()?;
    let command = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    Some(Installed { line: HookLine::with_flags(program, flags), command })
}
