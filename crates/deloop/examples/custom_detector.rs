//! A detector of your own, in a profile of your own.
//!
//! Run it with `cargo run --example custom_detector`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use deloop::detector::{Detector, Happening, Moment};
use deloop::{Action, Finding, Guard, Profile, ProfileError, Registry, Step};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Finds calls that change production, one after the other, without a look at the result in between.
struct UnverifiedDeploys;

/// How it is tuned. A key that isn't a field here is an error that names the nearest one.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DeployParams {
    /// Number of deploys that make a finding.
    at: u64,
}

impl Default for DeployParams {
    fn default() -> Self {
        Self { at: 2 }
    }
}

impl Detector for UnverifiedDeploys {
    /// The table `[detectors.unverified-deploys]` of a profile.
    type Params = DeployParams;
    /// What the session keeps for the detector: deploys since the last look.
    type Memory = u64;

    fn name(&self) -> &'static str {
        "unverified-deploys"
    }

    fn page(&self) -> &'static str {
        "# unverified-deploys\n\nFinds deploys without a health check in between."
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, deploys: &mut u64) -> Option<Finding> {
        let Happening::Call(call) = &moment.event else { return None };
        match call.call.tool.as_str() {
            "health_check" => *deploys = 0,
            "deploy" => *deploys += 1,
            _ => return None,
        }
        if *deploys < params.at {
            return None;
        }
        let mut finding = Finding::new(self.name(), *deploys);
        finding.since = moment.step;
        finding.tool = Some(call.call.tool.clone());
        finding.summary = format!("{deploys} deploys without a health check");
        Some(finding)
    }
}

const PROFILE: &str = r#"
name = "deploys"
about = "Watches deploys."
rules = "counter"
order = ["unverified-deploys"]

[detectors.unverified-deploys]
ladder = "deploys"
at = 3

[[ladders.deploys.rungs]]
at = 3
action = "nudge"
message = "You deployed {count} times without a health check. Run one."

[[ladders.deploys.rungs]]
at = 4
action = "block"
message = "No more deploys before a health check."
"#;

fn main() -> Result<(), ProfileError> {
    let registry = Registry::default().with(&UnverifiedDeploys);
    let guard = Guard::new(Profile::from_toml(PROFILE, &registry)?);
    let mut actions = Vec::new();
    for tool in ["deploy", "deploy", "health_check", "deploy", "deploy", "deploy", "deploy"] {
        let decision = guard.observe(&Step::call("session-1", tool, json!({"service": "web"})));
        println!("{tool:<13} {} {}", decision.action, decision.message.unwrap_or_default());
        actions.push(decision.action);
    }
    assert_eq!(actions[..5], [Action::Continue; 5]);
    assert_eq!(actions[5..], [Action::Nudge, Action::Block]);
    Ok(())
}
