//! `deloop install`, `uninstall` and `status`, on files of settings as people have them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::binary::{deloop, run, said};

const AGENTS: [(&str, &str, &str); 7] = [
    ("claude-code", ".claude/settings.json", ".claude/settings.json"),
    ("codex", ".codex/hooks.json", ".codex/hooks.json"),
    ("gemini-cli", ".gemini/settings.json", ".gemini/settings.json"),
    ("copilot-cli", ".copilot/hooks/deloop.json", ".github/hooks/deloop.json"),
    ("qwen-code", ".qwen/settings.json", ".qwen/settings.json"),
    ("cursor", ".cursor/hooks.json", ".cursor/hooks.json"),
    ("opencode", ".config/opencode/plugins/deloop.js", ".opencode/plugins/deloop.js"),
];

/// Comments, odd indentation, a comma at the end, no newline at the end, a hook of the user's own.
const ODD: &str = "{\n\t// Do not touch.\n\t\"model\" :  \"opus\",\n   \"hooks\": {\n      \"PreToolUse\": [ {\"matcher\":\"Bash\", \"hooks\":[{\"type\":\"command\",\"command\":\"./deloop-hook.sh hook claude-code\"}]} ], /* mine */\n   },\n\t\"env\": {\"A\":\"é\\u00e9\"},}";

/// A home with nobody in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The command, with `deloop` on PATH.
    fn deloop(&self, arguments: &[&str]) -> Command {
        let mut command = deloop(self.path());
        command.env("PATH", Path::new(env!("CARGO_BIN_EXE_deloop")).parent().unwrap());
        command.env("USERPROFILE", self.path()).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run(&mut self.deloop(arguments), b"")
    }

    /// Runs it, which must work, and gives back what it printed.
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
        assert_eq!(said(&output), "");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs it, which must not work, and gives back why.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        said(&output)
    }

    fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn get(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).unwrap()
    }

    /// Every file, with its text.
    fn files(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let text = fs::read_to_string(&path).unwrap();
                    found.push((path, text));
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn what_each_agent_gets() {
    let home = Home::new();
    for (agent, path, _) in AGENTS {
        home.ok(&["install", agent]);
        insta::assert_snapshot!(format!("installed-{agent}"), home.get(path));
    }
}

#[test]
fn the_mode_and_the_profile_are_in_the_command() {
    let home = Home::new();
    for (agent, path, _) in AGENTS {
        home.ok(&["install", agent, "--mode", "enforce", "--profile", "doom-loop"]);
        let text = home.get(path);
        let spaced = text.replace("\", \"", " ");
        assert!(spaced.contains("--mode enforce --profile doom-loop"), "{text}");
        assert!(!text.contains(&*home.path().to_string_lossy()), "deloop is on PATH");
    }
    let error = home.refused(&["install", "codex", "--profile", "doom"]);
    assert!(error.contains("doom-loop"), "{error}");
}

#[test]
fn everything_else_stays_byte_for_byte() {
    let home = Home::new();
    home.put(".claude/settings.json", ODD);
    let printed = home.ok(&["install", "claude-code"]);
    let after = home.get(".claude/settings.json");
    // Take out what was put in, line by line as the diff says: what is left is what was there.
    let added: Vec<&str> = printed.lines().filter(|l| l.starts_with('+') && !l.starts_with("+++")).collect();
    assert!(added.len() > 50, "{printed}");
    for kept in
        ["\t// Do not touch.\n\t\"model\" :  \"opus\",\n", "/* mine */", "\t\"env\": {\"A\":\"é\\u00e9\"},}"]
    {
        assert!(after.contains(kept), "{after}");
    }
    assert!(after.contains("[ {\"matcher\":\"Bash\", \"hooks\":[{\"type\":\"command\",\"command\":\"./deloop-hook.sh hook claude-code\"}]},"), "{after}");
    assert_eq!(home.get(".claude/settings.json.deloop-backup"), ODD);
    assert!(printed.contains("--- ") && printed.contains("+++ ") && printed.contains("@@ "), "{printed}");
}

#[test]
fn a_second_time_changes_nothing_and_another_mode_only_the_command() {
    for (agent, path, _) in AGENTS {
        let home = Home::new();
        if agent == "claude-code" {
            home.put(path, ODD);
        }
        home.ok(&["install", agent]);
        let first = home.files();
        assert!(home.ok(&["install", agent]).contains("already has these hooks"));
        assert_eq!(home.files(), first);
        let nudging = home.get(path);
        home.ok(&["install", agent, "--mode", "enforce"]);
        let enforcing = home.get(path);
        assert_ne!(enforcing, nudging);
        let without = enforcing.replace(" --mode enforce", "").replace(", \"--mode\", \"enforce\"", "");
        assert_eq!(without, nudging, "only the command changed");
    }
}

#[test]
fn uninstalling_gives_back_what_was_there() {
    let windows = "\u{feff}{\r\n  \"a\": 1\r\n}\r\n";
    let olds = [
        ODD,
        windows,
        "{}",
        "",
        "{\"hooks\": {}}\n",
        "{\n  \"hooks\": {\"Stop\": []}\n}\n",
        "{\"a\":[1,\n2]}",
    ];
    for (agent, path, _) in AGENTS {
        for old in olds.into_iter().filter(|_| agent != "opencode").map(Some).chain([None]) {
            let home = Home::new();
            if let Some(old) = old {
                home.put(path, old);
            }
            let before = home.files();
            home.ok(&["install", agent]);
            home.ok(&["install", agent, "--mode", "enforce"]);
            home.ok(&["uninstall", agent]);
            assert_eq!(home.files(), before, "{agent}: {old:?}");
        }
    }
}

#[test]
fn uninstalling_keeps_what_came_since() {
    let home = Home::new();
    home.put(".claude/settings.json", ODD);
    home.ok(&["install", "claude-code"]);
    let edited = home.get(".claude/settings.json").replace("\"opus\"", "\"haiku\"");
    // As if an older release had been installed from elsewhere, in an event that is not used any more.
    let edited =
        edited.replace("\"deloop hook claude-code\"", "\"'/opt/my tools/deloop' hook claude --mode nudge\"");
    home.put(".claude/settings.json", &edited);
    home.ok(&["uninstall"]);
    let after = home.get(".claude/settings.json");
    assert!(
        !after.contains("my tools") && after.contains("\"haiku\"") && after.contains("./deloop-hook.sh hook"),
        "{after}"
    );
    assert_eq!(after.matches("\"command\"").count(), 2, "the user's hook, with its type: {after}");
    assert!(after.contains("// Do not touch.") && after.contains("/* mine */"), "{after}");
    assert_eq!(home.get(".claude/settings.json.deloop-backup"), edited);
    assert!(home.ok(&["uninstall", "claude-code"]).contains("has no deloop hooks"));
    home.ok(&["install", "claude-code"]);
    home.ok(&["uninstall", "claude-code"]);
    assert_eq!(home.get(".claude/settings.json"), after);
}

#[test]
fn a_dry_run_writes_nothing() {
    let home = Home::new();
    home.put(".claude/settings.json", ODD);
    let before = home.files();
    let printed = home.ok(&["install", "claude-code", "codex", "opencode", "--dry-run"]);
    assert!(
        printed.contains("+++ ")
            && printed.contains("deloop hook codex")
            && printed.contains("nothing was changed")
    );
    assert_eq!(home.files(), before);
    assert!(!home.path().join(".codex").exists());
    home.ok(&["install", "claude-code"]);
    let before = home.files();
    home.ok(&["uninstall", "--dry-run"]);
    assert_eq!(home.files(), before);
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone() {
    let broken = [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", "line 2"),
        ("{\n  \"hooks\": {,\n}", "line 2"),
        ("[1]", "no JSON object"),
        ("{\"hooks\": []}", "`hooks` is not an object"),
        ("{\"hooks\": {\"PreToolUse\": {}}}", "`PreToolUse` is not a list"),
        ("{'a': 1}", "line 1"),
    ];
    for (text, why) in broken {
        let home = Home::new();
        home.put(".claude/settings.json", text);
        // The other agent's file is fine, and is left alone as well.
        let error = home.refused(&["install", "codex", "claude-code"]);
        assert!(
            error.contains("settings.json") && error.contains(why) && error.contains("fix it"),
            "{error}"
        );
        assert_eq!(home.files().len(), 1);
        assert_eq!(home.get(".claude/settings.json"), text);
    }
    let home = Home::new();
    home.put(".config/opencode/plugins/deloop.js", "export const Mine = async () => ({})\n");
    assert!(home.refused(&["install", "opencode"]).contains("wasn't written by deloop"));
    home.put(".claude/settings.json", "{");
    assert!(home.ok(&["status"]).contains("unreadable"));
}

#[cfg(unix)]
#[test]
fn links_and_modes_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let home = Home::new();
    let real = home.put("dotfiles/claude.json", "{}\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let link = home.path().join(".claude/settings.json");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(&real, &link).unwrap();
    home.ok(&["install", "claude-code"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert!(link.is_symlink() && fs::read_to_string(&real).unwrap().contains("deloop hook claude-code"));
    assert_eq!((mode(&real), mode(&home.path().join(".claude/settings.json.deloop-backup"))), (0o640, 0o640));
    home.ok(&["uninstall", "claude-code"]);
    assert!(link.is_symlink() && fs::read_to_string(&real).unwrap() == "{}\n");
    fs::remove_file(&real).unwrap();
    assert!(home.refused(&["install", "claude-code"]).contains("is a link to a missing file"));
    assert_eq!(fs::read_dir(link.parent().unwrap()).unwrap().count(), 1, "not even what was begun is left");
}

/// Whoever made a file read-only wanted it to stay as it is.
#[cfg(unix)]
#[test]
fn a_read_only_file_is_left_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let file = home.put(".claude/settings.json", "{}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let error = home.refused(&["install", "claude-code"]);
    assert!(error.contains("is read-only; make it writable first: chmod u+w"), "{error}");
    assert_eq!(home.get(".claude/settings.json"), "{}");
}

/// Root may write everywhere, so that somebody else has to try.
#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_to_is_named_with_the_fix() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let home = Home::new();
    let program = home.path().join("deloop");
    fs::copy(env!("CARGO_BIN_EXE_deloop"), &program).unwrap();
    home.put(".codex/hooks.json", "{}");
    for folder in [home.path().to_owned(), home.path().join(".codex")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
    }
    let mut command = Command::new(&program);
    command.env_clear().env("HOME", home.path()).current_dir("/").args(["install", "codex"]);
    let id = Command::new("id").arg("-u").output().unwrap().stdout;
    if id.trim_ascii() == b"0" {
        command.uid(65534);
    }
    let output = run(&mut command, b"");
    for folder in [home.path().join(".codex"), home.path().to_owned()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let error = said(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("hooks.json") && error.contains("chmod u+w '") && error.contains(".codex'"),
        "{error}"
    );
    assert_eq!(home.get(".codex/hooks.json"), "{}");
}

#[test]
fn a_project_has_settings_of_its_own() {
    for (agent, _, path) in AGENTS {
        let home = Home::new();
        let project = home.path().join("project");
        fs::create_dir(&project).unwrap();
        let mut install = home.deloop(&["install", agent, "--scope", "project"]);
        let output = run(install.current_dir(&project), b"");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert_eq!(home.files().len(), 1);
        assert!(project.join(path).exists(), "{path}");
        let mut status = home.deloop(&["status", "--json"]);
        let status = run(status.current_dir(&project), b"");
        let rows: Value = serde_json::from_slice(&status.stdout).unwrap();
        let row = rows.as_array().unwrap().iter().find(|row| row["agent"] == agent).unwrap();
        assert_eq!(row["installed"][0]["scope"], "project");
        let mut uninstall = home.deloop(&["uninstall", "--scope", "project"]);
        run(uninstall.current_dir(&project), b"");
        assert_eq!(home.files().len(), 0);
    }
}

#[test]
#[cfg(unix)]
fn a_script_on_path_is_not_what_hooks_call() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let launcher = home.put("bin/deloop", "#!/usr/bin/env node\nrequire('../lib/launch');\n");
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = home.deloop(&["install", "claude-code"]);
    command.env("PATH", launcher.parent().unwrap());
    let output = run(&mut command, b"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let settings = home.get(".claude/settings.json");
    assert!(settings.contains(&format!("{} hook claude-code", env!("CARGO_BIN_EXE_deloop"))), "{settings}");
}

#[test]
fn a_program_that_is_not_on_path_is_called_by_where_it_is() {
    let home = Home::new();
    let folder = home.path().join("it's a \"test\"");
    fs::create_dir(&folder).unwrap();
    let program = folder.join(Path::new(env!("CARGO_BIN_EXE_deloop")).file_name().unwrap());
    fs::copy(env!("CARGO_BIN_EXE_deloop"), &program).unwrap();
    for (agent, path, _) in AGENTS {
        let mut command = Command::new(&program);
        command.env_clear().env("HOME", home.path()).env("USERPROFILE", home.path()).args(["install", agent]);
        command.current_dir(home.path());
        let output = run(&mut command, b"");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let rows: Value = serde_json::from_str(&home.ok(&["status", "--json"])).unwrap();
        let row = rows.as_array().unwrap().iter().find(|row| row["agent"] == agent).unwrap();
        assert_eq!(
            row["installed"][0]["program"],
            program.to_string_lossy().replace('\\', "/"),
            "{}",
            home.get(path)
        );
        assert!(!row["note"].as_str().unwrap_or_default().contains("is not there"), "{row}");
    }
    // A shell finds it in the command as it stands.
    #[cfg(unix)]
    for (agent, path, key) in [
        ("gemini-cli", ".gemini/settings.json", "command"),
        ("copilot-cli", ".copilot/hooks/deloop.json", "bash"),
    ] {
        let settings: Value = serde_json::from_str(&home.get(path)).unwrap();
        let entry = settings["hooks"].as_object().unwrap().values().next().unwrap()[0].clone();
        let handler = if agent == "gemini-cli" { &entry["hooks"][0] } else { &entry };
        let mut shell = Command::new("/bin/sh");
        shell.env_clear().env("HOME", home.path()).args(["-c", handler[key].as_str().unwrap()]);
        let output = run(&mut shell, br#"{"hook_event_name":"SessionStart","session_id":"s"}"#);
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
        let rows: Value = serde_json::from_str(&home.ok(&["status", "--json"])).unwrap();
        let row = rows.as_array().unwrap().iter().find(|row| row["agent"] == agent).unwrap().clone();
        assert_eq!(row["calls"], 1, "{row}");
        fs::rename(&folder, home.path().join("gone")).unwrap();
        let output = run(&mut shell, b"{}");
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "a program that is gone");
        fs::rename(home.path().join("gone"), &folder).unwrap();
    }
}

#[test]
fn without_a_name_the_agents_of_this_machine() {
    let home = Home::new();
    let error = home.refused(&["install"]);
    assert!(AGENTS.iter().all(|(agent, _, _)| error.contains(agent)), "{error}");
    fs::create_dir_all(home.path().join(".codex")).unwrap();
    fs::create_dir_all(home.path().join(".config/opencode")).unwrap();
    let printed = home.ok(&["install"]);
    assert!(printed.starts_with("Found on this machine: Codex, opencode.\n"), "{printed}");
    assert!(printed.contains("approve the hooks in /hooks"), "{printed}");
    assert_eq!(home.files().len(), 2);
    let error = home.refused(&["install", "emacs"]);
    assert!(error.contains("cursor"), "{error}");
    assert!(home.ok(&["install", "cursor"]).contains("never tested with Cursor itself"));
    assert!(home.ok(&["install", "--help"]).contains("Cursor (unverified"));
}

#[test]
fn an_unverified_agent_is_installed_only_by_name() {
    let home = Home::new();
    fs::create_dir_all(home.path().join(".cursor")).unwrap();
    assert!(home.refused(&["install"]).contains("no verified agent"));
    fs::create_dir_all(home.path().join(".codex")).unwrap();
    let printed = home.ok(&["install"]);
    assert!(printed.contains("Skipped Cursor") && printed.contains("deloop install cursor"), "{printed}");
    assert!(!home.path().join(".cursor/hooks.json").exists());
    home.ok(&["install", "cursor"]);
    assert!(home.path().join(".cursor/hooks.json").exists());
}

#[test]
fn status_tells_whether_the_hook_is_really_called() {
    let home = Home::new();
    home.put(".claude/settings.json", "{}");
    home.ok(&["install", "claude-code", "--mode", "enforce"]);
    home.ok(&["install", "codex"]);
    home.put(".config/deloop/deloop.toml", "mode = \"shadow\"\n");
    home.put(".gemini/settings.json", "{}");
    let event = br#"{"hook_event_name":"SessionStart","session_id":"s"}"#;
    let output = run(&mut home.deloop(&["hook", "claude"]), event);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    insta::assert_snapshot!("status", home.ok(&["status"]));
    home.ok(&["uninstall"]);
    let printed = home.ok(&["status"]);
    assert!(printed.contains("Claude Code: no hooks in its settings here, but called"), "{printed}");
    home.ok(&["install", "codex"]);
    home.put(
        ".codex/hooks.json",
        &home.get(".codex/hooks.json").replace("deloop hook", "/opt/gone/deloop hook"),
    );
    let printed = home.ok(&["status"]);
    assert!(printed.contains("Codex: its hook calls `/opt/gone/deloop`, which doesn't exist"), "{printed}");
}

/// The plugin of opencode has a `deloop stream`, which nudges at most unless it is told otherwise.
#[test]
fn what_a_plugin_asks_is_noted() {
    let home = Home::new();
    let step = |session: &str, n: usize| {
        format!(
            "{{\"type\":\"call\",\"session\":\"{session}\",\"id\":\"c{n}\",\"tool\":\"bash\",\"args\":{{\"command\":\"make\"}}}}\n\
             {{\"type\":\"result\",\"session\":\"{session}\",\"id\":\"c{n}\",\"output\":\"no\",\"outcome\":\"error\"}}\n"
        )
    };
    let actions = |session: &str, arguments: &[&str]| -> Vec<String> {
        let steps: String = (0..12).map(|n| step(session, n)).collect();
        let output = run(home.deloop(&["stream", "--agent", "opencode"]).args(arguments), steps.as_bytes());
        let answers = crate::binary::lines(&output.stdout);
        answers.iter().map(|answer| answer["action"].as_str().unwrap().to_owned()).collect()
    };
    let nudging = actions("s1", &[]);
    assert!(
        nudging.iter().any(|a| a == "nudge")
            && nudging.iter().all(|a| matches!(a.as_str(), "nudge" | "warn" | "continue"))
    );
    let nudges = nudging.iter().filter(|a| *a == "nudge").count();
    assert_eq!(nudges, 3, "and a reminder when the count has doubled: {nudging:?}");
    assert!(actions("s2", &["--mode", "enforce"]).iter().any(|a| a == "stop"));
    let rows: Value = serde_json::from_str(&home.ok(&["status", "--json"])).unwrap();
    let row = rows.as_array().unwrap().iter().find(|row| row["agent"] == "opencode").unwrap();
    assert_eq!((&row["calls"], &row["sessions"]), (&48.into(), &2.into()));
    assert!(row["decisions"].as_u64().unwrap() >= 3, "{row}");
}

/// What `plugins/` hands out is what `install` writes.
#[test]
fn the_plugins_are_what_install_writes() {
    let home = Home::new();
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
    home.ok(&["install", "claude-code", "opencode"]);
    let handed = |path: &str| fs::read_to_string(plugins.join(path)).unwrap_or_default();
    let pairs = [
        (".claude/settings.json", "claude-code/hooks/hooks.json"),
        (".config/opencode/plugins/deloop.js", "opencode/deloop.js"),
    ];
    for (written, plugin) in pairs {
        assert_eq!(
            handed(plugin),
            home.get(written),
            "plugins/{plugin} is old: copy what `deloop install` writes"
        );
    }
    let manifest: Value = serde_json::from_str(&handed("claude-code/.claude-plugin/plugin.json")).unwrap();
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}
