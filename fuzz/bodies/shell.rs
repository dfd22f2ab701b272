//! Any text as a shell command: it is cut into pieces that are together no longer than the text.

use deloop_detect::shell::{Script, Token, lex};
use deloop_detect::{ToolKind, Vocabulary, command_line, is_test_command, target};
use serde_json::json;

/// # Panics
/// When the lexer makes text up or a script holds an empty command.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut length = 0;
    for token in lex(&text) {
        length += match token {
            Token::Word(word) => word.len(),
            Token::Control(operator) | Token::Redirect(operator) => {
                assert!(!operator.is_empty());
                operator.len()
            }
        };
    }
    assert!(length <= text.len(), "{length} bytes out of {}", text.len());

    let script = Script::parse(&text);
    assert!(script.commands.iter().all(|command| !command.words.is_empty()));
    assert!(!script.plain || script.commands.len() <= 1);
    let _ = is_test_command(&script, &Vocabulary::builtin());

    let words: Vec<&str> = text.split(' ').collect();
    for args in [json!({ "command": text }), json!({ "cmd": words }), json!(["bash", "-lc", text])] {
        assert!(command_line(&args).is_some());
        assert_eq!(target("bash", &args, ToolKind::Run), target("bash", &args, ToolKind::Run));
    }
}
