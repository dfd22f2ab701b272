//! Requests that arrive at the same time, and so are decided about together.

use std::sync::Barrier;
use std::thread;

use serde_json::json;

use crate::client::Server;
use crate::redis_server::RedisServer;

const CLIENTS: usize = 40;
const STEPS: u64 = 30;

#[test]
fn requests_that_arrive_together_are_answered_one_by_one() {
    are_answered_one_by_one(&[]);
}

#[test]
#[ignore = "needs redis-server"]
fn requests_that_arrive_together_over_redis_are_answered_one_by_one() {
    let redis = RedisServer::start();
    are_answered_one_by_one(&["--store", &redis.url(), "--store-timeout", "10000"]);
}

/// Every client gets the decisions about its own steps, in its own project and in order, and its own errors.
fn are_answered_one_by_one(store: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[&["--profile", "turn-hash"], store].concat());
    let barrier = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for n in 0..CLIENTS {
            let (server, barrier) = (&server, &barrier);
            scope.spawn(move || {
                let mut client = server.client();
                // Half of the clients share their sessions' names with one of the other project.
                let (session, project) = (format!("s{}", n / 2), ["a", "b"][n % 2]);
                let path = format!("/v1/steps?project={project}");
                barrier.wait();
                for step in 0..STEPS {
                    let body =
                        json!({"type": "turn", "session": session, "text": format!("{project} {n} {step}")});
                    let answer = client.post(&path, &body.to_string());
                    assert_eq!(answer.status, 200, "{answer:?}");
                    assert_eq!(
                        (&answer.json()["session"], &answer.json()["step"]),
                        (&json!(session), &json!(step))
                    );
                    if n % 7 == 0 {
                        let wrong = client.post(&path, "nonsense");
                        assert!(wrong.status == 400 && !wrong.error().is_empty(), "{wrong:?}");
                    }
                    if n % 5 == 0 {
                        let lines = format!("{{\"type\":\"state\",\"session\":\"{session}\"}}\nnonsense\n");
                        let answers = client.lines(&lines);
                        assert_eq!((answers.len(), &answers[1]["index"]), (2, &json!(1)), "{answers:?}");
                    }
                }
            });
        }
    });
    let metrics = server.client().get("/metrics").text();
    let turns = CLIENTS as u64 * STEPS;
    let states = CLIENTS.div_ceil(5) as u64 * STEPS;
    assert!(metrics.contains(&format!("\ndeloop_steps_total {}\n", turns + states)), "{metrics}");
}
