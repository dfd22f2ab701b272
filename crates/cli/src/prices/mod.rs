//! `deloop prices`: lists model prices and updates them.

pub(crate) mod args;
mod fetch;
mod list;
mod stored;
mod update;

use std::io::Write;

use self::args::{PricesArgs, PricesCommand};
pub(crate) use self::stored::in_use;
use crate::exit::Failure;

pub(crate) fn run(args: &PricesArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    match &args.command {
        None => list::run(args.name.as_deref(), args.json, out),
        Some(PricesCommand::Update { from, source }) => update::run(from, source.as_deref(), out),
        Some(PricesCommand::Reset) => update::reset(out),
    }
}
