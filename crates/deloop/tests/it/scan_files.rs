//! Files that are not as they should be: each is told of, and none loses the others.

use std::io::Write;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::binary::{deloop, run, said};
use crate::scan::stuck;

/// A home with one good session, `good.jsonl`.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("runs")).unwrap();
    std::fs::write(home.path().join("runs/good.jsonl"), stuck("good", "m", 5)).unwrap();
    home
}

/// Scans the folder: what was read, and the problems by file.
fn scan(home: &Path) -> (Value, Vec<(String, String)>) {
    let output = run(deloop(home).args(["scan", "--json", "runs"]), b"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let good = report["loops"].as_array().unwrap().iter().any(|l| l["session"] == "good");
    assert!(good, "the good session is not lost: {report}");
    let text = |p: &Value, key: &str| p[key].as_str().unwrap().to_owned();
    let problems = report["problems"].as_array().unwrap();
    let problems = problems.iter().map(|p| (text(p, "path"), text(p, "problem"))).collect();
    for (path, problem) in &problems as &Vec<(String, String)> {
        assert!(said(&output).contains(&format!("{path}: {problem}")), "it is also said: {}", said(&output));
    }
    (report, problems)
}

#[track_caller]
fn one(problems: &[(String, String)], path: &str, problem: &str) {
    assert_eq!(problems, [(path.to_owned(), problem.to_owned())]);
}

fn turns(report: &Value, session: &str) -> Value {
    let all = report["sessions"].as_array().unwrap();
    all.iter().find(|s| s["session"] == session).map_or(Value::Null, |s| s["turns"].clone())
}

#[test]
fn a_last_line_that_is_not_complete_is_left_out() {
    let home = home();
    let whole = stuck("cut", "m", 5);
    std::fs::write(home.path().join("runs/cut.jsonl"), &whole[..whole.len() - 20]).unwrap();
    let (report, problems) = scan(home.path());
    one(&problems, "runs/cut.jsonl", "skipped its incomplete last line");
    assert_eq!(turns(&report, "cut"), 6);
}

#[test]
fn a_complete_last_line_needs_no_line_end() {
    let home = home();
    std::fs::write(home.path().join("runs/end.jsonl"), stuck("end", "m", 5).trim_end()).unwrap();
    let (report, problems) = scan(home.path());
    assert_eq!((turns(&report, "end"), problems.len()), (json!(7), 0));
}

#[test]
fn lines_that_are_no_steps_are_counted_and_skipped() {
    let home = home();
    let bad = stuck("bad", "m", 5).replacen('\n', "\nnonsense\n{\"type\":\"walk\"}\n\n", 1);
    std::fs::write(home.path().join("runs/bad.jsonl"), bad).unwrap();
    let (report, problems) = scan(home.path());
    let (path, problem) = &problems[0];
    assert_eq!((problems.len(), path.as_str()), (1, "runs/bad.jsonl"));
    assert!(problem.starts_with("skipped 2 unreadable lines; the first: not JSON"), "{problem}");
    assert_eq!(turns(&report, "bad"), 7);
}

#[test]
fn a_line_over_64_megabytes_is_skipped_and_said() {
    let home = home();
    let path = home.path().join("runs/long.jsonl");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let session = stuck("long", "m", 5);
    let (head, tail) = session.split_at(session.find('\n').unwrap() + 1);
    file.write_all(head.as_bytes()).unwrap();
    file.write_all(b"{\"type\":\"turn\",\"session\":\"long\",\"text\":\"").unwrap();
    for _ in 0..65 {
        file.write_all(&[b'x'; 1 << 20]).unwrap();
    }
    file.write_all(b"\"}\n").unwrap();
    file.write_all(tail.as_bytes()).unwrap();
    drop(file);
    let (report, problems) = scan(home.path());
    one(&problems, "runs/long.jsonl", "skipped line 2: longer than 64 MB");
    assert_eq!(turns(&report, "long"), 7);
}

#[test]
fn encodings_are_told_apart_and_stray_bytes_are_mended() {
    let home = home();
    let write =
        |name: &str, bytes: Vec<u8>| std::fs::write(home.path().join("runs").join(name), bytes).unwrap();
    let utf16 = stuck("utf16", "m", 5).encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    write("utf16.jsonl", [b"\xff\xfe".to_vec(), utf16].concat());
    write("mark.jsonl", [b"\xef\xbb\xbf".to_vec(), stuck("mark", "m", 5).into_bytes()].concat());
    let latin = stuck("latin", "m", 5).replace("I will look around.", "gr@@e").into_bytes();
    write("latin.jsonl", latin.into_iter().map(|b| if b == b'@' { 0xfc } else { b }).collect());
    write("half.jsonl", stuck("half", "m", 5).replace("I give up.", "cut \\ud83d").into_bytes());
    let (report, problems) = scan(home.path());
    for session in ["utf16", "mark", "latin", "half"] {
        assert_eq!(turns(&report, session), 7, "{session}");
    }
    let told = "replaced invalid characters with � in 1 line";
    let paths: Vec<&str> = problems.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["runs/half.jsonl", "runs/latin.jsonl"]);
    assert!(problems.iter().all(|(_, problem)| problem == told), "{problems:?}");
}

#[test]
fn a_bomb_is_cut_and_said() {
    let home = home();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(stuck("bomb", "m", 5).as_bytes()).unwrap();
    for _ in 0..100 {
        gz.write_all(&[b' '; 1 << 20]).unwrap();
        gz.write_all(b"\n").unwrap();
    }
    std::fs::write(home.path().join("runs/bomb.jsonl.gz"), gz.finish().unwrap()).unwrap();
    let (report, problems) = scan(home.path());
    assert_eq!(turns(&report, "bomb"), 7, "what came before is kept");
    let (path, problem) = &problems[0];
    assert_eq!(path, "runs/bomb.jsonl.gz");
    assert!(problem.starts_with("stopped reading at 64 MB"), "{problem}");
}

#[test]
fn a_broken_archive_keeps_what_was_good() {
    let home = home();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gz.write_all(stuck("torn", "m", 30).as_bytes()).unwrap();
    let packed = gz.finish().unwrap();
    std::fs::write(home.path().join("runs/torn.jsonl.gz"), &packed[..packed.len() / 2]).unwrap();
    let (report, problems) = scan(home.path());
    assert!(turns(&report, "torn").as_u64().unwrap() > 5);
    assert!(problems.iter().any(|(_, p)| p.contains("ends early, after line")), "{problems:?}");
}

#[cfg(unix)]
#[test]
fn a_link_in_a_circle_is_followed_once() {
    let home = home();
    let deep = home.path().join("runs/deep");
    std::fs::create_dir(&deep).unwrap();
    std::os::unix::fs::symlink(home.path().join("runs"), deep.join("back")).unwrap();
    std::os::unix::fs::symlink(home.path().join("nowhere"), deep.join("gone.jsonl")).unwrap();
    std::os::unix::fs::symlink(home.path().join("runs/good.jsonl"), deep.join("same.jsonl")).unwrap();
    let (report, problems) = scan(home.path());
    one(&problems, "runs/deep/back", "a link back to a folder above it; not followed");
    assert_eq!(report["totals"]["files"], 1, "one file by two names is one file");
}

/// Permissions do not bind a superuser, so as one the binary is run as nobody.
#[cfg(unix)]
#[test]
fn a_folder_without_permission_is_said() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    let home = home();
    let allow =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let closed = home.path().join("runs/closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::write(home.path().join("runs/secret.jsonl"), stuck("secret", "m", 5)).unwrap();
    allow(home.path(), 0o755);
    allow(&home.path().join("runs"), 0o755);
    allow(&closed, 0o000);
    allow(&home.path().join("runs/secret.jsonl"), 0o000);
    let scan = |nobody: bool| -> Output {
        let mut command = deloop(home.path());
        if nobody {
            command.uid(65534).gid(65534);
        }
        run(command.args(["scan", "--json", "runs"]), b"")
    };
    let bound = std::fs::read_dir(&closed).is_err();
    let output = scan(!bound);
    allow(&closed, 0o755);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems = json!([
        {"path": "runs/closed", "problem": "permission denied", "lost": true},
        {"path": "runs/secret.jsonl", "problem": "permission denied", "lost": true},
    ]);
    assert_eq!((&report["problems"], &report["totals"]["loops"]), (&problems, &json!(1)));
}

/// One of each at once.
#[test]
fn a_bad_file_never_loses_the_others() {
    let home = home();
    let runs = home.path().join("runs");
    for (name, bytes) in [
        ("empty.jsonl", &b""[..]),
        ("zeros.jsonl", &[0; 4096]),
        ("random.json", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("open.json", b"{\"messages\": ["),
        ("deep.jsonl", &[b'['; 100_000]),
        ("gzip.jsonl.gz", b"\x1f\x8b\x08\0broken"),
        ("zstd.jsonl.zst", b"\x28\xb5\x2f\xfdbroken"),
    ] {
        std::fs::write(runs.join(name), bytes).unwrap();
    }
    let (report, problems) = scan(home.path());
    assert_eq!(report["totals"]["loops"], 1);
    let paths: Vec<&str> = problems.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        ["runs/gzip.jsonl.gz", "runs/zstd.jsonl.zst"],
        "what is no session is no problem: {problems:?}"
    );
}

/// A home with a folder that somebody else filled: links in it lead to a session of another person and to a folder of theirs.
#[cfg(unix)]
fn home_with_links_out() -> tempfile::TempDir {
    let home = home();
    let runs = home.path().join("runs");
    std::fs::create_dir(home.path().join("theirs")).unwrap();
    std::fs::write(home.path().join("theirs/private.jsonl"), stuck("private", "m", 5)).unwrap();
    std::os::unix::fs::symlink("../theirs/private.jsonl", runs.join("a.jsonl")).unwrap();
    std::os::unix::fs::symlink(home.path().join("theirs"), runs.join("b")).unwrap();
    home
}

#[cfg(unix)]
#[test]
fn links_that_lead_out_of_the_folder_are_skipped_and_counted() {
    let home = home_with_links_out();
    let (report, problems) = scan(home.path());
    assert_eq!(report["totals"]["files"], 1);
    let skipped = "skipped 2 links that lead out of this folder (`a.jsonl` is one); `--follow` follows them";
    one(&problems, "runs", skipped);
    let home = home.path();
    for pattern in ["runs/*", "runs/**/*.jsonl", "runs/**"] {
        let output = run(deloop(home).args(["steps", pattern]), b"");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("\"good\"") && !text.contains("private"), "{pattern}: {text}");
        assert!(
            said(&output).contains("skipped 2 links") || pattern == "runs/**/*.jsonl",
            "{}",
            said(&output)
        );
    }
    let above = run(deloop(home).args(["steps", "*/*.jsonl"]), b"");
    assert!(
        String::from_utf8_lossy(&above.stdout).contains("private"),
        "the pattern names the folder it lies in"
    );
}

/// Every command that reads folders stays in them; `--follow` and a link that was named lead out.
#[cfg(unix)]
#[test]
fn no_command_leaves_the_folder_unless_it_is_told_to() {
    let home = home_with_links_out();
    let text = |arguments: &[&str]| {
        let output = run(deloop(home.path()).args(arguments), b"");
        String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output)
    };
    std::fs::write(home.path().join("runs/labels.jsonl"), "{\"path\":\"good.jsonl\",\"label\":\"loop\"}\n")
        .unwrap();
    let compare = ["compare", "--a", "default", "--b", "signature", "--json"];
    for command in [
        &["scan", "--json"][..],
        &["steps"],
        &compare,
        &["show", "--all", "s", "--profile", "default"],
        &["eval", "--verbose"],
    ] {
        let folder = if command[0] == "eval" { "runs/labels.jsonl" } else { "runs" };
        let command = [command, &[folder]].concat();
        assert!(!text(&command).contains("a.jsonl\""), "{command:?}: {}", text(&command));
        assert!(text(&command).contains("`--follow` follows them"), "{command:?}: {}", text(&command));
        let followed = text(&[&command[..], &["--follow"]].concat());
        assert!(!followed.contains("`--follow`"), "{command:?}: {followed}");
    }
    assert!(text(&["steps", "--follow", "runs"]).contains("\"private\""));
    assert!(text(&["steps", "runs/a.jsonl"]).contains("\"private\""), "a link to a file that was named");
    assert!(text(&["steps", "runs/b"]).contains("\"private\""), "a link to a folder that was named");
    std::fs::write(home.path().join("runs/labels.jsonl"), "{\"path\":\"a.jsonl\",\"label\":\"loop\"}\n")
        .unwrap();
    assert!(text(&["eval", "runs/labels.jsonl"]).contains("leads out of"));
    assert!(!text(&["eval", "runs/labels.jsonl", "--follow"]).contains("leads out of"));
}

/// The folders of the agents are read when no path is given. A link in them may lead to another of them, but nowhere else.
#[cfg(unix)]
#[test]
fn links_in_the_folder_of_an_agent_stay_among_the_agents() {
    let home = home_with_links_out();
    let projects = home.path().join(".claude/projects");
    std::fs::create_dir_all(&projects).unwrap();
    std::os::unix::fs::symlink(home.path().join("theirs"), projects.join("out")).unwrap();
    let output = run(deloop(home.path()).args(["scan"]), b"");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("private"));
    assert!(
        said(&output).contains("skipped a link that leads out of this folder (`out`)"),
        "{}",
        said(&output)
    );
    let output = run(deloop(home.path()).args(["scan", "--follow", "--json"]), b"");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["totals"]["files"], 1, "{report}");
}
