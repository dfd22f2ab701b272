//! The smallest agent: a loop around a model and a shell, with `deloop stream` beside it. It is part of this program.

use std::io;

use serde_json::json;

use super::{Agent, PROMPT, Package, Start, strings};
use crate::e2e::cases::Case;
use crate::e2e::place::Place;
use crate::e2e::stand_in::{Answer, BLOCK, NUDGE, STOP, StandIn, Want};

pub(super) struct Harness;

impl Agent for Harness {
    fn name(&self) -> &'static str {
        "harness"
    }

    fn package(&self) -> Option<Package> {
        None
    }

    fn start(&self, _place: &Place, port: u16) -> io::Result<Start> {
        let port = port.to_string();
        Ok(Start { arguments: strings(["harness", "--port", &port, PROMPT]), environment: Vec::new() })
    }

    fn further(&self, arguments: &[String]) -> Option<Vec<String>> {
        Some([arguments.to_vec(), strings(["--continue"])].concat())
    }

    fn shows_documents(&self) -> bool {
        true
    }

    fn is_installable(&self) -> bool {
        false
    }

    fn remembers(&self) -> bool {
        true
    }

    fn cannot(&self, case: Case) -> Option<&'static str> {
        match case {
            Case::Recover => Some("it has no flag for its model"),
            _ => case.has_server().then_some("it has no hooks that could report to a server"),
        }
    }

    fn stand_in(&self, _place: &Place, want: Want) -> io::Result<StandIn> {
        let nudge = json!({"action": "nudge", "message": NUDGE});
        let block = json!({"action": "block", "message": BLOCK, "calls": ["all"]});
        let stop = json!({"action": "stop", "message": STOP, "user_message": STOP});
        let answers = match want {
            Want::Quiet => vec![],
            Want::Nudge => vec![Answer::once("result", nudge)],
            Want::Block => vec![Answer::always("turn", block)],
            Want::Stop => vec![Answer::always("result", stop)],
        };
        Ok(StandIn { before: "turn", stays: true, answers })
    }
}
