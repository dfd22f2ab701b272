//! What a step of a long chore prints: shown as it comes, kept in a file, and repeated where the chore ends if it failed.

use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::tools::target_folder;

/// How long output is waited for after its command has ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a step's output is shown, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    AsItComes,
    /// For output that helps nobody unless the step fails.
    OnFailure,
}

/// Returns the file for the output of a step of a chore.
pub(crate) fn output_file(chore: &str, step: &str) -> PathBuf {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    target_folder().join(chore).join("output").join(step.chars().map(plain).collect::<String>() + ".txt")
}

/// Returns the last lines of what a step printed, below one that names the step.
pub(crate) fn end_of_output(step: &str, file: &Path, lines: usize) -> String {
    let output = std::fs::read(file).unwrap_or_default();
    let output = String::from_utf8_lossy(&output);
    let all: Vec<&str> = output.lines().collect();
    let end = all[all.len().saturating_sub(lines)..].join("\n");
    format!("── the end of {step}:\n{end}\n")
}

pub(crate) fn append(file: &Path, text: &str) {
    let _ = file.parent().map(std::fs::create_dir_all);
    let open = File::options().create(true).append(true).open(file);
    if let Err(error) = open.and_then(|mut file| file.write_all(text.as_bytes())) {
        println!("── {} could not be written: {error}", file.display());
    }
}

/// Runs a command and appends what it prints to a file; its exit code. Standard output and error share a pipe, so that a
/// test stays behind the line that names its binary.
///
/// # Errors
/// When the command can't be started, or its output not be written.
pub(crate) fn run_and_keep(command: &mut Command, file: &Path, show: Show) -> std::io::Result<Option<i32>> {
    let (reader, writer) = std::io::pipe()?;
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command keeps the ends of the pipe that it was given, and the pipe ends when they are all closed.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let _ = file.parent().map(std::fs::create_dir_all);
    let kept = File::options().create(true).append(true).open(file)?;
    let (sender, copied) = mpsc::channel();
    std::thread::spawn(move || sender.send(copy(reader, kept, show)));
    let code = child.wait()?.code();
    // A process that the command left behind may keep the pipe open for ever.
    match copied.recv_timeout(PATIENCE) {
        Ok(copied) => copied.map(|()| code),
        Err(_) => Ok(code),
    }
}

fn copy(mut reader: PipeReader, mut kept: File, show: Show) -> std::io::Result<()> {
    let mut buffer = [0; 8192];
    loop {
        let length = reader.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        if show == Show::AsItComes {
            std::io::stdout().write_all(&buffer[..length])?;
        }
        kept.write_all(&buffer[..length])?;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// What is written to standard output and to standard error is kept in its order, and added to what is there.
    #[test]
    fn output_is_kept() {
        let folder = std::env::temp_dir().join(format!("xtask-output-{}", std::process::id()));
        let file = folder.join("check/tests.txt");
        let mut command = Command::new("sh");
        command.args(["-c", "echo Running >&2; echo test; echo more >&2; exit 3"]);
        for show in [Show::AsItComes, Show::OnFailure] {
            assert_eq!(run_and_keep(&mut command, &file, show).unwrap(), Some(3));
        }
        append(&file, "end\n");
        let (text, end) = (std::fs::read_to_string(&file).unwrap(), end_of_output("tests", &file, 60));
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(text, "Running\ntest\nmore\nRunning\ntest\nmore\nend\n");
        assert_eq!(end, format!("── the end of tests:\n{text}"));
    }

    #[test]
    fn a_process_that_is_left_behind_is_not_waited_for() {
        let file = std::env::temp_dir().join(format!("xtask-left-{}.txt", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "echo begun; sleep 60 & exit 0"]);
        let (sender, done) = mpsc::channel();
        let kept = file.clone();
        std::thread::spawn(move || sender.send(run_and_keep(&mut command, &kept, Show::OnFailure).unwrap()));
        assert_eq!(done.recv_timeout(Duration::from_secs(30)).unwrap(), Some(0));
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(file).unwrap();
        assert_eq!(text, "begun\n");
    }

    #[test]
    fn only_the_end_is_repeated() {
        let file = std::env::temp_dir().join(format!("xtask-end-{}.txt", std::process::id()));
        append(&file, &(0..1000).map(|line| format!("{line}\n")).collect::<String>());
        let end = end_of_output("a step", &file, 60);
        std::fs::remove_file(file).unwrap();
        assert_eq!(end.lines().count(), 61);
        assert!(end.starts_with("── the end of a step:\n940\n") && end.ends_with("\n999\n"), "{end}");
    }
}
