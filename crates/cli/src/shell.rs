//! `deloop completions` and `deloop man`, from the same definitions as the help.

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::exit::{self, Failure};
use crate::safe_file::{Expected, Make, Permission, Target};

pub(crate) fn completions(args: &CompletionsArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "deloop", &mut script);
    out.write_all(&script)?;
    Ok(exit::OK)
}

pub(crate) fn man(args: &ManArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    match &args.folder {
        Some(folder) => {
            // The generator writes through links, so it gets a folder of its own.
            let made = tempfile::tempdir()?;
            clap_mangen::generate_to(Cli::command(), made.path())?;
            for page in std::fs::read_dir(made.path())? {
                let page = page?;
                let path = folder.join(page.file_name());
                let target = Target::chosen(&path, Make::Folders)
                    .map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
                let done = target.replace(&std::fs::read(page.path())?, Permission::Keep, Expected::Any);
                done.map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
            }
        }
        None => clap_mangen::Man::new(Cli::command()).render(out)?,
    }
    Ok(exit::OK)
}
