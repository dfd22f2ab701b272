//! Which tests ran and passed, from the JUnit report that nextest writes.

use std::collections::BTreeSet;

use roxmltree::{Document, Node};

/// The names of tests, as `BINARY::NAME`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Record {
    pub(crate) passed: BTreeSet<String>,
    /// Failed, or passed only when it was run again.
    pub(crate) others: BTreeSet<String>,
    /// How long each took.
    pub(crate) seconds: Vec<(String, f32)>,
}

impl Record {
    /// Reads a report; what is no report has no tests.
    pub(crate) fn read(xml: &str) -> Self {
        let mut record = Self::default();
        let Ok(document) = Document::parse(xml) else { return record };
        for test in document.descendants().filter(|node| node.has_tag_name("testcase")) {
            let Some(name) = name_of(&test) else { continue };
            let seconds = test.attribute("time").and_then(|time| time.parse().ok()).unwrap_or_default();
            record.seconds.push((name.clone(), seconds));
            if test.children().any(|child| is_failure(&child)) {
                record.others.insert(name);
            } else {
                record.passed.insert(name);
            }
        }
        record
    }
}

fn is_failure(node: &Node<'_, '_>) -> bool {
    ["failure", "error", "skipped", "flakyFailure", "flakyError"].iter().any(|name| node.has_tag_name(*name))
}

/// Returns `it::a::b` for the test `a::b` of `deloop::it`, and `deloop_detect::a::b` for that of a library.
fn name_of(test: &Node<'_, '_>) -> Option<String> {
    let binary = test.attribute("classname")?.rsplit("::").next()?;
    let binary = binary.trim_start_matches("bin/").replace('-', "_");
    Some(format!("{binary}::{}", test.attribute("name")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="4">
  <testsuite name="deloop::it" tests="3">
    <testcase name="run::works" classname="deloop::it" time="0.5"/>
    <testcase name="run::fails" classname="deloop::it" time="6.25"><failure message="a" type="b">it &lt; 3</failure></testcase>
    <testcase name="run::wavers" classname="deloop::it" time="1"><flakyFailure type="c"/></testcase>
  </testsuite>
  <testsuite name="deloop-detect"><testcase name="a::works" classname="deloop-detect" time="0"/></testsuite>
  <testsuite name="xtask::bin/xtask"><testcase name="b" classname="xtask::bin/xtask" time="0"/></testsuite>
</testsuites>"#;

    #[test]
    fn every_binary_has_its_tests() {
        let record = Record::read(REPORT);
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(list(&record.passed), "deloop_detect::a::works it::run::works xtask::b");
        assert_eq!(list(&record.others), "it::run::fails it::run::wavers", "a flaky test hasn't passed");
        assert_eq!(record.seconds[1], ("it::run::fails".to_owned(), 6.25));
        assert_eq!(Record::read("Running tests/it/main.rs"), Record::default());
    }
}
