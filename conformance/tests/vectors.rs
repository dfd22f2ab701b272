//! The reference agrees with every vector.

use deloop_conformance::{PROFILES, Reference, vectors};

#[test]
fn reference_agrees_with_every_vector() -> Result<(), String> {
    let mut wrong = Vec::new();
    for vector in vectors::load()? {
        let mut reference = Reference::with_config(&vector.profile, &vector.config);
        for (index, (step, wanted)) in vector.steps.iter().zip(&vector.decisions).enumerate() {
            let verdict = reference.observe(step);
            if wanted["action"] != verdict.action || wanted["level"] != verdict.level {
                wrong.push(format!("{} step {index}: wanted {wanted}, got {verdict:?}", vector.name));
            }
            if let Some(findings) = wanted["findings"].as_array() {
                let findings = findings.iter().map(|f| Some((f["detector"].as_str()?, f["count"].as_u64()?)));
                let findings: Option<Vec<_>> = findings.collect();
                if verdict.findings.is_none() || findings != verdict.findings {
                    wrong.push(format!("{} step {index}: wanted {findings:?}, got {verdict:?}", vector.name));
                }
            }
            if let Some(message) = wanted["message"].as_str()
                && reference.message() != Some(message)
            {
                let got = reference.message();
                wrong.push(format!("{} step {index}: wanted {message:?}, got {got:?}", vector.name));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

#[test]
fn every_profile_has_its_vectors() -> Result<(), String> {
    let vectors = vectors::load()?;
    for profile in PROFILES {
        let count = vectors.iter().filter(|v| v.profile == profile).count();
        assert!(count >= 8, "{profile} has {count} vectors");
    }
    Ok(())
}
