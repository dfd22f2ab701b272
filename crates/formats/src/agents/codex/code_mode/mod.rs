//! Code mode: the one tool `exec` takes JavaScript, which calls the other tools as `tools.NAME(...)`.

mod literal;
mod script_output;
mod token;

use deloop_types::Call;
use serde_json::{Value, json};

use literal::Literals;
use token::{JsToken, JsTokenKind, Piece, tokens};

pub(super) use script_output::ScriptOutput;

/// How many calls of one script are named.
const MAX_CALLS: usize = 64;

/// What a result needs to know of the script that it came from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CodexScript {
    /// The tools that it calls, in the order in which they are written; `None` when the code is not understood.
    pub(super) calls: Option<Vec<String>>,
    /// Whether all it does is to look at what a running command has written since.
    pub(super) polls: bool,
    /// The texts in which it shows an exit code or the session of a running command.
    pub(super) labels: Vec<Label>,
    /// Whether it shows the results of its commands only as Codex gives them, so that no text of theirs stands alone.
    pub(super) shows_whole: bool,
}

/// A text in which a script shows a field of a command's result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Label {
    field: CodexLabelField,
    before: String,
    after: String,
    /// Whether the shown text begins with it.
    first: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodexLabelField {
    ExitCode,
    Session,
}

/// The call that a script makes: the tool's own when the script makes just one call, whose arguments are literals.
/// Otherwise it is still `exec`, with the code and the names of the tools that it calls.
pub(super) fn call(id: Option<String>, code: &str) -> (Call, CodexScript) {
    let Some(tokens) = tokens(code) else {
        let args = json!({"code": code, "calls": []});
        return (
            {
                let mut made = Call::new("exec", args);
                made.id = id;
                made
            },
            CodexScript::default(),
        );
    };
    let found = calls(&tokens);
    let sole = sole(&tokens, &found);
    let polls = sole.as_ref().is_some_and(|(tool, args)| is_poll(tool, args));
    let names: Vec<String> = found.calls.into_iter().map(|(name, _)| name.to_owned()).collect();
    let (tool, args) = sole.unwrap_or_else(|| ("exec".to_owned(), json!({"code": code, "calls": &names})));
    // A server's tool can return anything, and what a command printed can look like a result.
    let own = names.iter().all(|name| matches!(name.as_str(), "exec_command" | "write_stdin"));
    let shows_output = tokens.iter().any(|token| token.word() == Some("output"));
    let script = CodexScript {
        calls: found.complete.then_some(names),
        polls,
        labels: labels(&tokens),
        shows_whole: own && !shows_output,
    };
    (
        {
            let mut made = Call::new(tool, args);
            made.id = id;
            made
        },
        script,
    )
}

/// The calls in a script.
struct Calls<'a> {
    /// Each tool's name and the token behind the opening parenthesis.
    calls: Vec<(&'a str, usize)>,
    /// Whether these are all, and each is made once at most.
    complete: bool,
}

fn calls(tokens: &[JsToken]) -> Calls<'_> {
    let mut found = Calls { calls: Vec::new(), complete: true };
    let mut repeats = false;
    for at in 0..tokens.len() {
        let is_member = at > 0 && tokens[at - 1].is(b'.');
        match tokens[at].word() {
            Some("for" | "while" | "do" | "function") if !is_member => repeats = true,
            Some("tools") if !is_member => {
                let Some((name, open)) = named(tokens, at).filter(|_| found.calls.len() < MAX_CALLS) else {
                    found.complete = false;
                    continue;
                };
                found.complete &= !repeats;
                found.calls.push((name, open));
            }
            _ => repeats |= tokens[at].is(b'>') && at > 0 && tokens[at - 1].is(b'='),
        }
    }
    found
}

/// The tool that is called at `tools`, and the token behind the opening parenthesis.
fn named(tokens: &[JsToken], at: usize) -> Option<(&str, usize)> {
    let is = |at: usize, sign: u8| tokens.get(at).is_some_and(|token| token.is(sign));
    if is(at + 1, b'.') && is(at + 3, b'(') {
        return Some((tokens.get(at + 2)?.word()?, at + 4));
    }
    match &tokens.get(at + 2)?.kind {
        JsTokenKind::Text(name) if is(at + 1, b'[') && is(at + 3, b']') && is(at + 4, b'(') => {
            Some((name, at + 5))
        }
        _ => None,
    }
}

/// The only call of a script and its arguments.
fn sole(tokens: &[JsToken], found: &Calls<'_>) -> Option<(String, Value)> {
    let [(name, at)] = found.calls.as_slice() else { return None };
    let args = found.complete.then(|| Literals::new(tokens).argument(*at))??;
    Some(((*name).to_owned(), args))
}

fn is_poll(tool: &str, args: &Value) -> bool {
    tool == "write_stdin" && args.get("chars").is_none_or(|chars| chars.as_str().is_some_and(str::is_empty))
}

/// The texts with `${result.exit_code}` or `${result.session_id}` in them.
fn labels(tokens: &[JsToken]) -> Vec<Label> {
    let label = |window: &[JsToken]| {
        let [head, _, dot, field, tail] = window else { return None };
        let (JsTokenKind::Piece(piece, before), JsTokenKind::Piece(_, after)) = (&head.kind, &tail.kind)
        else {
            return None;
        };
        let field = match field.word().filter(|_| dot.is(b'.'))? {
            "exit_code" => CodexLabelField::ExitCode,
            "session_id" => CodexLabelField::Session,
            _ => return None,
        };
        let named = before.bytes().any(|b| b.is_ascii_alphanumeric());
        let label =
            Label { field, before: before.clone(), after: after.clone(), first: *piece == Piece::Head };
        named.then_some(label)
    };
    tokens.windows(5).filter_map(label).take(MAX_CALLS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(code: &str) -> (String, Value) {
        let (call, _) = call(None, code);
        (call.tool, call.args)
    }

    #[test]
    fn a_sole_call_with_literals_is_the_call() {
        let cases = [
            (
                r#"const r = await tools.exec_command({cmd:"ls","workdir":'/p', tty: true,}); text(r.output)"#,
                "exec_command",
                json!({"cmd": "ls", "workdir": "/p", "tty": true}),
            ),
            (
                "text(await tools.write_stdin({session_id:7,chars:\"\",yield_time_ms:1_000}))",
                "write_stdin",
                json!({"session_id": 7, "chars": "", "yield_time_ms": 1000}),
            ),
            (
                "const patch = \"*** Begin Patch\\n*** End Patch\";\ntext(await tools.apply_patch(patch));",
                "apply_patch",
                json!("*** Begin Patch\n*** End Patch"),
            ),
            (
                "const cmd = ['a', `b`].join(\" && \")\nconst dir = 'x' + '/y'\nawait tools.exec_command({cmd, dir: `${dir}/z`})",
                "exec_command",
                json!({"cmd": "a && b", "dir": "x/y/z"}),
            ),
            (
                "await tools['view_image']({path: 'a', scale: -1.5, n: null})",
                "view_image",
                json!({"path": "a", "scale": -1.5, "n": null}),
            ),
            (
                "const r = await tools.get_goal(); for (const part of r.parts) text(part)",
                "get_goal",
                json!({}),
            ),
            (
                "await tools.update_plan({plan:[{step:'tools.exec_command({})',status:'done'},]}) // tools.x()",
                "update_plan",
                json!({"plan": [{"step": "tools.exec_command({})", "status": "done"}]}),
            ),
        ];
        for (code, tool, args) in cases {
            assert_eq!(made(code), (tool.to_owned(), args), "{code}");
        }
    }

    #[test]
    fn other_code_is_kept_with_the_names_of_its_calls() {
        let cases: [(&str, &[&str]); 12] = [
            ("await Promise.all([tools.a({}), tools.b({})])", &["a", "b"]),
            ("for (const cmd of ['x']) await tools.a({cmd: 'x'})", &["a"]),
            ("[1].map(n => tools.a({n: 1}))", &["a"]),
            ("let i = 1; i += 1; await tools.a({i})", &["a"]),
            ("const a = 'x'.repeat(3); await tools.b({a})", &["b"]),
            ("await tools.a({...rest})", &["a"]),
            ("await tools.a({[key]: 1})", &["a"]),
            ("await tools.a({n: 1 + 2})", &["a"]),
            ("await tools.a('x', 'y')", &["a"]),
            ("const t = tools; await t.a({}); await tools.b({})", &["b"]),
            ("text(ALL_TOOLS.length)", &[]),
            ("await tools.a({cmd: 'unterminated})", &[]),
        ];
        for (code, calls) in cases {
            assert_eq!(made(code), ("exec".to_owned(), json!({"code": code, "calls": calls})), "{code}");
        }
        assert_eq!(call(None, "const t = tools; t.a({})").1.calls, None);
        assert_eq!(call(None, "text(1)").1.calls, Some(Vec::new()));
    }

    #[test]
    fn hostile_literals_are_bounded() {
        let deep = format!("tools.a({}{})", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(made(&deep).0, "exec");
        let mut doubling = "const a0 = 'x';".to_owned();
        (1..40).for_each(|n| doubling += &format!("const a{n} = a{} + a{};", n - 1, n - 1));
        assert_eq!(made(&format!("{doubling} tools.a(a39)")).0, "exec");
        assert_eq!(made("const a = b; const b = a; tools.a(a)").0, "exec");
        assert_eq!(made("const a = a; tools.a(a)").0, "exec");
        assert_eq!(made(&"tools.a(".repeat(10_000)).0, "exec");
        assert_eq!(made(&"const a = [".repeat(10_000)).0, "exec");
        let wide = format!("tools.a([{}])", "a,".repeat(100_000));
        assert_eq!(made(&wide).0, "exec");
    }

    #[test]
    fn a_poll_is_known() {
        assert!(call(None, "await tools.write_stdin({session_id: 1, chars: ''})").1.polls);
        assert!(call(None, "await tools.write_stdin({session_id: 1})").1.polls);
        assert!(!call(None, "await tools.write_stdin({session_id: 1, chars: 'y'})").1.polls);
    }
}
