//! `deloop completions` and `deloop man`, from the same definitions as the help.

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::exit::{self, Failure};

pub(crate) fn completions(args: &CompletionsArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "deloop", &mut script);
    out.write_all(&script)?;
    Ok(exit::OK)
}

pub(crate) fn man(args: &ManArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    match &args.folder {
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            clap_mangen::generate_to(Cli::command(), folder)?;
        }
        None => clap_mangen::Man::new(Cli::command()).render(out)?,
    }
    Ok(exit::OK)
}
