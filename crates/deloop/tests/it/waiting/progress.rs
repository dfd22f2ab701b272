//! Results that move, and questions about different things.

use serde_json::json;

use super::rules::{are_let_wait, are_untouched};
use super::session::{Gap, Look, PAUSES_OR_UNTIMED, SHELL, Session};

/// 412 problems that become 0 in 40 runs of the linter, with some work after each run.
fn linting(case: &str, work: impl Fn(usize) -> Look) -> Vec<Session> {
    let session = |gap: &Gap| {
        let mut session = Session::new(case, *gap);
        session.prompt("Fix what the linter reports.", "human");
        for i in 0..40 {
            let problems = 412 * (39 - i) / 39;
            session.look(match problems {
                0 => Look::shell("npm run lint", "> web@2.4.0 lint\n> eslint src\n"),
                _ => Look::shell(
                    "npm run lint",
                    format!("> web@2.4.0 lint\n> eslint src\n\n✖ {problems} problems ({problems} errors, 0 warnings)\n"),
                )
                .fails(),
            });
            session.works(work(i));
        }
        session
    };
    PAUSES_OR_UNTIMED.iter().map(session).collect()
}

#[test]
fn lint_problems_that_fall_with_each_edit() {
    are_let_wait(&linting("lint with edits", |i| {
        let args = json!({"path": format!("src/page{}.js", i % 7), "old_str": format!("var a{i} ="), "new_str": format!("const a{i} =")});
        Look::new("edit", args, "done")
    }));
}

#[test]
fn lint_problems_that_fall_with_other_commands() {
    are_let_wait(&linting("lint with shell work", |i| {
        Look::shell(format!("node scripts/modernize.js src/page{i}.js"), "")
    }));
}

/// Each fix brings the next error of the same kind.
#[test]
fn build_errors_that_move_with_each_fix() {
    let session = |gap: &Gap| {
        let mut session = Session::new("build errors that move", *gap);
        session.prompt("Make it build.", "human");
        for (i, file) in FILES.iter().enumerate() {
            let name = file.rsplit('/').next().unwrap_or_default();
            let place = format!(" --> src/a.rs:{}:9", 10 + 7 * i);
            let error = format!("error: cannot find value {name} in this scope\n{place}\n");
            session.look(Look::shell("cargo build", error).fails());
            let args = json!({"path": "src/a.rs", "old_str": name, "new_str": format!("self.{name}")});
            session.works(Look::new("edit", args, "done"));
        }
        session
    };
    are_untouched(&PAUSES_OR_UNTIMED.iter().map(session).collect::<Vec<_>>());
}

#[test]
fn a_download_that_grows() {
    let session = |gap: &Gap| {
        let look = |i: usize| Look::shell("tail -1 dl.log", format!("{} %", 3 + i * 97 / 39));
        Session::new("tail -1 dl.log", *gap).looking(40, look)
    };
    are_untouched(&SHELL.iter().map(session).collect::<Vec<_>>());
}

#[test]
fn replicas_that_rise() {
    let look = |now: usize, all: usize| {
        Look::shell("./replicas.sh web", format!("{now} of {all} updated replicas are available"))
    };
    let three = |gap: &Gap| Session::new("1 of 3 replicas", *gap).looking(9, |i| look(1 + i / 3, 3));
    let forty = |gap: &Gap| Session::new("1 of 40 replicas", *gap).looking(40, |i| look(1 + i, 40));
    are_untouched(&SHELL.iter().flat_map(|gap| [three(gap), forty(gap)]).collect::<Vec<_>>());
}

const FILES: [&str; 20] = [
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "docs/install.md",
    ".github/workflows/ci.yml",
    "Dockerfile",
    "compose.yaml",
    "src/index.ts",
    "src/server/main.ts",
    "test/server.test.ts",
    "package.json",
    "tsconfig.json",
    ".nvmrc",
    ".editorconfig",
    "scripts/release.sh",
    "migrations/001_init.sql",
    "public/robots.txt",
    "public/favicon.ico",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
];

/// Ten of them don't exist, at most three in a row.
const MISSING: [usize; 10] = [2, 3, 4, 6, 9, 10, 13, 15, 16, 18];

fn checklist(case: &str, check: impl Fn(&str, bool) -> Look) {
    let session = |gap: &Gap| {
        let mut session = Session::new(case, *gap);
        session.prompt("Go through the release checklist.", "human");
        for (i, file) in FILES.into_iter().enumerate() {
            session.look(check(file, !MISSING.contains(&i)));
        }
        session
    };
    are_untouched(&PAUSES_OR_UNTIMED.iter().map(session).collect::<Vec<_>>());
}

fn test_f(file: &str, there: bool) -> Look {
    let look = Look::shell(format!("test -f {file}"), "");
    if there { look } else { look.fails() }
}

fn ls(file: &str, there: bool) -> Look {
    let command = format!("ls {file}");
    if there {
        Look::shell(command, format!("{file}\n"))
    } else {
        Look::shell(command, format!("ls: cannot access '{file}': No such file or directory\n")).fails()
    }
}

fn rg(file: &str, there: bool) -> Look {
    let command = format!("rg acme {file}");
    if there {
        Look::shell(command, format!("{}:acme\n", file.len()))
    } else {
        Look::shell(command, "").fails()
    }
}

fn test_path(file: &str, there: bool) -> Look {
    let args = json!({"command": format!("Test-Path {file}")});
    Look::new("powershell", args, if there { "True\r\n" } else { "False\r\n" })
}

#[test]
fn a_checklist_with_test() {
    checklist("checklist: test -f", test_f);
}

#[test]
fn a_checklist_with_ls() {
    checklist("checklist: ls", ls);
}

#[test]
fn a_checklist_with_rg() {
    checklist("checklist: rg", rg);
}

#[test]
fn a_checklist_with_test_path() {
    checklist("checklist: Test-Path", test_path);
}

#[test]
fn a_checklist_with_several_commands() {
    checklist("checklist: mixed", |file, there| match file.len() % 3 {
        0 => test_f(file, there),
        1 => ls(file, there),
        _ => rg(file, there),
    });
}
