//! Which files have changed since the last commit that passed `cargo xtask check --all`.

use std::process::Command;

/// Where that commit is recorded.
const RECORD: &str = ".ci/last-full-check.txt";
const HEAD: &str = "\
# Written by `cargo xtask check --all`: the last commit that passed it. CI repeats the parts whose files differ from it.
";

/// What has changed, or why that isn't known.
pub(super) struct Changes {
    commit: String,
    files: Result<Vec<String>, String>,
}

impl Changes {
    /// Returns why a part with these files and folders must run.
    ///
    /// # Errors
    /// When it needn't: says why.
    pub(super) fn reason(&self, watched: &[&str]) -> Result<String, String> {
        let commit = self.commit.get(..12).unwrap_or(&self.commit);
        let files = match &self.files {
            Ok(files) => files,
            Err(why) => return Ok(why.clone()),
        };
        let is_watched = |file: &&String| {
            watched.iter().any(|path| {
                file.strip_prefix(path).is_some_and(|rest| path.ends_with('/') || rest.is_empty())
            })
        };
        match files.iter().find(is_watched) {
            Some(file) => Ok(format!("{file} has changed since the full check of {commit}")),
            None => Err(format!("unchanged since the full check of {commit}")),
        }
    }
}

/// Compares the working tree with the recorded commit.
pub(super) fn since_full_check() -> Changes {
    let record = std::fs::read_to_string(RECORD).unwrap_or_default();
    let commit = record.lines().find_map(|line| line.strip_prefix("commit ")).unwrap_or_default().to_owned();
    let files = match git(&["diff", "--name-only", &commit, "--"]) {
        _ if commit.is_empty() => Err(format!("{RECORD} names no commit")),
        None => Err(format!("this clone has no commit {commit}, which {RECORD} names")),
        Some(names) => Ok(names.lines().map(str::to_owned).collect()),
    };
    Changes { commit, files }
}

/// Returns the commit that is checked out, if nothing differs from it.
pub(super) fn clean_commit() -> Option<String> {
    let clean = git(&["status", "--porcelain"]).is_some_and(|changes| changes.is_empty());
    git(&["rev-parse", "HEAD"]).filter(|_| clean).map(|commit| commit.trim().to_owned())
}

/// Records the commit that passed. Returns what was done, for the person who reads.
pub(super) fn record(commit: Option<String>, passed: bool) -> String {
    match commit {
        _ if !passed => format!("{RECORD} is unchanged: not everything ran and passed"),
        None => format!("{RECORD} is unchanged: the tree had changes that aren't committed"),
        Some(commit) => match std::fs::write(RECORD, format!("{HEAD}commit {commit}\n")) {
            Ok(()) => format!("{RECORD} names {commit} now; commit it"),
            Err(error) => format!("{RECORD}: {error}"),
        },
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_runs_if_one_of_its_files_changed_or_nobody_knows() {
        let names = ["crates/live/src/lib.rs", "fuzz.md"].map(str::to_owned).to_vec();
        let changes = Changes { commit: "0123456789abcdef".to_owned(), files: Ok(names) };
        let because = "crates/live/src/lib.rs has changed since the full check of 0123456789ab";
        assert_eq!(changes.reason(&["fuzz/", "crates/live/"]), Ok(because.to_owned()));
        assert!(changes.reason(&["fuzz.md"]).is_ok());
        for other in ["fuzz/", "fuzz", "crates/live", "crates/li/"] {
            assert!(changes.reason(&[other]).is_err(), "{other}");
        }
        let unknown = Changes { commit: String::new(), files: Err("no commit".to_owned()) };
        assert_eq!(unknown.reason(&["fuzz/"]), Ok("no commit".to_owned()));
    }
}
