//! Adds Steps to a [`History`] and passes what happened to the detectors.

use deloop_types::{Body, Call, Millis, Origin, Step};
use serde_json::Value;

use crate::fingerprint::half;
use crate::history::exact;
use crate::reading::shell::{Script, program_name};
use crate::reading::{Effect, PatternOf, command_line, identity, is_file_operation, runs_tests, sought};
use crate::{
    CallRecord, CallView, FailureView, FailureWorker, Fingerprint, Happening, History, KnownFailures, Ledger,
    Moment, Nesting, ResultView, Sketch, SpawnTree, SpawnView, SwarmCount, ToolKind, Tools, Vocabulary,
    WholeSession, short_hash,
};

/// The context of a step, besides its agent's history.
#[derive(Clone, Copy)]
pub struct FoldContext<'a> {
    /// The usage of the whole session.
    pub ledger: &'a Ledger,
    /// Tool kinds and word lists.
    pub tools: &'a Tools,
    /// When the step arrived, if it has no time of its own.
    pub arrived: Option<Millis>,
    /// Where the session stands among sessions that started each other; `None` if nobody looks for subagents.
    pub spawned: Option<Nesting>,
    /// The failures that the project's sessions met; `None` if the step names no project.
    pub failures: Option<&'a KnownFailures>,
}

/// Adds a step to the history and passes each thing that happened in it to `look`: a turn, then its calls one
/// by one; a result with its call; everything else unchanged. `whole` is what the session remembers across its agents,
/// and `swarm` returns the swarm's tallies for each call.
pub fn fold(
    history: &mut History,
    whole: &mut WholeSession,
    context: FoldContext<'_>,
    step: &Step,
    index: u64,
    swarm: &[Option<SwarmCount>],
    look: &mut dyn FnMut(&Moment<'_>),
) {
    let FoldContext { ledger, tools, failures, .. } = context;
    let arrived = step.ts.or(context.arrived);
    let WholeSession { tree, failures: own } = whole;
    let worker = FailureWorker::new(&step.session, step.agent.as_deref());
    let failures = FailureView { known: failures.or(own.as_deref()), worker, now: step.ts };
    let mut show = |history: &History, event| {
        let task = step.task.as_deref().filter(|task| !task.is_empty());
        look(&Moment { history, ledger, tools, step: index, ts: step.ts, arrived, task, failures, event });
    };
    if let Some(tree) = tree {
        tree.step_of(step.agent.as_deref(), index);
    }
    match &step.body {
        Body::Turn(turn) => {
            let mut begun = false;
            let over = history.turn_over();
            if turn.calls.is_empty() && history.push_turn(turn.id.as_deref()) {
                history.push_reply(turn.said().unwrap_or_default(), index);
                show(history, Happening::Turn(turn));
            }
            for (i, call) in turn.calls.iter().enumerate() {
                let signature = signature(call, tools);
                // A resumed run repeats calls made before it was interrupted.
                let (record, leaves_running) = record_of(call, signature, tools, index);
                if history.is_known(call, signature.short(), over) {
                    continue;
                }
                if !std::mem::replace(&mut begun, true) && history.push_turn(turn.id.as_deref()) {
                    show(history, Happening::Turn(turn));
                }
                let words = match record.searches() {
                    true => Sketch::of_pattern(&sought(call, tools.vocabulary()).unwrap_or_default()),
                    false => Sketch::of(&call.args),
                };
                let record = history.push_call(call, words, step.ts, record);
                if leaves_running {
                    history.push_background(&record);
                }
                if record.kind == ToolKind::Talk && !tools.spawns(&call.tool) {
                    history.push_note(&call.args, index);
                }
                let count = swarm.get(i).copied().flatten();
                let made = NewCall { step, index, call, record: &record };
                let spawn = enter_call(tree, &made, history, &context);
                show(history, Happening::Call(CallView::new(call, signature, record, count, spawn)));
            }
        }
        Body::Result(result) => {
            let id = result.id.as_ref().map(|id| half(short_hash(id.as_bytes())));
            if let Some(record) = history.answer(id, step.ts, result, tools.vocabulary()) {
                if let Some(tree) = tree {
                    tree.result(step.agent.as_deref(), &record, tools.spawns(history.tool(&record)));
                }
                show(history, Happening::Result(ResultView::new(result, record)));
            }
        }
        Body::User(user) => {
            if let Some(tree) = tree.as_mut().filter(|_| history.is_request(user, step.ts)) {
                match user.origin {
                    Origin::Human => tree.moved_on(),
                    Origin::Harness | Origin::Notice | Origin::Schedule => tree.note_news(),
                }
            }
            history.push_request(user, step.ts);
            show(history, Happening::User(user));
        }
        Body::Usage(usage) => {
            if let Some(tree) = tree.as_mut().filter(|_| step.agent.is_some()) {
                tree.charge(usage);
            }
            history.push_cost(usage);
            show(history, Happening::Usage);
        }
        Body::Chunk(text) => show(history, Happening::Chunk(text)),
        Body::Compact => {
            history.compacted();
            show(history, Happening::Compact);
        }
        Body::Embedding(embedding) => show(history, Happening::Embedding(embedding)),
        _ => {}
    }
}

/// Enters a call into the session's tree of subagents, which starts with the first call that starts one.
fn enter_call(
    tree: &mut Option<Box<SpawnTree>>,
    call: &NewCall<'_>,
    history: &History,
    context: &FoldContext<'_>,
) -> Option<SpawnView> {
    let root = context.spawned?;
    let agent = call.step.agent.as_deref();
    if !context.tools.spawns(&call.call.tool) {
        if let Some(tree) = tree {
            tree.call_of(agent);
        }
        return None;
    }
    let tree = tree.get_or_insert_default();
    tree.set_root(root);
    Some(tree.spawn(agent, history, call.call, call.record, call.index))
}

/// A call that was just added to the history.
struct NewCall<'a> {
    step: &'a Step,
    index: u64,
    call: &'a Call,
    record: &'a CallRecord,
}

/// Returns the record of a call, and whether it leaves something running.
fn record_of(call: &Call, signature: Fingerprint, tools: &Tools, step: u64) -> (CallRecord, bool) {
    let mut leaves_running = false;
    let mut kind = tools.kind(&call.tool);
    let vocabulary = tools.vocabulary();
    let named = tools.rule(&call.tool).is_some_and(|rule| !rule.key.is_empty());
    let exact = exact(signature.short());
    let own = if named { None } else { identity(call, kind, vocabulary) };
    let (signature, limits) = own.map_or((signature, 0), |own| (own.signature, own.limits));
    let mut record = CallRecord {
        limits,
        exact,
        step: u32::try_from(step).unwrap_or(u32::MAX),
        id: call.id.as_ref().map_or(0, |id| half(short_hash(id.as_bytes()))),
        signature: signature.short(),
        kind,
        tests: kind == ToolKind::Test,
        effect: match kind {
            ToolKind::Write => Effect::Changes,
            ToolKind::Poll => Effect::Waits,
            ToolKind::Search => Effect::Searches,
            ToolKind::Run | ToolKind::Other => Effect::Unknown,
            ToolKind::Read | ToolKind::Page | ToolKind::Talk | ToolKind::Test => Effect::Looks,
        },
        ..CallRecord::default()
    };
    let mut program = short_hash(call.tool.as_bytes());
    if kind == ToolKind::Run
        && let Some(line) = command_line(&call.args)
    {
        let script = Script::parse(&line);
        leaves_running = script.leaves_running;
        record.effect = if script.redirects { Effect::Changes } else { Effect::Prepares };
        let mut main = None;
        let mut words: Vec<&str> = Vec::new();
        for command in &script.commands {
            words.clear();
            words.extend(command.words.iter().map(AsRef::as_ref));
            let words = vocabulary.unwrapped(&words);
            let effect = vocabulary.effect(words);
            record.tests |= runs_tests(words);
            record.effect = record.effect.max(effect);
            // A patch that a shell carries is an edit.
            if words.first().is_some_and(|program| *program == "apply_patch") {
                (kind, record.kind) = (ToolKind::Write, ToolKind::Write);
            }
            if main.is_none() && effect != Effect::Prepares {
                main = words.first().map(|w| (effect, short_hash(program_name(w).as_bytes())));
            }
        }
        // A search over piped input only filters it, so it isn't a search.
        if let Some((effect, hash)) = main {
            program = hash;
            if record.effect == Effect::Searches {
                record.effect = effect;
            }
        }
        record.file_operation = script.commands.first().is_some_and(|c| is_file_operation(c.program()));
    }
    record.program = half(program);
    record.outside = match kind {
        ToolKind::Run => record.effect == Effect::Remote,
        ToolKind::Read | ToolKind::Search | ToolKind::Page => !names_local_place(&call.args, 3, vocabulary),
        _ => false,
    };
    (record, leaves_running)
}

/// Returns whether an argument names a file or a folder.
fn names_local_place(args: &Value, depth: u8, vocabulary: &Vocabulary) -> bool {
    match args {
        Value::Object(args) => args.iter().any(|(name, value)| {
            vocabulary.is_a(PatternOf::LocalPlace, name)
                || depth > 0 && names_local_place(value, depth - 1, vocabulary)
        }),
        Value::Array(items) => {
            depth > 0 && items.iter().any(|item| names_local_place(item, depth - 1, vocabulary))
        }
        _ => false,
    }
}

/// Returns the fingerprint of the tool and its arguments, or only of the arguments that the user named for it.
#[must_use]
pub fn signature(call: &Call, tools: &Tools) -> Fingerprint {
    match (tools.rule(&call.tool), &call.args) {
        (Some(rule), Value::Object(args)) if !rule.key.is_empty() => {
            let named = rule.key.iter().filter_map(|k| Some((k.clone(), args.get(k)?.clone())));
            Fingerprint::of_call(&call.tool, &Value::Object(named.collect()))
        }
        _ => Fingerprint::of_call(&call.tool, &call.args),
    }
}
