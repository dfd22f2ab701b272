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
const REPORT: &str = r#"<testsuites>
<testcase classname="deloop::it" name="a::works"/>
<testcase classname="deloop::it" name="a::fails"><failure/></testcase>
<testcase classname="deloop::it" name="conformance::every_vector_holds"/>
<testcase classname="deloop-detect::pages" name="every_page_is_true"/>
</testsuites>"#;

fn ran(report: &str, others: &[&str], cannot_run: &[&str]) -> Option<Ran> {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Some(Ran { tests: Record::read(report), others: set(others), cannot_run: set(cannot_run) })
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
    assert_eq!(report("server", ran("", &[], &[])), (String::new(), false));
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
    assert_eq!(report(all, ran(REPORT, &others, &[])), (String::new(), false));
    assert_eq!(report(all, ran("", &[], &[])).0.matches("didn't run").count(), 5);
    assert!(report("`it::a::is_left_out`", ran(REPORT, &others, &[])).0.ends_with("didn't run"));
    assert!(report("`it::a::fails`", ran(REPORT, &others, &[])).0.ends_with("didn't pass"));
    assert_eq!(report("`it::a::fails`", None).0, "", "without a record it only has to exist");
}

#[test]
fn a_row_is_skipped_if_the_machine_can_run_none_of_its_tests() {
    let without = |cell: &str, cannot_run: &[&str]| report(cell, ran(REPORT, &[], cannot_run));
    let codex = ["e2e::codex::nudge"];
    assert_eq!(without("`e2e::codex::nudge`", &codex), (String::new(), true));
    assert_eq!(without("`e2e::codex::nudge`, `it::a::works`", &codex), (String::new(), false));
    assert_eq!(without("`it::a::is_left_out`", &["it::a::is_left_out"]), (String::new(), true));
    assert!(without("`e2e::codex::nudge`", &[]).0.ends_with("didn't run"));
}
