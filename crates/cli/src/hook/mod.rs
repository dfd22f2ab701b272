//! `deloop hook`: one event of an agent on stdin, the reply on stdout.

pub(crate) mod aftermath;
mod agent;
pub(crate) mod behavioral;
mod desk;
mod fold;
pub(crate) mod leave;
pub(crate) mod trail;
mod transcript;

use std::io::Write;

pub(crate) use agent::{RUN, RUN_MODE, load, run_id};

use crate::args::{HookArgs, HookCommand};
use crate::exit::Failure;

pub(crate) fn run(args: &HookArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    match &args.agent {
        HookCommand::Behavioral(args) => behavioral::run(args, out),
        HookCommand::Agent(hook) => agent::run(hook, out),
    }
}
