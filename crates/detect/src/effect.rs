//! What a shell command does: whether it may change something, wait, search, or only move about.

use crate::shell::{Script, SimpleCommand};

/// What a command does, as far as progress is concerned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) writes: bool,
    pub(crate) waits: bool,
    pub(crate) searches: bool,
    pub(crate) moves: bool,
    /// Its numbers are what it is for.
    pub(crate) measures: bool,
    /// Goes from one state to another and back: that is a change each time.
    pub(crate) switches: bool,
}

impl Effect {
    pub(crate) fn of(script: &Script<'_>) -> Self {
        let any = |f: fn(&SimpleCommand<'_>) -> bool| script.commands.iter().any(f);
        Self {
            writes: script.redirects || any(writes),
            waits: any(|c| matches!(c.program(), "sleep" | "wait" | "watch" | "inotifywait")),
            searches: main_program(script).is_some_and(searches),
            measures: any(measures),
            switches: any(switches),
            moves: !script.commands.is_empty() && script.commands.iter().all(|c| moves(c.program())),
        }
    }
}

/// The program a command is about: the first that does not only prepare.
pub(crate) fn main_program<'a>(script: &'a Script<'_>) -> Option<&'a str> {
    let prepares = |c: &&SimpleCommand<'_>| {
        moves(c.program()) || matches!(c.program(), "export" | "source" | "set" | ".")
    };
    let main = script.commands.iter().find(|c| !prepares(c)).or_else(|| script.commands.first());
    main.map(SimpleCommand::program)
}

fn measures(command: &SimpleCommand<'_>) -> bool {
    let benchmark = |word: &str| word.contains("bench");
    matches!(command.program(), "hyperfine" | "wrk" | "ab" | "k6" | "perf" | "time" | "vegeta" | "iperf3")
        || benchmark(command.program())
        || command.arguments().iter().any(|a| benchmark(a.as_ref()))
}

fn switches(command: &SimpleCommand<'_>) -> bool {
    let arguments = command.arguments();
    command.program() == "git"
        && arguments.first().is_some_and(|a| {
            matches!(a.as_ref(), "stash" | "checkout" | "switch" | "bisect" | "worktree" | "revert")
        })
}

fn moves(program: &str) -> bool {
    matches!(program, "cd" | "pushd" | "popd")
}

fn searches(program: &str) -> bool {
    matches!(
        program,
        "find"
            | "grep"
            | "egrep"
            | "fgrep"
            | "rg"
            | "ag"
            | "ack"
            | "fd"
            | "ls"
            | "which"
            | "whereis"
            | "locate"
            | "dpkg"
    )
}

fn writes(command: &SimpleCommand<'_>) -> bool {
    let arguments = command.arguments();
    let has = |wanted: &[&str]| arguments.iter().any(|a| wanted.contains(&a.as_ref()));
    match command.program() {
        "mv" | "cp" | "rm" | "mkdir" | "rmdir" | "touch" | "chmod" | "chown" | "ln" | "tee" | "patch"
        | "unzip" | "tar" | "make" | "export" | "dd" | "truncate" | "install" => true,
        "sed" | "perl" => arguments.iter().any(|a| a.starts_with("-i") || a.starts_with("--in-place")),
        "git" => has(&[
            "apply",
            "checkout",
            "reset",
            "stash",
            "commit",
            "merge",
            "rebase",
            "add",
            "rm",
            "restore",
            "pull",
            "switch",
            "clone",
            "mv",
            "revert",
            "cherry-pick",
        ]),
        "pip" | "pip3" | "npm" | "yarn" | "pnpm" | "cargo" | "apt" | "apt-get" | "brew" | "go" | "uv"
        | "poetry" | "gem" | "bundle" => has(&[
            "install",
            "add",
            "i",
            "ci",
            "get",
            "remove",
            "uninstall",
            "sync",
            "fmt",
            "fix",
            "update",
            "upgrade",
        ]),
        "python" | "python3" | "node" | "bash" | "sh" => has(&["-"]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_told_from_the_command() {
        let of = |text: &str| Effect::of(&Script::parse(text));
        for text in [
            "sed -i s/a/b/ x",
            "echo a > b",
            "cat > f <<'E'\nx\nE",
            "git add -A",
            "npm install",
            "mkdir x && cd x",
        ] {
            assert!(of(text).writes, "{text}");
        }
        for text in [
            "sed -n 1p x",
            "cargo test 2>&1",
            "ls > /dev/null 2>&1",
            "git status",
            "grep -r '>' .",
            "npm test",
        ] {
            assert!(!of(text).writes, "{text}");
        }
        assert!(of("sleep 30 && cat log").waits && of("cd ..").moves && !of("cd x && ls").moves);
        assert!(of("cd x && find . -name y").searches && !of("cat x | grep y").searches);
    }
}
