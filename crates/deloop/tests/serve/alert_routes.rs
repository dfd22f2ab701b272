//! Routes of alerts: which addresses they may name, who may set them, and `deloop alerts test`.

use super::alert_formats::check_webhook;
use super::alerts::{ACCEPT, SECRET, config, route};
use super::binary::{deloop, run, said};
use super::receiver::AlertReceiver;

#[test]
fn private_addresses_are_refused_unless_allowed() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let routes = |url: &str, allow: bool| {
        format!(
            "[[serve.alerts]]\nname = \"in\"\nsink = \"slack\"\nurl = \"{url}\"\nallow_private = {allow}\n"
        )
    };
    let serve = |url: &str, allow: bool| {
        let config = config(home, &routes(url, allow));
        let output = run(deloop(home).args(["serve", "--listen", "127.0.0.1:0", "--config", &config]), b"");
        assert_eq!(output.status.code(), Some(2), "{url}: {}", said(&output));
        said(&output)
    };
    for url in [
        "http://127.0.0.1/token",
        "https://127.0.0.1/token",
        "https://[::ffff:10.0.0.1]/token",
        "https://localhost/token",
    ] {
        let said = serve(url, false);
        assert!(
            said.starts_with("deloop: alert route `in`: ") && said.contains("allow_private"),
            "{url}: {said}"
        );
        assert!(!said.contains("token"), "{said}");
    }
    for url in ["http://169.254.169.254/latest/meta-data", "http://[fd00:ec2::254]/", "http://0.0.0.0/"] {
        let said = serve(url, true);
        assert!(said.contains("which no route may use"), "{url}: {said}");
    }
    // A name says nothing about its address: it is checked when the connection is made. This one is 127.0.0.1.
    let config = config(home, &routes("https://2130706433/token", false));
    let output = run(deloop(home).args(["alerts", "test", "--config", &config]), b"");
    let shown = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{shown}{}", said(&output));
    assert!(
        shown.contains("was refused (2130706433 resolves to 127.0.0.1, an address of this machine"),
        "{shown}"
    );
}

#[test]
fn a_test_alert_shows_what_the_receiver_answered() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (good, bad) = (
        AlertReceiver::start(ACCEPT),
        AlertReceiver::start(|_| Some(("403 Forbidden", "invalid_token\u{1b}[31m"))),
    );
    let file = home.join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let routes = route("hook", "webhook", &good.url("/"), &format!("secret_file = \"{}\"", file.display()))
        + &route("chat", "slack", &bad.url("/"), "levels = [\"critical\"]");
    let config = config(home, &routes);
    let test = |arguments: &[&str]| {
        let output = run(deloop(home).args(["alerts", "test", "--config", &config]).args(arguments), b"");
        (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap(), said(&output))
    };
    let (code, shown, _) = test(&["hook"]);
    assert_eq!(
        (code, shown),
        (Some(0), format!("hook: webhook http://{}/ accepted (HTTP 200: ok)\n", good.address))
    );
    assert_eq!(check_webhook(&good.next(), SECRET)["kind"], "test");
    let (code, shown, _) = test(&[]);
    assert_eq!(code, Some(1));
    assert!(
        shown.contains("chat: slack") && shown.contains("was refused (HTTP 403: invalid_token"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'));
    let (code, _, said) = test(&["nope"]);
    assert!(code == Some(2) && said.contains("there are: hook, chat"), "{said}");
}

#[test]
fn a_folder_cannot_set_routes() {
    let home = tempfile::tempdir().unwrap();
    let route = "[[serve.alerts]]\nname = \"x\"\nsink = \"command\"\ncommand = [\"/bin/true\"]\n";
    std::fs::write(home.path().join("deloop.toml"), route).unwrap();
    let output = run(deloop(home.path()).args(["trust", "deloop.toml"]), b"");
    assert!(said(&output).contains("only your own configuration can set `serve`"), "{}", said(&output));
    let output = run(deloop(home.path()).args(["alerts", "list"]), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("no alert routes"), "{}", said(&output));
}
