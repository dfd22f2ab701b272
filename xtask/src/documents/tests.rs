use super::*;

const EXIST: [&str; 7] = [
    "it::a::works",
    "it::a::fails",
    "it::a::is_left_out",
    "vector::behavioral/ladder",
    "page::similar-call",
    "example::harness",
    "e2e::codex::nudge",
];
const OUTPUT: &str = "Running tests/it/main.rs (target/debug/deps/it-0f)\ntest a::works ... ok\ntest a::fails ... FAILED\ntest conformance::every_vector_holds ... ok\nRunning tests/pages.rs (target/debug/deps/pages-0f)\ntest every_page_is_true ... ok\n";

fn ran(output: &str, others: &[&str], agents: bool) -> Option<Ran> {
    let others = others.iter().map(|name| (*name).to_owned()).collect();
    Some(Ran { tests: Record::read(output), others, agents })
}

/// Returns what is wrong with a page of one row with this last cell, and whether it was skipped.
fn report(cell: &str, ran: Option<Ran>) -> (String, bool) {
    let text = format!("| # | a | b | tests |\n|---|---|---|---|\n| B1 | a | b | {cell} |\n");
    let known = Known { exist: EXIST.iter().map(|name| (*name).to_owned()).collect(), ran };
    let mut report = Report::default();
    report.add("behavioral", &page::read(&text, 'B'), &known);
    (report.mistakes.join("\n"), !report.skipped.is_empty())
}

#[test]
fn a_row_without_a_test_fails() {
    for cell in ["", "yes", "open", "`open`"] {
        assert!(!report(cell, None).0.is_empty(), "{cell}");
    }
    assert_eq!(report("server", ran("", &[], true)), (String::new(), false));
}

#[test]
fn a_test_that_does_not_exist_fails() {
    assert_eq!(report("`it::a::works`", None), (String::new(), false));
    for name in ["it::a::work", "works", "vector::behavioral/x", "page::x", "example::x", "e2e::codex::x"] {
        let wanted = format!("docs/documents/behavioral.md: B1: `{name}` doesn't exist");
        assert_eq!(report(&format!("`it::a::works`, `{name}`"), None).0, wanted);
    }
}

#[test]
fn a_test_that_did_not_run_or_pass_fails() {
    let all = "`it::a::works`, `vector::behavioral/ladder`, `page::similar-call`, `example::harness`, `e2e::codex::nudge`";
    let others = ["example::harness", "e2e::codex::nudge"];
    assert_eq!(report(all, ran(OUTPUT, &others, true)), (String::new(), false));
    assert_eq!(report(all, ran("", &[], true)).0.matches("didn't run").count(), 5);
    assert!(report("`it::a::is_left_out`", ran(OUTPUT, &others, true)).0.ends_with("didn't run"));
    assert!(report("`it::a::fails`", ran(OUTPUT, &others, true)).0.ends_with("didn't pass"));
    assert_eq!(report("`it::a::fails`", None).0, "", "without a record it only has to exist");
}

#[test]
fn a_row_that_needs_an_agent_is_skipped_where_there_is_none() {
    assert_eq!(report("`e2e::codex::nudge`", ran(OUTPUT, &[], false)), (String::new(), true));
    assert_eq!(
        report("`e2e::codex::nudge`, `it::a::works`", ran(OUTPUT, &[], false)),
        (String::new(), false)
    );
    assert!(report("`e2e::codex::nudge`", ran(OUTPUT, &[], true)).0.ends_with("didn't run"));
}
