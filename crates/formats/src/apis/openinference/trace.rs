//! Turns the spans of a trace into Steps.
//!
//! A span of a model is a turn, and is told when it ends. The span of a tool is the result of the call that the turn
//! asked for; only if no turn did, it is a call of its own. The spans below an agent's are that agent's.

use std::collections::HashMap;

use deloop_types::{Call, Origin, Outcome};
use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use super::agent;
use super::messages::{self, SpanMessage};
use super::span::{Span, SpanKind, Status};
use super::tree::{SpanEdge, Tree};
use crate::Sink;
use crate::apis::openai_messages::message::begins_with_error;
use crate::step_writer::StepWriter;

/// Hands out the steps of one trace.
pub(crate) fn read(spans: &[Span], out: &mut Sink<'_>) {
    let tree = Tree::new(spans);
    let mut trace = TraceSteps { tree: &tree, threads: HashMap::new() };
    for &(moment, index) in tree.moments() {
        let span = tree.span(index);
        match (moment, tree.kind(index)) {
            (SpanEdge::Start, SpanKind::Agent) => trace.task(index, span, out),
            (SpanEdge::End, SpanKind::Agent) => trace.answer(index, span, out),
            (SpanEdge::End, SpanKind::Llm) => trace.model(index, span, out),
            (SpanEdge::End, SpanKind::Tool) => trace.tool(index, span, out),
            (SpanEdge::End, SpanKind::Other) if agent::is_step(span) => trace.step(index, span, out),
            _ => {}
        }
    }
}

struct TraceSteps<'a> {
    tree: &'a Tree<'a>,
    /// By the agent's span; `None` is what belongs to no agent.
    threads: HashMap<Option<usize>, Thread>,
}

/// One agent's part of a trace.
#[derive(Default)]
struct Thread {
    writer: StepWriter,
    /// Whether its task was told; then what it is sent is nothing new.
    tasked: bool,
    begun: bool,
    /// The calls of its last turn that have no result yet.
    open: Vec<Call>,
    /// Whether the last turn had calls.
    called: bool,
    /// The step whose model made the last turn.
    step: Option<usize>,
    /// How often it was told what, and how often each call was answered.
    heard: HashMap<u64, usize>,
}

impl TraceSteps<'_> {
    fn thread(&mut self, owner: Option<usize>) -> &mut Thread {
        let tree = self.tree;
        self.threads.entry(owner).or_insert_with(|| {
            let mut writer = StepWriter::new(Some(tree.session().to_owned()));
            writer.agent = owner.and_then(|owner| agent::name(tree, owner));
            // Beside an agent, a model only sums up what the agent did.
            let tasked = owner.is_none() && tree.main().is_some();
            Thread { writer, tasked, ..Thread::default() }
        })
    }

    /// An agent begins.
    fn task(&mut self, index: usize, span: &Span, out: &mut Sink<'_>) {
        let origin = if self.tree.owner(index).is_none() { Origin::Human } else { Origin::Harness };
        let Some(task) = agent::task(span) else { return };
        let thread = self.thread(Some(index));
        thread.tasked = true;
        thread.writer.ts = span.began();
        thread.writer.user(task.trim(), origin, out);
    }

    /// An agent is done; it may have been called like a tool.
    fn answer(&mut self, index: usize, span: &Span, out: &mut Sink<'_>) {
        let Some(name) = agent::name(self.tree, index) else { return };
        let owner = self.tree.owner(index);
        let thread = self.thread(owner);
        if let Some(at) = thread.open.iter().position(|call| call.tool == name) {
            let call = thread.open.remove(at);
            thread.result(call.id, span, out);
        }
    }

    /// A model has answered.
    fn model(&mut self, index: usize, span: &Span, out: &mut Sink<'_>) {
        let tree = self.tree;
        let step = tree.parent(index).filter(|parent| agent::is_step(tree.span(*parent)));
        let thread = self.thread(tree.owner(index));
        // A model inside another's span, or inside a tool, is no turn of the agent.
        if !tree.inside(index, &[SpanKind::Llm, SpanKind::Tool]) {
            thread.writer.ts = span.began();
            thread.hear(messages::inputs(span), out);
            thread.writer.ts = span.ended();
            let (text, calls) = turn(tree, index, step);
            thread.begun = true;
            thread.step = step;
            thread.called = !calls.is_empty();
            thread.open.clone_from(&calls);
            thread.writer.turn(text.trim(), calls, out);
        }
        if !tree.inside(index, &[SpanKind::Llm]) {
            thread.writer.ts = span.ended();
            let key = xxh3_64(format!("{}:{}", span.trace, span.id).as_bytes());
            thread.writer.usage(span.usage(), Some(key), out);
        }
    }

    /// A tool has answered.
    fn tool(&mut self, index: usize, span: &Span, out: &mut Sink<'_>) {
        if self.tree.inside(index, &[SpanKind::Tool]) {
            return;
        }
        let owner = self.tree.owner(index);
        let thread = self.thread(owner);
        let call = span.call();
        if let Some(at) = thread.asked(&call) {
            let id = thread.open.remove(at).id;
            return thread.result(id, span, out);
        }
        // The code that the agent wrote calls tools, too; the code's own result tells what came of them.
        if thread.open.iter().any(|open| open.tool == agent::INTERPRETER) {
            return;
        }
        if call.args.is_null() {
            return out.unknown("tool span without arguments");
        }
        let id = call.id.clone();
        thread.writer.ts = span.ended();
        thread.writer.turn("", vec![call], out);
        thread.result(id, span, out);
    }

    /// A step of smolagents is over: what is still open came to what the step came to.
    fn step(&mut self, index: usize, span: &Span, out: &mut Sink<'_>) {
        let owner = self.tree.owner(index);
        let thread = self.thread(owner);
        if thread.step.take() != Some(index) {
            return;
        }
        let open = std::mem::take(&mut thread.open);
        if !thread.called && span.status == Status::Error {
            thread.writer.ts = span.ended();
            thread.writer.user(span.error.trim(), Origin::Harness, out);
        }
        for call in open {
            thread.result(call.id, span, out);
        }
    }
}

/// What a model said and asked for; in a step of a CodeAgent it asked for the code that it wrote.
fn turn(tree: &Tree<'_>, index: usize, step: Option<usize>) -> (String, Vec<Call>) {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for said in messages::outputs(tree.span(index)) {
        texts.push(said.text);
        calls.extend(said.calls);
    }
    let text = texts.join("\n");
    let runs_code = tree.owner(index).is_some_and(|owner| agent::runs_code(tree.span(owner)));
    let step = step.filter(|_| runs_code && calls.is_empty());
    match step.and_then(|step| agent::code(&text, tree.span(step))) {
        Some((thought, code)) => {
            let args = json!({ "code": code });
            (thought, vec![Call::new(agent::INTERPRETER.to_owned(), args)])
        }
        None => (text, calls),
    }
}

impl Thread {
    fn result(&mut self, id: Option<String>, span: &Span, out: &mut Sink<'_>) {
        let (output, outcome) = span.result();
        self.writer.ts = span.ended();
        if let Some(id) = &id {
            *self.heard.entry(xxh3_64(id.as_bytes())).or_default() += 1;
        }
        self.writer.result(id, outcome, output, out);
    }

    /// Which open call the span of a tool is of.
    fn asked(&self, call: &Call) -> Option<usize> {
        let by = |same: &dyn Fn(&Call) -> bool| self.open.iter().position(same);
        by(&|open| open.id.is_some() && open.id == call.id)
            .or_else(|| by(&|open| open.tool == call.tool && open.args == call.args))
            .or_else(|| by(&|open| open.tool == call.tool))
    }

    /// What the model was sent that no span has told: results of tools without a span, and what the user said.
    /// The first request may come with a whole conversation.
    fn hear(&mut self, messages: Vec<SpanMessage>, out: &mut Sink<'_>) {
        let past = !self.begun && !self.tasked;
        let mut told: HashMap<u64, usize> = HashMap::new();
        // The same words said again are new only if they stand there once more than before.
        let mut new = |thread: &mut Self, text: &str| {
            let words = xxh3_64(text.as_bytes());
            let times = told.entry(words).or_default();
            *times += 1;
            let heard = thread.heard.entry(words).or_default();
            let more = *times > *heard;
            *heard = (*heard).max(*times);
            more
        };
        for said in messages {
            match said.role.as_str() {
                "tool" | "function" => {
                    if !new(self, said.answers.as_deref().unwrap_or(&said.text)) {
                        continue;
                    }
                    let open = self.open.iter().position(|call| call.id.is_some() && call.id == said.answers);
                    if open.map(|at| self.open.remove(at)).is_some() || past {
                        let outcome = begins_with_error(&said.text).then_some(Outcome::Error);
                        self.writer.result(said.answers, outcome, said.text, out);
                    }
                }
                "user" | "human" if !self.tasked && new(self, &said.text) => {
                    self.writer.user(said.text.trim(), Origin::Human, out);
                }
                "assistant" | "ai" | "model" if past => {
                    self.open.clone_from(&said.calls);
                    self.writer.turn(said.text.trim(), said.calls, out);
                }
                _ => {}
            }
        }
    }
}
