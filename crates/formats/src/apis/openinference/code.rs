//! The code in the text of a smolagents CodeAgent.

/// The thought before the code, and the code: all its blocks, as smolagents runs them. `None` when there is no block.
pub(super) fn split(text: &str) -> Option<(&str, String)> {
    let tagged = blocks(text, "<code>", "</code>");
    let found = if tagged.is_empty() { fenced(text) } else { tagged };
    let (start, _) = *found.first()?;
    let code = found.iter().map(|(_, code)| code.trim_matches('\n')).collect::<Vec<_>>().join("\n\n");
    let thought = text.get(..start).unwrap_or_default().trim();
    let thought = thought.strip_suffix("Code:").unwrap_or(thought).trim_end();
    Some((thought, code))
}

/// Code blocks without a language, or of Python.
fn fenced(text: &str) -> Vec<(usize, &str)> {
    let body = |block: &'_ str| -> Option<usize> {
        let line = block.lines().next()?;
        matches!(line.trim(), "" | "py" | "python").then_some(line.len())
    };
    let found = blocks(text, "```", "```").into_iter();
    found.filter_map(|(start, block)| Some((start, block.get(body(block)?..)?))).collect()
}

/// What stands between marks, and where the first of them begins.
fn blocks<'a>(text: &'a str, open: &str, close: &str) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text.get(at..).and_then(|rest| rest.find(open)).map(|start| at + start) {
        let inner = start + open.len();
        let Some(length) = text.get(inner..).and_then(|rest| rest.find(close)) else { break };
        found.push((start, &text[inner..inner + length]));
        at = inner + length + close.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_thought() {
        assert_eq!(
            split("Thought: I look.\nCode:\n```py\nprint(1)\n```<end_code>"),
            Some(("Thought: I look.", "print(1)".to_owned()))
        );
        assert_eq!(split("A\n```python\na\n```\nB\n```\nb\n```"), Some(("A", "a\n\nb".to_owned())));
        assert_eq!(split("Hm. <code>\nprint(1)\n</code>"), Some(("Hm.", "print(1)".to_owned())));
        assert_eq!(split("```json\n{}\n```"), None);
        assert_eq!(split("no code"), None);
        assert_eq!(split("```py\nnever closed"), None);
    }
}
