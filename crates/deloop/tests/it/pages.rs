//! The pages that `deloop explain` prints.

use crate::binary::{deloop, run, said};

#[test]
fn every_detector_is_listed_and_explained() {
    let home = tempfile::tempdir().unwrap();
    let list = String::from_utf8(run(deloop(home.path()).arg("explain"), b"").stdout).unwrap();
    for detector in deloop_detect::DETECTORS {
        assert!(list.contains(detector.name()));
        let page = run(deloop(home.path()).args(["explain", detector.name()]), b"").stdout;
        assert_eq!(String::from_utf8(page).unwrap(), detector.page());
    }
    let output = run(deloop(home.path()).args(["explain", "nothing"]), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("known detectors: repeated-call"));
}
