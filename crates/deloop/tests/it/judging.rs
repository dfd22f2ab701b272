//! docs/judging.md says of each result what it is evidence of; this runs its examples.

use crate::binary::{deloop, run};

#[test]
fn every_example_of_evidence_is_true() {
    let page = include_str!("../../../../docs/judging.md");
    let home = tempfile::tempdir().unwrap();
    let mut examples = 0;
    let mut blocks = page.split("```").skip(1).step_by(2).peekable();
    while let Some(block) = blocks.next() {
        let Some(steps) = block.strip_prefix("jsonl\n") else { continue };
        let expected =
            blocks.peek().and_then(|next| next.strip_prefix("evidence\n")).expect("an evidence block");
        let output = run(deloop(home.path()).args(["show", "-", "--all", "--evidence"]), steps.as_bytes());
        let text = String::from_utf8(output.stdout).unwrap();
        let found: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("= ")).collect();
        assert_eq!(found, expected.lines().collect::<Vec<_>>(), "{steps}{text}");
        examples += 1;
    }
    assert!(examples >= 4, "{examples}");
}
