//! A server whose disk is full. The disk is a small file system in memory, in a namespace of its own.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::alerts::{ACCEPT, SECRET, config, route};
use super::client::Server;
use super::receiver::AlertReceiver;
use crate::binary::{run, said};

/// A disk of 2 MiB, which is gone when the test ends.
struct SmallDisk {
    holder: Child,
    folder: PathBuf,
}

impl SmallDisk {
    fn mount(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let script = "mount -t tmpfs -o size=2m,mode=700 tmpfs \"$1\" && echo ready && read -r line";
        let mut holder = Command::new("unshare")
            .args(["-Urm", "sh", "-c", script, "sh"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        let is_ready = holder.stdout.as_mut().is_some_and(|out| out.read_exact(&mut ready).is_ok());
        assert!(is_ready, "a namespace with a disk of its own");
        Self { holder, folder: folder.to_owned() }
    }

    /// The disk, seen from here.
    fn path(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.folder.strip_prefix("/").unwrap())
    }

    /// Runs a command where the disk is.
    fn command(&self, home: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder.id().to_string(), "-U", "-m", "--preserve-credentials"]);
        command.arg(env!("CARGO_BIN_EXE_deloop"));
        command.current_dir(home).env_clear().env("HOME", home).env("ALERT_SECRET", SECRET);
        command
    }

    fn fill(&self) {
        let mut filler = std::fs::OpenOptions::new().create(true).append(true).open(self.filler()).unwrap();
        while filler.write_all(&[0; 4096]).is_ok() {}
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn metric(text: &str, name: &str) -> u64 {
    let row = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    row.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

/// **A full disk.** Steps are refused with `503` and a reason, so that hooks decide by themselves; `/readyz` says so. Nothing
/// is damaged, nothing answered is lost, and the server goes on as soon as there is room. Alerts and audit records that
/// couldn't be stored are counted, and the audit log notes how many.
#[test]
#[ignore = "needs namespaces"]
fn a_full_disk_refuses_steps_and_recovers() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let disk = SmallDisk::mount(&home.join("disk"));
    let receiver = AlertReceiver::start(ACCEPT);
    let file = config(home, &route("ops", "webhook", &receiver.url("/"), "secret_env = \"ALERT_SECRET\""));
    let state = disk.folder.to_str().unwrap();
    let start = || Server::start_with(disk.command(home), &["--config", &file, "--state", state]);
    let server = start();
    let mut client = server.client();
    let step = |session: &str, n: u64| json!({"type": "turn", "session": session, "text": format!("{n}")});
    assert_eq!(client.step(&step("s1", 0))["step"], 0);
    assert_eq!(client.get("/readyz").status, 200);
    assert_eq!(client.step(&step("s1", 1))["step"], 1);

    disk.fill();
    // The last page of the log has room for a few more steps, and none for the alert of a stop.
    let turn = json!({"type": "turn", "session": "loop", "text": "check price and decide trade"});
    let actions: Vec<_> = (0..6).map(|_| client.step(&turn)["action"].clone()).collect();
    assert_eq!(actions[5], "stop");
    let metrics = client.get("/metrics").text();
    assert!(metric(&metrics, "deloop_alert_backlog_errors_total") >= 1, "{metrics}");
    let mut answered = 2;
    let refused = loop {
        let answer = client.post("/v1/steps", &step("s1", answered).to_string());
        if answer.status != 200 {
            break answer;
        }
        assert_eq!(answer.json()["step"], answered);
        answered += 1;
        assert!(answered < 1_000, "the disk is full");
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(refused.error().contains("nothing was stored"), "{refused:?}");
    let ready = client.get("/readyz");
    assert!(ready.status == 503 && ready.error().contains("database"), "{ready:?}");
    assert_eq!(client.get("/healthz").status, 200);
    for path in ["reset", "message"] {
        let answer = client.post(&format!("/v1/sessions/s1/{path}"), r#"{"text":"Stop."}"#);
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
    }
    assert_eq!(client.get("/v1/sessions/s1").json()["steps"], answered, "nothing was changed");

    std::fs::remove_file(disk.filler()).unwrap();
    assert_eq!(client.step(&step("s1", answered))["step"], answered, "it goes on by itself");
    assert_eq!(client.get("/readyz").status, 200);
    assert_eq!(client.step(&turn)["action"], "stop");
    server.kill();
    let server = start();
    let mut client = server.client();
    assert_eq!(client.get("/v1/sessions/s1").json()["steps"], answered + 1);
    assert_eq!(client.get("/v1/sessions/loop").json()["ended"]["action"], "stop");
    drop(server);
    let audit = run(disk.command(home).args(["audit", "verify", "--state", state]), b"");
    assert_eq!(audit.status.code(), Some(0), "{}", said(&audit));
    let whole = rusqlite::Connection::open(disk.path().join("server.db")).unwrap();
    let checked: String = whole.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
}
