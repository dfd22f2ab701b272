//! A secret in a command is in no stored file, message, log or report.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent_hooks::Agent;
use crate::binary::{deloop, lines, run};

/// Commands with a secret in the place of `{}`, and the pieces of the secret: put together here, so that no scanner of
/// this repository takes them for real ones. The last piece must not be seen anywhere.
const SECRETS: &[(&str, &[&str])] = &[
    ("curl https://me:{}@host.example/x", &["corr", "ect7horse"]),
    ("git clone https://{}@host.example/x.git", &["tok9", "battery8staple"]),
    ("psql postgres://app:{}@db.example:5432/x", &["s3", "cretbattery"]),
    ("curl -u admin:{} https://x.example", &["hun", "ter2horse"]),
    ("curl --user admin:{} https://x.example", &["hun", "ter3horse"]),
    ("curl --user=admin:{} https://x.example", &["hun", "ter4horse"]),
    ("curl -uadmin:{} https://x.example", &["hun", "ter5horse"]),
    ("mysql -uroot -p{} shop", &["roo", "tpass1word"]),
    ("mysqldump --password={} shop", &["roo", "tpass2word"]),
    ("sshpass -p {} ssh me@host", &["roo", "tpass3word"]),
    ("docker login -u me -p {} registry.example", &["roo", "tpass4word"]),
    ("redis-cli -a {} ping", &["roo", "tpass5word"]),
    ("unzip -P {} a.zip", &["roo", "tpass6word"]),
    ("ldapsearch -x -w {} -b dc=x", &["roo", "tpass7word"]),
    ("tool --password {} run", &["roo", "tpass8word"]),
    ("tool --token {} run", &["roo", "ttoken1word"]),
    ("tool --api-key {} run", &["roo", "ttoken2word"]),
    ("tool --pat={} run", &["roo", "ttoken3word"]),
    ("tool --client-secret '{}' run", &["roo", "ttoken4word"]),
    ("DB_PASS={} ./run", &["roo", "tenv1word"]),
    ("export SECRET={} && ./run", &["roo", "tenv2word"]),
    ("GH_TOKEN=\"{}\" gh pr list", &["roo", "tenv3word"]),
    ("PGPASSWORD={} psql -h db", &["roo", "tenv4word"]),
    ("MYSQL_PWD={} mysql", &["roo", "tenv5word"]),
    ("AWS_SECRET_ACCESS_KEY={} aws s3 ls", &["wJalrXUtnFEMI/K7MD", "ENG/bPxRfiCYzzzzKEY"]),
    ("API_KEY={} ./run", &["roo", "tenv6word"]),
    ("curl -H 'Authorization: Bearer {}' https://x", &["roo", "thead1word"]),
    ("curl -H \"Authorization: Basic {}\" https://x", &["cm9v", "dDpwYXNzd29yZA=="]),
    ("curl -H 'Authorization: token {}' https://x", &["roo", "thead2word"]),
    ("curl -H 'Cookie: sid={}; theme=dark' https://x", &["roo", "thead3word"]),
    ("curl -H 'X-Api-Key: {}' https://x", &["roo", "thead4word"]),
    ("curl -H 'PRIVATE-TOKEN: {}' https://x", &["roo", "thead5word"]),
    ("curl 'https://x.example/?api_key={}'", &["roo", "tquery1word"]),
    ("curl 'https://x.example/?a=1&access_token={}'", &["roo", "tquery2word"]),
    ("echo '{\"password\": \"{}\"}'", &["roo", "tjson1word"]),
    ("echo '{\"apiKey\":\"{}\"}'", &["roo", "tjson2word"]),
    ("echo {}", &["AK", "IA", "J3Q7XKZP5LMN2WVT"]),
    ("echo {}", &["AS", "IA", "J3Q7XKZP5LMN2WVU"]),
    ("echo {}", &["gh", "p_", "16C7e42F292c6912E7710c838347Ae178B4a"]),
    ("echo {}", &["gh", "s_", "17C7e42F292c6912E7710c838347Ae178B4a"]),
    ("echo {}", &["github", "_pat_", "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz"]),
    ("echo {}", &["gl", "pat-", "a1B2c3D4e5F6g7H8i9J0"]),
    ("echo {}", &["xo", "xb-", "123456789012-1234567890123-AbCdEfGhIjKl"]),
    ("echo {}", &["xa", "pp-", "1-A0123-456-abcdef0123456789"]),
    ("echo {}", &["sk_", "live_", "4eC39HqLyjWDarjtT1zdp7dc"]),
    ("echo {}", &["rk_", "live_", "5eC39HqLyjWDarjtT1zdp7dc"]),
    ("echo {}", &["sk-", "proj-", "Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56"]),
    ("echo {}", &["sk-", "ant-", "api03-Ab12Cd34Ef56Gh78Ij90Kl12Mn34"]),
    ("echo {}", &["AI", "za", "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7"]),
    ("echo {}", &["GOC", "SPX-", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"]),
    ("echo {}", &["np", "m_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"]),
    ("echo {}", &["py", "pi-", "AgEIcHlwaS5vcmcCJDU3M2Q4"]),
    ("echo {}", &["h", "f_", "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH"]),
    ("echo {}", &["S", "G.", "ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf-09kqeF8tAmbihYzrnopKc-1s5cr"]),
    ("echo {}", &["dop", "_v1_", "b7a1c2d3e4f5061728394a5b6c7d8e9f"]),
    ("echo {}", &["ey", "J", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN"]),
    ("echo '-----BEGIN RSA {}", &["PRIVATE ", "KEY-----\n", "MIIEpAIBAAKCAQEA1c7pZQx"]),
    ("echo {}", &["hv", "s.", "CAESIJ1b2c3D4e5F6g7H8i9J0k1L2m3N4"]),
    ("echo {}", &["ts", "key-", "auth-k1B2c3D4e5F6-g7H8i9J0k1L2m3N4"]),
    ("curl https://hooks.slack{}", &[".com/serv", "ices/", "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"]),
    ("deploy {} now", &["q7", "Rz9", "Lk2Vw8Xp4Tn6Yb3Md5Hc1"]),
    ("echo {} | base64 -d", &["x", "Y", "9kP2mN4qR6sT8uV0wX2yZ4aB6cD8eF0g"]),
];

fn command((template, pieces): &(&str, &[&str])) -> String {
    template.replace("{}", &pieces.concat())
}

fn secret((_, pieces): &(&str, &[&str])) -> String {
    (*pieces.last().unwrap()).to_owned()
}

/// The secrets of which a part can be read in a text, whatever its letter case.
fn leaks(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text).to_lowercase();
    let part = |s: &(&str, &[&str])| secret(s).to_lowercase().chars().take(9).collect::<String>();
    SECRETS.iter().filter(|s| text.contains(&part(s))).map(command).collect()
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

fn nothing_in(home: &Path) {
    for path in files(home) {
        let found = leaks(&std::fs::read(&path).unwrap());
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
    }
}

#[test]
fn a7_the_commands_hold_the_secrets() {
    let all: String = SECRETS.iter().map(command).collect();
    assert_eq!((leaks(all.as_bytes()).len(), SECRETS.len() >= 60), (SECRETS.len(), true));
}

#[test]
fn a7_no_secret_in_hooks_the_log_and_labels() {
    let agent = Agent::new("claude-code", "default", "enforce");
    let home = agent.home.path();
    for (n, one) in SECRETS.iter().enumerate() {
        let command = command(one);
        for lap in 0..4 {
            for (event, more) in
                [("PreToolUse", json!({})), ("PostToolUseFailure", json!({"error": "Exit code 2"}))]
            {
                let mut sent = json!({"session_id": format!("s{n}"), "hook_event_name": event, "tool_name": "Bash",
                    "tool_input": {"command": command}, "tool_use_id": format!("c{lap}"), "cwd": "/tmp",
                    "permission_mode": "bypassPermissions"});
                sent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                let reply = agent.send(&sent).to_string();
                assert_eq!(leaks(reply.as_bytes()), Vec::<String>::new(), "{reply}");
            }
        }
    }
    assert!(agent.query::<i64>("SELECT count(*) FROM decisions") >= 60, "they are loops");
    let log = run(deloop(home).args(["log", "--json", "-n", "1000"]), b"");
    assert_eq!(leaks(&log.stdout), Vec::<String>::new());
    for row in lines(&log.stdout).iter().step_by(20) {
        let id = row["id"].as_str().unwrap();
        for arguments in [&["explain", id][..], &["wrong", id, "--was", "legit"], &["log"]] {
            let output = run(deloop(home).args(arguments), b"");
            assert_eq!(
                leaks(&[output.stdout, output.stderr].concat()),
                Vec::<String>::new(),
                "{arguments:?}"
            );
        }
    }
    nothing_in(home);
}

#[test]
fn a7_no_secret_in_streams_and_their_files() {
    for profile in ["default", "signature", "behavioral", "doom-loop", "turn-similarity", "turn-hash"] {
        let home = tempfile::tempdir().unwrap();
        let mut input = String::new();
        for (n, one) in SECRETS.iter().enumerate() {
            for lap in 0..8 {
                let call = json!({"type": "call", "session": format!("s{n}"), "task": "t", "id": format!("c{lap}"),
                    "tool": "bash", "args": {"command": command(one)}});
                let result = json!({"type": "result", "session": format!("s{n}"), "id": format!("c{lap}"), "ok": false,
                    "output": format!("denied: {}", command(one))});
                input.push_str(&format!("{call}\n{result}\n"));
            }
        }
        // What is wrong is told, without what it holds.
        for one in SECRETS {
            input.push_str(&format!("{}\n", json!({"type": command(one)})));
        }
        let options =
            ["--agent", "opencode", "--events", "events.jsonl", "--checkpoint", "check.json", "-p", profile];
        let output = run(deloop(home.path()).arg("stream").args(options), input.as_bytes());
        assert_eq!(leaks(&output.stderr), Vec::<String>::new(), "{profile}");
        for line in output.stdout.split(|b| *b == b'\n') {
            assert_eq!(leaks(line), Vec::<String>::new(), "{profile}: {}", String::from_utf8_lossy(line));
        }
        nothing_in(home.path());
    }
}

#[test]
fn a7_no_secret_in_the_behavioral_hook() {
    let home = tempfile::tempdir().unwrap();
    for (n, one) in SECRETS.iter().enumerate().step_by(4) {
        for args in [json!({"command": command(one)}), json!({"password": secret(one), "a": [command(one)]})]
        {
            let input = json!({"taskId": format!("t{n}"), "toolName": "Bash", "args": args}).to_string();
            for _ in 0..8 {
                let arguments = ["hook", "behavioral", "--memory", "notes"];
                let output = run(deloop(home.path()).args(arguments), input.as_bytes());
                assert_eq!(leaks(&[output.stdout, output.stderr].concat()), Vec::<String>::new());
            }
        }
    }
    nothing_in(home.path());
}

#[test]
fn a7_no_secret_in_reports() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut lines: Vec<Value> = Vec::new();
    for (n, one) in SECRETS.iter().enumerate() {
        for lap in 0..8 {
            lines.push(
                json!({"type": "turn", "session": format!("s{n}"), "text": format!("I run {}", command(one)),
                "calls": [{"id": format!("c{lap}"), "tool": "bash", "args": {"command": command(one)}}]}),
            );
            lines.push(
                json!({"type": "result", "session": format!("s{n}"), "id": format!("c{lap}"), "ok": false,
                "output": format!("could not run: {}", command(one))}),
            );
        }
    }
    let file = elsewhere.path().join("s.jsonl");
    std::fs::write(&file, lines.iter().map(|l| format!("{l}\n")).collect::<String>()).unwrap();
    for more in [&["--json"][..], &["--csv"], &["--html", "r.html", "--top", "0"]] {
        let output = run(deloop(home.path()).arg("scan").arg(&file).args(more), b"");
        assert_eq!(leaks(&[output.stdout, output.stderr].concat()), Vec::<String>::new(), "{more:?}");
    }
    for n in (0..SECRETS.len()).step_by(7) {
        let output = run(deloop(home.path()).arg("show").arg(&file).args([&format!("s{n}"), "--all"]), b"");
        assert_eq!(leaks(&[output.stdout, output.stderr].concat()), Vec::<String>::new(), "s{n}");
    }
    nothing_in(home.path());
}

/// `deloop run`: what it prints, the hand-off, and the log.
#[cfg(unix)]
#[test]
fn a7_no_secret_in_a_run_and_its_hand_off() {
    // A request to another machine may succeed later, so it ends no run.
    let remote = ["curl", "psql", "mysql ", "redis-cli", "ssh", "wget", "http ", "mongosh"];
    let local = SECRETS.iter().filter(|one| !remote.iter().any(|program| command(one).starts_with(program)));
    for one in local.step_by(9) {
        let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let event = |name: &str| {
            json!({"session_id": "s", "hook_event_name": name, "tool_name": "Bash", "tool_input": {"command": command(one)},
                "tool_use_id": "cNUMBER", "error": "Exit code 2", "cwd": "/tmp"}).to_string()
        };
        let (before, after) = (elsewhere.path().join("before"), elsewhere.path().join("after"));
        std::fs::write(&before, event("PreToolUse")).unwrap();
        std::fs::write(&after, event("PostToolUseFailure")).unwrap();
        let script = format!(
            "n=0; while [ $n -lt 9 ]; do n=$((n+1)); for f in {} {}; do sed s/NUMBER/$n/ $f | $BIN hook claude-code; done; done",
            before.display(),
            after.display()
        );
        let mut deloop = deloop(home.path());
        deloop.env("PATH", "/usr/bin:/bin").env("BIN", env!("CARGO_BIN_EXE_deloop"));
        let output = run(deloop.args(["run", "--grace", "0.2", "--", "/bin/sh", "-c", &script]), b"");
        assert_eq!(output.status.code(), Some(86), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(leaks(&[output.stdout, output.stderr].concat()), Vec::<String>::new());
        assert!(files(home.path()).iter().any(|f| f.to_string_lossy().contains("handoff-")));
        nothing_in(home.path());
    }
}
