//! `deloop steps`: prints session files of any format as native Steps.

use std::io::Write;

use indicatif::ProgressBar;

use crate::args::StepsArgs;
use crate::exit::{self, Failure};
use crate::print;
use crate::sessions::{
    Problem, ReadError, SourceArgs, UnreadFiles, find, nothing_read, print_problems, read, without_steps,
};

pub(crate) fn run(args: &StepsArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let source =
        SourceArgs { paths: args.files.clone(), format: args.format.clone(), since: None, links: args.links };
    let found = find(&source, None);
    let mut problems = found.problems;
    let mut unread = UnreadFiles::default();
    for input in &found.inputs {
        let (mut failed, mut steps) = (None, 0_u64);
        let done = read(input, &ProgressBar::hidden(), &mut |item, _| {
            steps += 1;
            if failed.is_none() {
                let line = serde_json::to_writer(&mut *out, &item.step).map_err(Failure::from);
                failed = line.and_then(|()| Ok(out.write_all(b"\n")?)).err();
            }
        });
        if let Some(failure) = failed {
            return Err(failure);
        }
        let path = input.path();
        match done {
            Ok(done) => {
                if steps > 0 {
                    unread.read();
                } else if let Some(problem) = without_steps(input, &done) {
                    unread.add(problem);
                }
                problems.extend(done.notes.into_iter().map(|note| Problem::note(path, note)));
            }
            // Folders also contain files that aren't sessions.
            Err(ReadError::UnknownFormat(looks_like)) if !input.named => {
                unread.add(Problem::unknown_format(path, &looks_like));
            }
            Err(ReadError::UnknownFormat(looks_like)) => {
                problems.push(Problem::unknown_format(path, &looks_like));
                unread.add_reported();
            }
            Err(ReadError::Io(error)) => {
                problems.push(Problem::unread(path, &error));
                unread.add_reported();
            }
        }
    }
    out.flush()?;
    if unread.is_everything(&mut problems) {
        print_problems(&problems);
        return Err(nothing_read(unread.number));
    }
    for problem in &problems {
        print::tell(format_args!("deloop: {}: {}", problem.path, problem.problem));
    }
    Ok(if problems.iter().any(|p| p.lost) { exit::COULD_NOT_RUN } else { exit::OK })
}
