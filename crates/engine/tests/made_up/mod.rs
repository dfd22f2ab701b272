//! Steps that nobody sends: odd on purpose, out of a vocabulary so small that they repeat.

use deloop_types::{Body, Call, Delivery, Millis, Origin, Outcome, Step, ToolResult, Turn, Usage, UserText};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Up to eighty steps of up to three interleaved sessions with agents and swarms.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 0..80)
}

fn step() -> impl Strategy<Value = Step> {
    let session = select(vec!["a", "b", "\u{0}\n"]);
    let agent = select(vec![None, None, Some("x"), Some("")]);
    let swarm = select(vec![None, Some("w")]);
    (session, agent, swarm, proptest::option::weighted(0.3, ts()), body()).prop_map(
        |(session, agent, swarm, ts, body)| {
            let mut made = Step::new(session, body);
            made.agent = agent.map(str::to_owned);
            made.swarm = swarm.filter(|_| session != "a").map(str::to_owned);
            made.ts = ts;
            if made.body == Body::SwarmEnd && made.swarm.is_none() {
                made.body = Body::State;
            }
            made
        },
    )
}

/// Mostly near each other; sometimes so far apart that a session is idle, or at an end of time.
fn ts() -> impl Strategy<Value = Millis> {
    prop_oneof![
        8 => (0..10_000_i64).prop_map(Millis),
        1 => select(vec![1_000_000_000_000, i64::MIN, i64::MAX]).prop_map(Millis),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    let turn = (text(), proptest::collection::vec(call(), 0..3));
    prop_oneof![
        6 => turn.prop_map(|(text, calls)| Body::Turn(Turn::new(text, calls))),
        4 => call().prop_map(|call| Body::Turn(Turn::new("", vec![call]))),
        6 => result().prop_map(Body::Result),
        1 => (text(), select(vec![Origin::Human, Origin::Harness]))
            .prop_map(|(text, origin)| Body::User(UserText::new(text, origin))),
        1 => usage().prop_map(Body::Usage),
        1 => Just(Body::Compact),
        1 => select(vec!["again and again ", "a", "```\n"]).prop_map(|text| Body::Chunk(text.to_owned())),
        1 => (0..40_u64, any::<bool>()).prop_map(|(step, ok)| Body::Delivery(Delivery::new(step, ok))),
        1 => select(vec![Body::End, Body::Compact, Body::Compact]),
        1 => select(vec![Body::State, Body::State, Body::SwarmEnd]),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec!["", " \n", "check price and decide trade", "check price and decide on trade"])
            .prop_map(str::to_owned),
        1 => "\\PC{0,20}",
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let tool = prop_oneof![
        8 => select(vec!["bash", "read", "edit", "run_tests", "wait", ""]).prop_map(str::to_owned),
        1 => "\\PC{0,90}",
    ];
    let command = prop_oneof![
        select(vec!["cargo test", "cat a.txt", "head a.txt", "ls | wc", "'"]).prop_map(str::to_owned),
        "[ -~]{0,20}"
    ];
    let args = prop_oneof![
        4 => command.prop_map(|command| json!({ "command": command })),
        2 => select(vec![json!({"path": "a.txt"}), json!({}), json!(null), json!([1, "x"]), json!("ls")]),
        1 => any::<f64>().prop_map(|number| json!({ "limit": number, "query": "q" })),
    ];
    (id(), tool, args).prop_map(|(id, tool, args)| {
        let mut made = Call::new(tool, args);
        made.id = id;
        made
    })
}

fn id() -> impl Strategy<Value = Option<String>> {
    select(vec![None, None, Some("1"), Some("2"), Some("")]).prop_map(|id| id.map(str::to_owned))
}

fn result() -> impl Strategy<Value = ToolResult> {
    let outcome = select(vec![
        None,
        Some(Outcome::Ok),
        Some(Outcome::Error),
        Some(Outcome::Denied),
        Some(Outcome::Cancelled),
        Some(Outcome::Timeout),
        Some(Outcome::Running),
    ]);
    let output = prop_oneof![
        select(vec!["", "done", "no such file", "test result: FAILED. 1 failed", "3 passed in 0.1s"])
            .prop_map(Value::from),
        "\\PC{0,30}".prop_map(Value::from),
        Just(json!({"exit": 1})),
    ];
    (id(), proptest::option::of(any::<bool>()), outcome, output).prop_map(|(id, ok, outcome, output)| {
        let mut made = ToolResult::default();
        made.id = id;
        made.ok = ok;
        made.outcome = outcome;
        made.output = output;
        made
    })
}

fn usage() -> impl Strategy<Value = Usage> {
    let tokens = || select(vec![0, 1, 1000, u64::MAX]);
    let cost = proptest::option::of(select(vec![0.0, 0.1, 0.2, 1e-17, 1.7e308, -1.7e308]));
    (tokens(), tokens(), tokens(), cost).prop_map(
        |(input_tokens, output_tokens, cache_read_tokens, cost_usd)| {
            let mut made = Usage::default();
            made.input_tokens = input_tokens;
            made.output_tokens = output_tokens;
            made.cache_read_tokens = cache_read_tokens;
            made.cost_usd = cost_usd;
            made
        },
    )
}

/// One session in which no two calls share their tool or a word of their arguments, no two turns a word and no two
/// results a word, and nothing fails.
pub(crate) fn all_different() -> impl Strategy<Value = Vec<Step>> {
    let turn = (
        proptest::collection::vec("[a-z]{2,8}", 0..4),
        proptest::collection::vec((key(), proptest::collection::vec("[a-zA-Z]{1,8}", 1..6)), 1..4),
    );
    proptest::collection::vec(turn, 1..60).prop_map(|turns| {
        let mut fresh = 0_usize;
        let mut unique = |word: &str| {
            fresh += 1;
            format!("{word}{}", letters(fresh))
        };
        let mut steps = Vec::new();
        for (said, calls) in turns {
            let text = said.iter().map(|word| unique(word)).collect::<Vec<_>>().join(" ");
            let calls: Vec<Call> = calls
                .into_iter()
                .map(|(key, words)| {
                    let words: Vec<String> = words.iter().map(|word| unique(word)).collect();
                    let args = match key {
                        Some(key) => json!({ key: words.join(" ") }),
                        None => json!({ unique("k"): words }),
                    };
                    Call::new(unique("tool"), args)
                })
                .collect();
            let results = calls.len();
            steps.push(Step::new("s", Body::Turn(Turn::new(text, calls))));
            steps.extend((0..results).map(|_| Step::result("s", true, unique("found"))));
        }
        steps
    })
}

fn key() -> impl Strategy<Value = Option<&'static str>> {
    select(vec![None, Some("command"), Some("path"), Some("query")])
}

/// A number in letters with a mark in front, so that no two words run into each other and normalising drops none.
fn letters(mut number: usize) -> String {
    let mut out = String::from("Z");
    while number > 0 {
        out.push(char::from(b"abcdefghij"[number % 10]));
        number /= 10;
    }
    out
}
