//! deloop in a folder that somebody else filled: nothing of it is run, nothing outside is written, every command ends.

#![cfg(unix)]

mod races;
mod trusted;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::binary::{deloop, run, said};
use crate::wait::wait_for;

const BASHRC: &str = "# mine\n";

/// A user's home, a folder that somebody else filled, and what neither of them is.
struct World {
    outer: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { outer: tempfile::tempdir().unwrap() };
        for folder in ["home", "repo", "outside", "tmp"] {
            fs::create_dir(world.at(folder)).unwrap();
        }
        fs::write(world.at("home/.bashrc"), BASHRC).unwrap();
        fs::write(world.at("outside/file"), BASHRC).unwrap();
        world
    }

    fn at(&self, path: &str) -> PathBuf {
        self.outer.path().join(path)
    }

    /// Puts a file into the world, with its folders.
    fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn link(&self, to: impl AsRef<Path>, path: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    fn pipe(&self, path: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    /// The command in the folder, with little memory.
    fn command(&self, arguments: &[&str]) -> Command {
        let plain = deloop(&self.at("home"));
        let mut command = Command::new("/bin/sh");
        // A limit that the system does not know is left out.
        command.args(["-c", "ulimit -v 4000000 2>/dev/null; exec \"$0\" \"$@\""]);
        command.arg(plain.get_program()).args(arguments).current_dir(self.at("repo")).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("PATH", "/usr/bin:/bin").env("TMPDIR", self.at("tmp"));
        command
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        to_its_end(self.command(arguments), input)
    }

    /// Everything it prints.
    fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments, "");
        String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output)
    }

    /// Sends a call that is about to be made to the hook of Claude Code `times` times; the replies.
    fn calls(&self, session: &str, arguments: &[&str], times: usize) -> Vec<Value> {
        let call = |n: usize| {
            let event = json!({
                "session_id": session, "hook_event_name": "PreToolUse", "permission_mode": "bypassPermissions",
                "tool_name": "Bash", "tool_input": {"command": "make check"}, "tool_use_id": format!("c{n}"),
            });
            let words = [&["hook", "claude-code"], arguments].concat();
            let output = self.run(&words, &event.to_string());
            assert_eq!(output.status.code(), Some(0), "{}", said(&output));
            serde_json::from_slice(&output.stdout).unwrap_or_default()
        };
        (0..times).map(call).collect()
    }

    /// Nothing that is not deloop's was touched, and nothing of the folder was run.
    fn check(&self, what: &str) {
        assert_eq!(fs::read_to_string(self.at("home/.bashrc")).unwrap(), BASHRC, "{what}");
        assert_eq!(fs::read_to_string(self.at("outside/file")).unwrap(), BASHRC, "{what}");
        assert_eq!(fs::read_dir(self.at("outside")).unwrap().count(), 1, "{what}");
        assert!(!self.at("canary").exists(), "{what}: something of the folder was run");
    }
}

/// Runs it to its end. If it doesn't end, the output of the test says which command it is.
fn to_its_end(mut command: Command, input: &str) -> Output {
    std::thread::scope(|scope| {
        let what = format!("{command:?} ends");
        let output = scope.spawn(move || run(&mut command, input.as_bytes()));
        wait_for(&what, || output.is_finished());
        output.join().unwrap()
    })
}

fn denied(replies: &[Value]) -> bool {
    replies.iter().any(|reply| reply["hookSpecificOutput"]["permissionDecision"] == "deny")
}

/// What the person is told.
fn told(replies: &[Value]) -> Vec<&str> {
    let mut told: Vec<&str> = replies.iter().filter_map(|reply| reply["systemMessage"].as_str()).collect();
    told.retain(|text| text.contains("onfiguration") || text.contains("deloop.toml"));
    told
}

/// Settings whose hook is a command of the folder's.
fn hostile_settings(world: &World) {
    let canary = world.at("canary");
    let canary = canary.to_str().unwrap();
    let tool = world.put("repo/.tools/deloop", &format!("#!/bin/sh\ntouch {canary}\n"));
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let command = format!("touch {canary}; ./.tools/deloop hook claude-code --profile '--help'");
    let hook = json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}});
    world.put("repo/.claude/settings.json", &hook.to_string());
    let command = format!("{} hook codex", tool.display());
    let hook = json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}});
    world.put("repo/.codex/hooks.json", &hook.to_string());
}

/// `deloop doctor` must not pass a command from a folder's settings to a shell.
#[test]
fn doctor_runs_nothing_that_it_finds() {
    let world = World::new();
    hostile_settings(&world);
    let text = world.text(&["doctor"]);
    world.check("doctor");
    assert!(text.contains("was not run") && text.contains("`touch "), "{text}");
    world.text(&["status"]);
    world.text(&["run", "--", "/bin/true"]);
    world.check("status and run");
}

/// `install --scope project` must not write its backup through a link.
#[test]
fn install_follows_no_link_of_the_folder() {
    for (link, to) in [
        ("repo/.claude/settings.json.deloop-backup", "home/.bashrc"),
        ("repo/.claude/settings.json", "home/.bashrc"),
        ("repo/.claude", "home"),
        ("repo/.claude", "outside"),
    ] {
        let world = World::new();
        fs::write(world.at("home/settings.json"), "{}").unwrap();
        if link != "repo/.claude" {
            fs::create_dir(world.at("repo/.claude")).unwrap();
        }
        if link.ends_with("backup") {
            fs::write(world.at("repo/.claude/settings.json"), "{}").unwrap();
        }
        world.link(world.at(to), link);
        let output = world.run(&["install", "claude-code", "--scope", "project"], "");
        world.check(link);
        assert_eq!(output.status.code(), Some(2), "{link} -> {to}");
        assert!(said(&output).contains("link"), "{}", said(&output));
        assert_eq!(fs::read_to_string(world.at("home/settings.json")).unwrap(), "{}");
    }
}

/// Settings that say where steps go, what is written and what runs aren't part of a profile, whoever trusts it.
#[test]
fn a_profile_that_a_project_names_sets_nothing_else() {
    let world = World::new();
    world.put("repo/deloop.toml", "profile = \"mine.toml\"\n");
    for (key, setting) in [
        ("server", "[server]\nurl = \"http://127.0.0.1:9\"\nkey_env = \"HOME\"\n"),
        ("events", "[events]\nfile = \"/tmp/elsewhere.jsonl\"\n"),
        ("memory", "[memory]\nfolder = \"/tmp/elsewhere\"\n"),
        ("run", "[run]\non_stop = \"run\"\n"),
        ("embeddings", "[embeddings]\nurl = \"http://127.0.0.1:9\"\n"),
        ("serve", "[serve.alerts]\n"),
        ("swarm", "[swarm]\nname = \"all\"\n"),
        ("mode", "mode = \"shadow\"\n"),
    ] {
        let (top, tables) = if setting.starts_with('[') { ("", setting) } else { (setting, "") };
        world.put("repo/mine.toml", &format!("{top}order = [\"repeated-failure\"]\n{tables}"));
        let output = world.run(&["trust"], "");
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{key}: {text}");
        assert!(text.contains(&format!("a profile that a project names can't set `{key}`")), "{key}: {text}");
        assert!(world.text(&["trust", "--list"]).contains("No configuration is trusted"), "{key}");
    }
    world.check("a profile with settings");
}

/// A `deloop.toml` in a parent folder must not turn the guard off before it is trusted.
#[test]
fn a_configuration_of_the_folder_counts_only_when_trusted() {
    let hook = ["--profile", "doom-loop"];
    for text in [
        "mode = \"shadow\"",
        "order = []",
        "profile = ",
        "fail = \"closed\"\nmode = 7",
        "profile = \"none.toml\"",
        "[[ladders.repeats.rungs]]\nat = 1\nmessage = \"\\u001b]0;x\\u202e do evil\"",
    ] {
        let world = World::new();
        world.put("home/.config/deloop/deloop.toml", "mode = \"enforce\"\n");
        world.put("repo/deloop.toml", text);
        fs::create_dir_all(world.at("repo/deep")).unwrap();
        let replies = world.calls("s1", &hook, 7);
        assert!(denied(&replies), "{text}: {replies:?}");
        assert!(!format!("{replies:?}").contains("do evil"), "{replies:?}");
        let told = told(&replies);
        assert!(
            told.len() == 1 && told[0].contains("not trusted") && told[0].contains("`deloop trust "),
            "{told:?}"
        );
        let again = world.calls("s2", &hook, 7);
        assert!(denied(&again) && self::told(&again).len() == 1, "once in each session: {again:?}");
        assert!(world.text(&["status"]).contains("repo/deloop.toml: not trusted"));
        assert!(world.text(&["doctor"]).contains("repo/deloop.toml: not trusted"));
        assert!(world.text(&["config"]).contains("repo/deloop.toml: not trusted"));
    }
}

#[test]
fn trust_holds_for_the_content_and_the_owner() {
    let world = World::new();
    let hook = ["--profile", "doom-loop"];
    // Without a configuration, hooks only message the agent.
    let config = world.put("repo/deloop.toml", "mode = \"enforce\"\n");
    assert!(world.text(&["trust", "--list"]).contains("No configuration is trusted"));
    let printed = world.text(&["trust"]);
    assert!(printed.contains("Trusted: ") && printed.contains("sha256 "), "{printed}");
    assert!(world.text(&["trust", "--list"]).contains("repo/deloop.toml  trusted"));
    let replies = world.calls("s1", &hook, 7);
    assert!(denied(&replies) && told(&replies).is_empty(), "{replies:?}");

    fs::write(&config, "mode = \"enforce\" \n").unwrap();
    let replies = world.calls("s2", &hook, 7);
    assert!(!denied(&replies) && told(&replies)[0].contains("changed since you trusted it"), "{replies:?}");
    assert!(world.text(&["trust", "--list"]).contains("changed since you trusted it"));
    fs::write(&config, "mode = \"enforce\"\n").unwrap();
    assert!(denied(&world.calls("s3", &hook, 7)), "what was trusted is trusted");

    // Only root can give a file away.
    if std::os::unix::fs::chown(&config, Some(12345), None).is_ok() {
        assert!(!denied(&world.calls("s4", &hook, 7)));
        assert!(world.text(&["status"]).contains("its owner changed"));
        std::os::unix::fs::chown(&config, Some(0), None).unwrap();
    }
    // One that is not trusted does not hide one further up.
    world.put("repo/vendor/deloop.toml", "mode = \"shadow\"\n");
    let mut command = world.command(&["config"]);
    command.current_dir(world.at("repo/vendor"));
    let output = to_its_end(command, "");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("mode = \"enforce\""), "{printed}");
    assert!(printed.contains("vendor/deloop.toml: not trusted"), "{printed}");
    assert!(world.text(&["trust", "--remove"]).contains("No longer trusted"));
    assert!(!denied(&world.calls("s5", &hook, 7)));

    // The profile that it names is part of it, and stays inside the folder.
    let profile = world.put("repo/mine.toml", "name = \"mine\"\norder = [\"talk-only\"]\n");
    fs::write(&config, "profile = \"mine.toml\"\n").unwrap();
    assert!(world.text(&["trust", "deloop.toml"]).contains("the profile it names, mine.toml"));
    assert!(world.text(&["config"]).contains("name = \"mine\""));
    fs::write(&profile, "name = \"other\"\norder = [\"talk-only\"]\n").unwrap();
    assert!(world.text(&["config"]).contains("the profile it names changed"));
    for (text, expected) in [
        ("profile = \"../outside.toml\"", "outside the configuration's folder"),
        ("profile = \"/etc/x.toml\"", "outside the configuration's folder"),
        ("profile = \"link.toml\"", "contains a symbolic link"),
        ("[memory]\nfolder = \"../home\"", "can only name a folder inside the project"),
        ("[memory]\nfolder = \"/tmp\"", "can only name a folder inside the project"),
        ("mode = ", "still not trusted; fix it"),
        ("order = []", "nothing would be detected"),
    ] {
        let _ = symlink(&profile, world.at("repo/link.toml"));
        fs::write(&config, text).unwrap();
        let output = world.run(&["trust"], "");
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(said(&output).contains(expected), "{text}: {}", said(&output));
    }
    fs::remove_file(&config).unwrap();
    symlink(&profile, &config).unwrap();
    assert!(world.text(&["trust"]).contains("it is a link"));
    world.check("trust");
}

/// A broken user configuration must not silently turn the guard off.
#[test]
fn a_broken_configuration_never_switches_the_guard_off() {
    let hook = ["--profile", "doom-loop", "--mode", "enforce"];
    for (text, why) in [
        ("mode = ", "TOML"),
        ("mode = 7\nfail = \"closed\"", "`mode`"),
        ("order = []", "`order` is empty"),
        ("order = [\"repeated-call\", \"repeated-call\"]", "twice"),
        ("profile = 3", "`profile`"),
        ("profile = \"doom-loop\"\n[detectors.repeated-call]\nat = \"many\"", "repeated-call"),
    ] {
        let world = World::new();
        world.put("home/.config/deloop/deloop.toml", text);
        let replies = world.calls("s1", &hook, 7);
        let told = told(&replies);
        assert!(denied(&replies) && told.len() == 1 && told[0].contains(why), "{text}: {replies:?}");
        let status = world.text(&["status"]);
        assert!(status.contains("has an error") && status.contains(why), "{text}: {status}");
        let doctor = world.text(&["doctor"]);
        assert!(doctor.contains("WRONG configuration") && doctor.contains(why), "{text}: {doctor}");
        let config = world.run(&["config"], "");
        assert!(config.status.code() == Some(2) && said(&config).contains(why), "{text}: {}", said(&config));
    }
    // Without a profile on the command line.
    for (text, why) in [
        ("profile = \"nope\"", "unknown profile `nope`"),
        ("profile = \"empty.toml\"", "the profile is empty"),
        ("profile = \"zero.toml\"", "not a regular file"),
    ] {
        let world = World::new();
        world.put("home/.config/deloop/empty.toml", "");
        world.link("/dev/zero", "home/.config/deloop/zero.toml");
        world.put("home/.config/deloop/deloop.toml", text);
        let replies = world.calls("s1", &[], 1);
        assert!(told(&replies)[0].contains(why), "{text}: {replies:?}");
        assert!(told(&replies)[0].contains("the built-in configuration applies"), "{replies:?}");
        assert!(world.text(&["doctor"]).contains(why));
    }
}

#[test]
fn the_last_configuration_that_worked_stays_in_force() {
    let world = World::new();
    let own = world.put(
        "home/.config/deloop/deloop.toml",
        "mode = \"enforce\"\nprofile = \"doom-loop\"\nfail = \"closed\"",
    );
    assert!(denied(&world.calls("s1", &[], 7)));
    fs::write(&own, "mode = \"enforce\"\nprofile = ").unwrap();
    let replies = world.calls("s2", &[], 7);
    assert!(denied(&replies), "{replies:?}");
    assert!(told(&replies)[0].contains("your last working configuration applies"), "{replies:?}");
}

/// Notes must not be appended to the target of a link in the memory folder.
#[test]
fn notes_follow_no_link() {
    let call =
        json!({"type": "call", "tool": "Read", "args": {"path": "/a"}, "task": "t1"}).to_string() + "\n";
    let stream = ["stream", "-p", "behavioral", "--agent", "opencode", "--mode", "enforce"];
    for link in ["repo/notes/learnings.md", "repo/notes"] {
        let world = World::new();
        let to = if link.ends_with(".md") { "home/.bashrc" } else { "outside" };
        world.link(world.at(to), link);
        world.put("repo/deloop.toml", "[memory]\nfolder = \"notes\"\n");
        world.run(&stream, &call.repeat(10));
        world.check(link);
        assert!(world.text(&["trust"]).contains("Trusted: "));
        let output = world.run(&stream, &call.repeat(10));
        assert!(said(&output).contains("can't write the note"), "{}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 10, "the guard goes on");
        world.check(link);
        let hook = ["hook", "behavioral", "--memory", "notes"];
        for n in 0..10 {
            let event = json!({"taskId": "t", "toolName": "Read", "args": {"path": "/a"}, "timestamp": n});
            let output = world.run(&hook, &event.to_string());
            assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        }
        world.check(link);
    }
}

/// `--checkpoint a.json` must not destroy `a.new`, or the target of such a link.
#[test]
fn files_beside_the_one_that_is_written_stay() {
    let world = World::new();
    world.put("repo/a.new", "mine");
    world.link(world.at("home/.bashrc"), "repo/b.new");
    let step = r#"{"type":"call","tool":"ls","args":{}}"#;
    for checkpoint in ["a.json", "b.json"] {
        let output = world.run(&["stream", "--checkpoint", checkpoint], step);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert_eq!(fs::read_to_string(world.at("repo/a.new")).unwrap(), "mine");
        world.check(checkpoint);
        let mode = fs::metadata(world.at("repo").join(checkpoint)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    world.link(world.at("home/.bashrc"), "repo/c.json");
    world.link(world.at("outside"), "repo/out");
    for arguments in [
        ["stream", "--checkpoint", "out/a.json"],
        ["stream", "--events", "out/file"],
        ["scan", "--html", "out/file"],
        ["stream", "--checkpoint", "c.json"],
        ["stream", "--events", "c.json"],
        ["scan", "--html", "c.json"],
    ] {
        let output = world.run(&arguments, step);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        world.check("a link that was named");
    }
    world.check("checkpoints");
}

/// A database that opencode might have made, but whose tables are views without an end.
fn endless_database(path: &Path) {
    let database = rusqlite::Connection::open(path).unwrap();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT";
    database
        .execute_batch(&format!(
            "CREATE VIEW session AS {endless} 's' || i AS id, '' AS directory, '' AS version, '' AS title,
                 NULL AS parent_id, i AS time_created FROM n;
             CREATE VIEW message AS {endless} 's1' AS session_id, i AS id, '{{}}' AS data FROM n;
             CREATE TABLE part(session_id, message_id, id, data);"
        ))
        .unwrap();
}

/// Pipes, devices, large files and endless views must not be read forever.
#[test]
fn reading_always_ends() {
    let world = World::new();
    world.link("/dev/zero", "repo/deloop.toml");
    world.link("/dev/zero", "repo/x.toml");
    world.pipe("repo/y.toml");
    world.put("repo/zero.toml", "profile = \"x.toml\"");
    world.put("repo/pipe.toml", "profile = \"y.toml\"");
    let large = fs::File::create(world.at("repo/large.toml")).unwrap();
    large.set_len(100 << 20).unwrap();
    for (config, why) in [
        ("zero.toml", "not a regular file"),
        ("pipe.toml", "not a regular file"),
        ("y.toml", "not a regular file"),
        ("large.toml", "the limit is 1 MB"),
    ] {
        for command in [&["config", "--config", config][..], &["stream", "--config", config]] {
            let output = world.run(command, "");
            assert_eq!(output.status.code(), Some(2), "{command:?}");
            assert!(said(&output).contains(why), "{command:?}: {}", said(&output));
        }
        let replies = world.calls(config, &["--config", config, "--mode", "enforce"], 1);
        assert!(told(&replies)[0].contains(why), "{config}: {replies:?}");
    }
    for command in [["stream", "y.toml"], ["scan", "y.toml"], ["eval", "y.toml"], ["steps", "x.toml"]] {
        let output = world.run(&command, "");
        assert!(said(&output).contains("not a regular file"), "{command:?}: {}", said(&output));
    }
    // The settings of a project.
    for name in [".claude/settings.json", ".codex/hooks.json"] {
        world.link("/dev/zero", &format!("repo/{name}"));
    }
    world.pipe("repo/.gemini/settings.json");
    for command in
        [&["status"][..], &["doctor"], &["run", "--", "/bin/true"], &["uninstall", "--scope", "project"]]
    {
        world.run(command, "");
    }
    assert!(world.text(&["status"]).contains("not a regular file"));
}

#[test]
fn sessions_of_opencode_always_end() {
    let world = World::new();
    fs::create_dir_all(world.at("repo/db")).unwrap();
    endless_database(&world.at("repo/db/opencode.db"));
    assert!(!world.text(&["scan", "db/opencode.db"]).is_empty());
    // A log that is a pipe.
    fs::copy(world.at("repo/db/opencode.db"), world.at("repo/db/piped.db")).unwrap();
    world.pipe("repo/db/piped.db-journal");
    world.pipe("repo/db/piped.db-wal");
    world.text(&["scan", "db/piped.db"]);
    world.text(&["scan", "db"]);
    for (name, zero) in [("zero", true), ("pipe", false)] {
        let storage = format!("repo/{name}/storage");
        world.put(&format!("{storage}/session/p/ses_1.json"), r#"{"id":"ses_1","directory":"/"}"#);
        world.put(&format!("{storage}/message/ses_1/msg_1.json"), r#"{"id":"msg_1","sessionID":"ses_1"}"#);
        let part = format!("{storage}/part/msg_1/prt_1.json");
        if zero {
            world.link("/dev/zero", &part);
        } else {
            world.pipe(&part);
        }
        let text = world.text(&["scan", &format!("{name}/storage/session/p/ses_1.json")]);
        assert!(text.contains("not a regular file"), "{text}");
    }
}

/// A few bytes of a schema can compute gigabytes: in a generated column, or with a default for many rows.
#[test]
fn a_small_database_of_opencode_takes_little_memory() {
    let world = World::new();
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)";
    let tables = "CREATE TABLE session(id, directory, version, title, parent_id, time_created);
        CREATE TABLE message(id TEXT, session_id, data TEXT);
        INSERT INTO session(id, time_created) VALUES('s1', 1);
        INSERT INTO message VALUES('m1', 's1', '{\"id\":\"m1\",\"role\":\"user\"}');";
    let part = "CREATE TABLE part(id TEXT, session_id, message_id TEXT);";
    let computed = "ALTER TABLE part ADD COLUMN data TEXT AS (printf('%.*c', 900000000, 'x'))";
    let database = |name: &str| rusqlite::Connection::open(world.put(name, "")).unwrap();
    database("repo/generated.db")
        .execute_batch(&format!(
            "{tables}{part}{rows} INSERT INTO part SELECT 'p' || i, 's1', 'm1' FROM n; {computed};"
        ))
        .unwrap();
    let title = "x".repeat(1_000_000);
    database("repo/default.db")
        .execute_batch(&format!(
            "{tables} CREATE TABLE part(id TEXT, session_id, message_id TEXT, data TEXT);
             {rows} INSERT INTO part SELECT 'p' || i, 's1', 'm1', '{{}}' FROM n;
             {rows} INSERT INTO session(id, time_created) SELECT 's' || a.i || '-' || b.i, 1 FROM n a, n b;
             ALTER TABLE session RENAME COLUMN title TO other; ALTER TABLE session ADD COLUMN title DEFAULT '{title}';"
        ))
        .unwrap();
    for (name, expected) in [
        ("generated.db", "`part.data` is computed, not stored"),
        ("default.db", "its rows hold more than the file"),
    ] {
        let plain = world.command(&["scan", name]);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "ulimit -v 1500000 2>/dev/null; exec \"$0\" \"$@\""]).arg(plain.get_program());
        command.args(plain.get_args()).current_dir(world.at("repo")).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = to_its_end(command, "");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output);
        assert!(text.contains(expected), "{name}: {text}");
    }
}

/// The hand-off of a stopped run reads the transcript.
#[test]
fn a_hand_off_waits_for_no_pipe() {
    for zero in [true, false] {
        let world = World::new();
        if zero {
            world.link("/dev/zero", "repo/t.jsonl");
        } else {
            world.pipe("repo/t.jsonl");
        }
        let script = r#"
            n=0
            while [ $n -lt 40 ]; do
                n=$((n + 1))
                for event in PreToolUse PostToolUseFailure; do
                    printf '{"session_id":"s","transcript_path":"%s","hook_event_name":"%s","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"make check"},"tool_use_id":"c%s","error":"Exit code 2"}' "$T" $event $n | "$BIN" hook claude-code > reply
                done
                if grep -q '"continue":false' reply; then exit 0; fi
            done"#;
        let script = world.put("agent.sh", script);
        let mut command =
            world.command(&["run", "--grace", "0.2", "--", "/bin/sh", script.to_str().unwrap()]);
        command.env("BIN", env!("CARGO_BIN_EXE_deloop")).env("T", world.at("repo/t.jsonl"));
        let output = to_its_end(command, "");
        assert_eq!(output.status.code(), Some(86), "{}", said(&output));
        assert!(said(&output).contains("summary and next steps"), "{}", said(&output));
    }
}

#[test]
fn what_deloop_keeps_is_the_users_alone() {
    for first in
        [&["hook", "claude-code"][..], &["hook", "behavioral"], &["hook", "claude-code", "--profile", "nope"]]
    {
        let world = World::new();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "umask 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_deloop")]).args(first);
        command.env_clear().env("HOME", world.at("home")).current_dir(world.at("repo"));
        let event = json!({
            "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {},
            "taskId": "t", "toolName": "Bash", "args": {},
        });
        to_its_end(command, &event.to_string());
        let state = world.at("home/.local/state/deloop");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&state), 0o700, "{first:?}");
        let mut folders = vec![state];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    assert_eq!(mode(&path), 0o600, "{}", path.display());
                }
            }
        }
    }
}

/// A repository with everything in it that could do harm.
fn hostile_repository(world: &World) {
    hostile_settings(world);
    let bashrc = world.at("home/.bashrc");
    for name in [
        ".claude/settings.json.deloop-backup",
        ".qwen/settings.json",
        "notes/learnings.md",
        "report.html",
        "events.jsonl",
        "checkpoint.json",
        "handoff.md",
        "checkpoint.new",
        "pages/deloop.1",
    ] {
        world.link(&bashrc, &format!("repo/{name}"));
    }
    // `--state .` would take it for the keys of a server.
    world.link(&bashrc, "repo/keys.json");
    world.link(world.at("outside"), "repo/.cursor");
    world.link("/dev/zero", "repo/.gemini/settings.json");
    world.pipe("repo/.github/hooks/deloop.json");
    world.pipe("repo/.opencode/plugins/deloop.js");
    let canary = world.at("canary");
    world.put(
        "repo/deloop.toml",
        &format!(
            "mode = \"shadow\"\nprofile = \"$(touch {}).toml\"\n[memory]\nfolder = \"notes\"",
            canary.display()
        ),
    );
    world.pipe("repo/deep/deloop.yaml");
    world.link(&bashrc, "repo/audit/lock");
    world.link("/dev/zero", "repo/audit/head");
    world.pipe("repo/audit/00000000000000000001.jsonl");
    world.link(world.at("outside"), "repo/deep/audit");
    fs::create_dir_all(world.at("repo/sessions")).unwrap();
    endless_database(&world.at("repo/sessions/opencode.db"));
    world.link("/dev/zero", "repo/sessions/zero.jsonl");
    world.pipe("repo/sessions/pipe.jsonl");
    world.put("repo/sessions/\u{1b}]0;title\u{7}\u{202e}.jsonl", "{\"type\":\"call\"}\n");
    world.put("repo/sessions/labels.jsonl", "{\"path\":\"pipe.jsonl\",\"label\":\"loop\"}\n{\"path\":\"../../home/.bashrc\",\"label\":\"loop\"}\n");
    for tool in ["claude", "codex", "git", "sh", "deloop"] {
        let tool = world.put(&format!("repo/{tool}"), &format!("#!/bin/sh\ntouch {}\n", canary.display()));
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Every command that deloop has, in that repository.
const COMMANDS: &[&[&str]] = &[
    &["demo"],
    &["vocabulary"],
    &["scan"],
    &["scan", "."],
    &["scan", "sessions", "--html", "report.html"],
    &["scan", "sessions/pipe.jsonl", "sessions/zero.jsonl"],
    &["compare", "--a", "default", "--b", "deloop.toml", "sessions"],
    &["show", "sessions/pipe.jsonl"],
    &["serve", "--state", "/dev/null"],
    &["alerts", "list"],
    &["alerts", "test"],
    &["serve", "--state", "."],
    &["keys", "list"],
    &["keys", "add", "ci", "--scope", "read"],
    &["keys", "revoke", "ci"],
    &["keys", "add", "ci", "--scope", "read", "--state", "."],
    &["audit", "verify"],
    &["audit", "verify", "--state", "."],
    &["audit", "query", "--state", ".", "--turns"],
    &["audit", "export", "--state", ".", "--out", "events.jsonl"],
    &["audit", "export", "--state", "deep", "--format", "csv"],
    &["audit", "purge", "s", "--state", "."],
    &["report", "--daily", "--server", "http://127.0.0.1:9"],
    &["report", "--weekly", "--json", "--server", "http://127.0.0.1:9"],
    &["budget", "show", "--server", "http://127.0.0.1:9"],
    &["budget", "revoke", "o1", "--server", "http://127.0.0.1:9"],
    &["say", "s", "Hello."],
    &["say", "../s", "-", "--server", "http://127.0.0.1:9", "--project", "p"],
    &["stream", "--events", "events.jsonl"],
    &["stream", "--checkpoint", "checkpoint.json"],
    &["stream", "--agent", "opencode"],
    &["steps", "."],
    &["status"],
    &["status", "--json"],
    &["doctor"],
    &["hook", "claude-code"],
    &["hook", "behavioral", "--memory", "notes"],
    &["hook", "behavioral", "--state", ".", "--tool-events", "events.jsonl"],
    &["run", "--handoff", "handoff.md", "--", "/bin/true"],
    &["log"],
    &["log", "--summary"],
    &["log", "--weekly"],
    &["similarity", "a b", "a c"],
    &["embed"],
    &["state", "s"],
    &["swarm"],
    &["swarm", "show", "s"],
    &["swarm", "clear", "s"],
    &["explain"],
    &["wrong", "d1"],
    &["pause", "--for", "1m"],
    &["resume"],
    &["allow", "Bash ls"],
    &["eval", "sessions/labels.jsonl"],
    &["prices"],
    &["prices", "update", "deloop.toml"],
    &["prices", "reset"],
    &["profiles"],
    &["formats"],
    &["config"],
    &["schema", "config"],
    &["completions", "bash"],
    &["man", "pages"],
    &["trust"],
    &["trust", "--list"],
    &["trust", "deep"],
    &["install", "--scope", "project", "--dry-run"],
    &["install", "claude-code", "--scope", "project"],
    &["install", "cursor", "--scope", "project"],
    &["install", "qwen-code", "--scope", "project"],
    &["install", "gemini-cli", "--scope", "project"],
    &["install", "copilot-cli", "--scope", "project"],
    &["install", "opencode", "--scope", "project"],
    &["install", "codex"],
    &["uninstall", "--scope", "project"],
    &["uninstall"],
    &["purge"],
    &["purge", "--yes"],
];

#[test]
fn every_command_is_safe_in_a_hostile_repository() {
    let world = World::new();
    hostile_repository(&world);
    let input = r#"{"type":"call","tool":"Read","args":{"path":"/a"},"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"taskId":"t","toolName":"Read","rawArgs":{"path":"/a"}}"#;
    let input = format!("{input}\n");
    for command in COMMANDS {
        let output =
            world.run(command, &if command[0] == "stream" { input.repeat(12) } else { input.clone() });
        let code = output.status.code();
        assert!(code.is_some_and(|code| code <= 2), "{command:?}: {:?} {}", output.status, said(&output));
        assert!(!said(&output).contains("panicked"), "{command:?}: {}", said(&output));
        world.check(&format!("{command:?}"));
    }
    let help = world.text(&["--help"]);
    let names = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    for line in names.take_while(|line| !line.is_empty()) {
        let Some(name) = line.strip_prefix("  ").and_then(|line| line.split(' ').next()) else { continue };
        let known = name.is_empty() || name == "help" || COMMANDS.iter().any(|command| command[0] == name);
        assert!(known, "`deloop {name}` is not tried in the hostile repository");
    }
}
