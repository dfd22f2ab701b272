//! Messages of people to agents.

use serde_json::json;

use super::client::Server;
use super::events::EventStream;

#[test]
fn an_agent_gets_a_message_once_at_its_next_step() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    let mut events = EventStream::open(&server, "/v1/events?session=s1", None);
    let say = |text: &str| json!({"type": "turn", "session": "s1", "text": text});
    client.step(&say("Let me look."));
    let sent = client.post("/v1/sessions/s1/message", r#"{"text":"Use the staging database."}"#);
    assert_eq!(sent.json(), json!({"session": "s1", "queued": true}));
    let (_, event) = events.next();
    assert_eq!((&event["event"], &event["actor"]), (&json!("session.message"), &json!("local")));
    assert!(event.get("text").is_none(), "what was said is between the two");
    // A message survives the server.
    server.signal("KILL");
    server.wait();
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    let decision = client.step(&say("I'll look at the tables."));
    assert_eq!((&decision["action"], &decision["role"]), (&json!("nudge"), &json!("user")), "{decision}");
    assert_eq!(decision["message"], "[deloop] Message from the operator: Use the staging database.");
    assert_eq!(client.step(&say("Now the views."))["action"], "continue");
    // One that didn't arrive is sent again.
    client.step(&json!({"type": "delivery", "session": "s1", "step": decision["step"], "ok": false}));
    assert_eq!(client.step(&say("Now the keys."))["message"], decision["message"]);
}

#[test]
fn a_message_needs_a_session_and_a_text() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    assert_eq!(client.post("/v1/sessions/none/message", r#"{"text":"Hello."}"#).status, 404);
    client.step(&json!({"type": "turn", "session": "s1", "text": "Hm."}));
    for body in
        ["", "{}", r#"{"text":" "}"#, r#"{"text":7}"#, &json!({"text": "x".repeat(8_001)}).to_string()]
    {
        let answer = client.post("/v1/sessions/s1/message", body);
        assert!(answer.status == 400 && !answer.error().is_empty(), "{body}");
    }
}
