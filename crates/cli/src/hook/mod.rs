//! `deloop hook`: one event of an agent on stdin, the reply on stdout.

mod agent;
pub(crate) mod behavioral;
mod transcript_wait;

use std::io::Write;

pub(crate) use agent::{RUN, RUN_HANDOFF, RUN_MODE, handoff_for, live_context, load, price_with, run_id};

use crate::args::{HookArgs, HookCommand};
use crate::exit::Failure;

pub(crate) fn run(args: &HookArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    match &args.agent {
        HookCommand::Behavioral(args) => behavioral::run(args, out),
        HookCommand::Agent(hook) => agent::run(hook, out),
    }
}
