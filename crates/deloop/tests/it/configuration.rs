//! Configuration: where it comes from, what wins, and what a mistake is answered with.

use std::path::Path;

use serde_json::json;

use crate::binary::{deloop, lines, run, said, trusted_config};

fn turns(text: &str, times: usize) -> Vec<u8> {
    (json!({"type": "turn", "text": text}).to_string() + "\n").repeat(times).into_bytes()
}

fn message(home: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = deloop(home);
    let output =
        run(command.arg("stream").args(arguments).envs(environment.iter().copied()), &turns("again", 2));
    assert_eq!(said(&output), "");
    lines(&output.stdout)[1]["message"].as_str().unwrap_or("none").to_owned()
}

/// Flag over environment over file over profile.
#[test]
fn the_nearest_setting_wins() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let project = home.join("project/deep");
    std::fs::create_dir_all(&project).unwrap();
    assert_eq!(
        message(home, &["-p", "turn-hash"], &[]),
        "You are in a repetitive loop. Try a different approach."
    );

    std::fs::create_dir_all(home.join(".config/deloop")).unwrap();
    std::fs::write(
        home.join(".config/deloop/deloop.toml"),
        "profile = \"turn-hash\"\n[agent]\nloopMsg = \"user\"",
    )
    .unwrap();
    assert_eq!(message(home, &[], &[("XDG_CONFIG_HOME", "")]), "user");

    std::fs::write(
        home.join("project/deloop.yaml"),
        "agent:\n  recursionLimit: 1000\n  loopMsg: 42\n  loopLimit: 1\n",
    )
    .unwrap();
    let trust = run(deloop(&project).arg("trust").env("HOME", home), b"");
    assert_eq!(trust.status.code(), Some(0), "{}", said(&trust));
    assert_eq!(
        message(&project, &[], &[("HOME", home.to_str().unwrap())]),
        "[deloop, from this project's deloop.yaml] 42"
    );

    let environment = [("HOME", home.to_str().unwrap()), ("AGENT_LOOP_MSG", "7{x}")];
    assert_eq!(message(&project, &[], &environment), "7{x}");
    assert_eq!(message(&project, &["-p", "doom-loop"], &environment).lines().count(), 4);
}

#[test]
fn the_agent_block_sets_limit_and_window() {
    let home = tempfile::tempdir().unwrap();
    let text = "profile: turn-hash\nagent:\n  loopLimit: 1\n  turnHashWindow: 1\n";
    trusted_config(home.path(), "deloop.yml", text);
    let steps: String =
        ["a", "a", "a", "b", "a"].map(|t| json!({"type":"turn","text":t}).to_string() + "\n").concat();
    let output = run(deloop(home.path()).arg("stream"), steps.as_bytes());
    let answers = lines(&output.stdout);
    let told: Vec<_> = answers
        .iter()
        .map(|a| (a["action"].as_str().unwrap(), a["findings"].as_array().unwrap().len()))
        .collect();
    assert_eq!(told, [("continue", 0), ("nudge", 1), ("continue", 1), ("continue", 0), ("continue", 0)]);
}

#[test]
fn mistakes_name_the_fix() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    std::fs::write(home.join("empty.toml"), "# nothing\n").unwrap();
    std::fs::write(home.join("wrong.toml"), "order = [\"talk-only\"]\nceilings.turns = 1.5\n").unwrap();
    for (name, text, expected) in [
        ("a.toml", "profil = \"x\"", "unknown key `profil`; did you mean `profile`?"),
        (
            "b.toml",
            "[detectors.similar-call]\nsimilar = 1",
            "unknown key `detectors.similar-call.similar`; did you mean `similarity`?",
        ),
        ("c.toml", "profile = \"nope\"", "known profiles: default, behavioral"),
        ("d.toml", "mode = \"loud\"", "expected one of `shadow`, `nudge`, `enforce`"),
        ("e.toml", "x = [", "TOML"),
        ("h.toml", "order = []", "`order` is empty, so nothing would be detected"),
        ("i.toml", "order = [\"talk-only\", \"talk-only\"]", "`order` names `talk-only` twice"),
        ("j.toml", "profile = 3", "`profile` must be the name of a profile"),
        ("k.toml", "profile = \"empty.toml\"", "the profile is empty"),
        ("f.yaml", "agent:\n  loopLimit: many", "agent"),
        ("g.toml", "[tools.bash]\nkind = \"pol\"", "unknown variant `pol`"),
        (
            "l.toml",
            "ceilings.usd = \"fifty\"",
            "`ceilings.usd`: expected a number, found \"fifty\"; write a number without quotes",
        ),
        (
            "m.toml",
            "attended = \"yes\"",
            "`attended`: expected true or false, found \"yes\"; write it without quotes",
        ),
        (
            "n.toml",
            "profile = \"wrong.toml\"",
            "wrong.toml: `ceilings.turns`: expected a whole number, found 1.5",
        ),
        ("o.yaml", "swarm:\n  name: 7\n", "`swarm.name`: expected a text, found 7; write it in quotes"),
        ("p.toml", "holdout = 7", "`holdout` is a share of episodes, from 0 to 1"),
        ("q.toml", "order = [\"talk-olny\"]", "`order` names the unknown detector `talk-olny`"),
        ("r.toml", "[[ladders.stuck.rungs]]\nmessage = \"{cuont}\"", "unknown placeholder `{cuont}`"),
    ] {
        std::fs::write(home.join(name), text).unwrap();
        let output = run(deloop(home).args(["stream", "--config", name]), b"");
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(said(&output).contains(expected), "{text}: {}", said(&output));
        let profiles = ["wrong.toml", "empty.toml"];
        let file = profiles.iter().find(|profile| text.contains(*profile)).copied().unwrap_or(name);
        assert!(said(&output).contains(&format!("{file}: ")), "{text}: {}", said(&output));
    }
    let output = run(deloop(home).arg("stream").env("AGENT_LOOP_LIMIT", "many"), b"");
    assert!(said(&output).contains("AGENT_LOOP_LIMIT must be a whole number"), "{}", said(&output));
    let output = run(deloop(home).args(["stream", "no-such-file"]), b"");
    assert_eq!((output.status.code(), said(&output).contains("no-such-file")), (Some(2), true));
}

/// A profile that is printed, saved and used is the same profile.
#[test]
fn a_printed_profile_is_a_ready_configuration() {
    let home = tempfile::tempdir().unwrap();
    let listed = String::from_utf8(run(deloop(home.path()).arg("profiles"), b"").stdout).unwrap();
    let steps: Vec<u8> =
        deloop_conformance::random::lines(3).into_iter().flat_map(|l| (l + "\n").into_bytes()).collect();
    for name in ["default", "behavioral", "signature", "doom-loop", "turn-similarity", "turn-hash"] {
        assert!(listed.contains(name));
        let printed = run(deloop(home.path()).args(["profiles", "show", name]), b"").stdout;
        std::fs::write(home.path().join("mine.toml"), &printed).unwrap();
        let built_in = run(deloop(home.path()).args(["stream", "-p", name]), &steps).stdout;
        let mine = run(deloop(home.path()).args(["stream", "--config", "mine.toml"]), &steps).stdout;
        let from_path = run(deloop(home.path()).args(["stream", "-p", "mine.toml"]), &steps).stdout;
        assert!(built_in == mine && built_in == from_path, "{name}");
    }
}

#[test]
fn the_effective_configuration_can_be_shown_and_used() {
    let home = tempfile::tempdir().unwrap();
    trusted_config(home.path(), "deloop.toml", "profile = \"signature\"\nmode = \"shadow\"");
    let shown = String::from_utf8(run(deloop(home.path()).arg("config"), b"").stdout).unwrap();
    assert!(
        shown.contains("deloop.toml")
            && shown.contains("mode = \"shadow\"")
            && shown.contains("[detectors.call-cycle]"),
        "{shown}"
    );
    std::fs::write(home.path().join("shown.toml"), &shown).unwrap();
    let output = run(deloop(home.path()).args(["config", "--config", "shown.toml"]), b"");
    assert_eq!(said(&output), "");
}

/// The output is a configuration: a default in it would hold for hooks, whose default is another.
#[test]
fn a_mode_is_shown_where_it_is_set_and_explained_where_not() {
    let home = tempfile::tempdir().unwrap();
    let shown = |arguments: &[&str]| {
        String::from_utf8(run(deloop(home.path()).arg("config").args(arguments), b"").stdout).unwrap()
    };
    let text = shown(&[]);
    assert!(!text.contains("\nmode =") && !text.contains("\nattended ="), "{text}");
    assert!(text.contains("hooks use \"nudge\"") && text.contains("use \"enforce\""), "{text}");
    let text = shown(&["--mode", "shadow", "--attended"]);
    assert!(text.contains("\nmode = \"shadow\"") && text.contains("\nattended = true"), "{text}");
}

/// The schemas in the repository are those of this version.
#[test]
fn the_published_schemas_are_current() {
    let home = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for of in [
        "config",
        "step",
        "decision",
        "event",
        "scan",
        "compare",
        "run-result",
        "hook-input",
        "hook-output",
        "tool-event",
        "daily-report",
        "weekly-report",
        "budgets",
    ] {
        let printed = run(deloop(home.path()).args(["schema", of]), b"").stdout;
        let path = folder.join(format!("{of}.schema.json"));
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &printed).unwrap();
        }
        let kept = std::fs::read(&path).unwrap_or_default();
        assert!(kept == printed, "{} is old: run the tests once with UPDATE_SCHEMAS=1", path.display());
    }
}

/// The description of the HTTP API in the repository is that of this version.
#[cfg(feature = "serve")]
#[test]
fn the_published_openapi_document_is_current() {
    let home = tempfile::tempdir().unwrap();
    let printed = run(deloop(home.path()).args(["schema", "openapi"]), b"").stdout;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/openapi.json");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    let kept = std::fs::read(&path).unwrap_or_default();
    assert!(kept == printed, "schemas/openapi.json is old: run the tests once with UPDATE_SCHEMAS=1");
}

/// The page on formats is what the command prints.
#[test]
fn the_page_on_formats_is_current() {
    let home = tempfile::tempdir().unwrap();
    let printed = run(deloop(home.path()).arg("formats"), b"").stdout;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    let kept = std::fs::read(&path).unwrap_or_default();
    assert!(kept == printed, "docs/formats.md is old: run the tests once with UPDATE_SCHEMAS=1");
    let page = run(deloop(home.path()).args(["formats", "codex"]), b"").stdout;
    assert!(String::from_utf8_lossy(&page).starts_with("# codex"));
    let unknown = run(deloop(home.path()).args(["formats", "codexx"]), b"");
    assert!(unknown.status.code() == Some(2) && said(&unknown).contains("claude-code"), "{}", said(&unknown));
}

#[test]
fn help_describes_the_command_and_every_hook() {
    let home = tempfile::tempdir().unwrap();
    let help =
        |arguments: &[&str]| String::from_utf8(run(deloop(home.path()).args(arguments), b"").stdout).unwrap();
    assert!(help(&["--help"]).starts_with("Detect and break loops in AI agents\n"));
    let hooks = help(&["hook", "--help"]);
    for title in ["Claude Code", "Codex", "Gemini CLI", "Cursor (unverified"] {
        assert!(hooks.contains(&format!("Handle a hook event of {title}")), "{title}: {hooks}");
    }
}

#[test]
fn completions_and_the_man_page_come_out() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(deloop(home.path()).args(["completions", shell]), b"").stdout;
        assert!(String::from_utf8_lossy(&script).contains("stream"), "{shell}");
    }
    let page = run(deloop(home.path()).arg("man"), b"").stdout;
    assert!(String::from_utf8_lossy(&page).contains(".TH"));
    run(deloop(home.path()).args(["man", "pages"]), b"");
    assert!(home.path().join("pages/deloop-stream.1").exists());
}

/// The page docs/judging.md shows this form.
#[test]
fn the_vocabulary_can_be_extended() {
    let home = tempfile::tempdir().unwrap();
    let page = include_str!("../../../../docs/judging.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    std::fs::write(home.path().join("mine.toml"), example).unwrap();
    let step = |id: u32| {
        let call = json!({"type": "call", "id": id.to_string(), "tool": "deploy_status", "args": {}});
        let result = json!({"type": "result", "id": id.to_string(), "ok": true, "output": "rolling out"});
        format!("{call}\n{result}\n")
    };
    let steps: String = (0..6).map(step).collect();
    let nudges = |arguments: &[&str]| {
        let output = run(deloop(home.path()).arg("stream").args(arguments), steps.as_bytes());
        lines(&output.stdout).iter().filter(|decision| decision["action"] == "nudge").count()
    };
    let mine = home.path().join("mine.toml");
    assert_eq!(nudges(&["--config", mine.to_str().unwrap()]), 0);
    assert!(nudges(&[]) > 0, "without it the tool is one like any other");
}
