//! What the five documents say holds through HTTP, too.

use deloop_conformance::{PROFILES, vectors};
use serde_json::{Value, json};

use super::client::{Client, Server, segment};
use crate::conformance_cases::{RandomCases, check_vector, config_file};
use crate::redis_server::RedisServer;

/// The engine is compared with the reference on many more. Here is shown that the way through HTTP and a store changes nothing.
const CASES: u64 = 30;

/// Leaves out what a server adds to the decisions of the documents: every worker of a stuck swarm is told, in place of
/// `continue` or before a message of its own.
fn without_own_messages(mut answers: Vec<Value>) -> Vec<Value> {
    for answer in answers.iter_mut().filter(|answer| answer["from"] == "swarm" && answer["level"] == 0) {
        answer["action"] = json!("continue");
        (answer["message"], answer["role"]) = (Value::Null, Value::Null);
    }
    answers
}

/// Forgets every session and swarm, page by page.
fn forget_all(client: &mut Client) {
    loop {
        let page = client.get("/v1/sessions?limit=3").json();
        let names = page["sessions"].as_array().unwrap().clone();
        if names.is_empty() {
            break;
        }
        for name in names {
            let path = format!("/v1/sessions/{}/reset", segment(name.as_str().unwrap()));
            assert_eq!(client.post(&path, "").json()["existed"], true);
        }
    }
    for name in client.get("/v1/swarms").json()["swarms"].as_array().unwrap() {
        let path = format!("/v1/swarms/{}", segment(name.as_str().unwrap()));
        assert_eq!(client.send("DELETE", &path, &[], b"").unwrap().status, 200);
    }
}

fn every_vector_holds(store: &[&str]) {
    let mut vectors = vectors::load().unwrap();
    assert!(vectors.len() >= 80, "{} vectors", vectors.len());
    vectors.sort_by_key(|vector| (vector.profile.clone(), vector.config.to_string()));
    let same = |a: &vectors::Vector, b: &vectors::Vector| a.profile == b.profile && a.config == b.config;
    for group in vectors.chunk_by(same) {
        let home = tempfile::tempdir().unwrap();
        let config = config_file(&group[0], home.path());
        let arguments = ["--profile", &group[0].profile, "--config", config.to_str().unwrap()];
        let server = Server::start(home.path(), &[&arguments, store].concat());
        let mut client = server.client();
        for vector in group {
            let answer = client.post("/v1/steps", &json!(vector.steps).to_string());
            assert_eq!(answer.status, 200, "{}", vector.name);
            check_vector(vector, &without_own_messages(answer.json().as_array().unwrap().clone()));
            forget_all(&mut client);
            let answers: Vec<Value> = vector.steps.iter().map(|step| client.step(step)).collect();
            check_vector(vector, &without_own_messages(answers));
            forget_all(&mut client);
        }
    }
}

fn agrees_with_the_reference(store: &[&str]) {
    for profile in PROFILES {
        let home = tempfile::tempdir().unwrap();
        let server = Server::start(home.path(), &[&["--profile", profile], store].concat());
        let mut client = server.client();
        let cases = RandomCases::new(profile, CASES);
        let answers: Vec<Value> =
            cases.lines.chunks(2_000).flat_map(|batch| client.lines(&batch.concat())).collect();
        cases.check(&without_own_messages(answers));
        forget_all(&mut client);
    }
}

#[test]
fn every_vector_holds_in_a_batch_and_step_by_step() {
    every_vector_holds(&[]);
}

#[test]
#[ignore = "needs redis-server"]
fn every_vector_holds_over_redis() {
    let redis = RedisServer::start();
    every_vector_holds(&["--store", &redis.url(), "--store-timeout", "10000"]);
}

#[test]
fn agrees_with_the_reference_on_random_sessions() {
    agrees_with_the_reference(&[]);
}

#[test]
#[ignore = "needs redis-server"]
fn agrees_with_the_reference_on_random_sessions_over_redis() {
    let redis = RedisServer::start();
    agrees_with_the_reference(&["--store", &redis.url(), "--store-timeout", "10000"]);
}
