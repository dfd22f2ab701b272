//! Crates that were yanked from crates.io, and advisories about crates.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::shown;
use super::table::Verdict;
use crate::setup::ADVISORY_DATABASE;
use crate::tools::{CARGO_DENY, target_folder};

/// The lock files of all that we build.
const LOCKS: [&str; 2] = ["Cargo.lock", "fuzz/Cargo.lock"];
/// Where the advisory database is published.
const ORIGINAL: &str = "https://github.com/RustSec/advisory-db";
/// Fails when a lock file names a version that its author yanked, by what cargo last read of the index of crates.io. It reads
/// the entries of all crates that it downloads.
pub(super) fn yanked(name: &'static str) -> (Verdict, String) {
    let locked: BTreeSet<(String, String)> =
        LOCKS.iter().flat_map(|lock| locked(&std::fs::read_to_string(lock).unwrap_or_default())).collect();
    let Some(index) = index_folder() else {
        return (Verdict::NotRun { excusable: true }, "cargo has no copy of the index".to_owned());
    };
    let is_yanked = |(name, version): &&(String, String)| {
        let entry = std::fs::read(index.join(index_path(name))).unwrap_or_default();
        yanked_version(&entry, version)
    };
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    for locked in &locked {
        match is_yanked(&locked) {
            Some(true) => found.push(locked),
            Some(false) => {}
            None => unknown.push(locked),
        }
    }
    for (crate_name, version) in &found {
        println!("── {name}: {crate_name} {version} was yanked; run `cargo update -p {crate_name}`");
    }
    println!("── {name}: {} versions, {} yanked", locked.len() - unknown.len(), found.len());
    let note = match unknown.len() {
        0 => String::new(),
        count => format!("{count} versions aren't in cargo's copy of the index"),
    };
    let passed = found.is_empty() && unknown.len() < locked.len();
    (if passed { Verdict::Passed } else { Verdict::Failed }, note)
}

/// Returns where cargo keeps what it read of the index.
fn index_folder() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = std::fs::read_dir(home.join("registry/index")).ok()?;
    registries.flatten().map(|registry| registry.path().join(".cache")).find(|cache| cache.is_dir())
}

/// Returns the names and versions of the crates from crates.io in a lock file.
fn locked(lock: &str) -> Vec<(String, String)> {
    let of_package = |package: &str| {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
            line.strip_suffix('"').map(str::to_owned)
        };
        let source = value("source")?;
        source.contains("crates.io-index").then_some((value("name")?, value("version")?))
    };
    lock.split("[[package]]").filter_map(of_package).collect()
}

/// Returns whether an entry of the index, in which JSON objects stand between zero bytes, says that this version was yanked;
/// `None` if it has no such version.
fn yanked_version(entry: &[u8], version: &str) -> Option<bool> {
    let versions =
        entry.split(|byte| *byte == 0).filter_map(|text| serde_json::from_slice::<Value>(text).ok());
    let found = versions.into_iter().find(|found| found["vers"] == version)?;
    found["yanked"].as_bool()
}

/// Returns the path of a crate in the index.
fn index_path(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    match lower.len() {
        1 => format!("1/{lower}"),
        2 => format!("2/{lower}"),
        3 => format!("3/{}/{lower}", &lower[..1]),
        _ => format!("{}/{}/{lower}", &lower[..2], &lower[2..4]),
    }
}

/// Compares the dependencies with the advisory database of RustSec, a clone of which the environment names.
pub(super) fn advisories(name: &'static str) -> (Verdict, String) {
    let database = std::env::var_os(ADVISORY_DATABASE).map(PathBuf::from).unwrap_or_default();
    let Ok(database) = database.canonicalize() else {
        return (Verdict::Failed, format!("{ADVISORY_DATABASE} names no folder"));
    };
    let folder = target_folder().join("check/advisories");
    let _ = std::fs::remove_dir_all(&folder);
    let configuration = folder.join("deny.toml");
    let text = format!(
        "{}\n[advisories]\nyanked = \"allow\"\ndb-path = {:?}\n",
        std::fs::read_to_string("deny.toml").unwrap_or_default(),
        folder.join("database"),
    );
    if std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&configuration, text)).is_err() {
        return (Verdict::Failed, format!("{} can't be written", configuration.display()));
    }
    let mut deny = CARGO_DENY.program().map_or_else(|| Command::new(CARGO_DENY.name), Command::new);
    deny.arg("--config").arg(&configuration).args(["check", "advisories"]);
    // cargo-deny accepts no address without a host, so git finds the clone where it looks for the original.
    deny.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_VALUE_0", ORIGINAL);
    deny.env("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", database.display()));
    let verdict = super::of_code(shown(name, &mut deny));
    (verdict, format!("database of {}", date(&database)))
}

/// Returns the date of the last commit of a clone.
fn date(database: &Path) -> String {
    let output = Command::new("git").arg("-C").arg(database).args(["log", "-1", "--format=%cs"]).output();
    let date = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    date.ok().filter(|date| !date.is_empty()).unwrap_or_else(|| "unknown date".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_the_registry_are_read_from_a_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        assert_eq!(locked(lock), [("a".to_owned(), "1.0.0".to_owned())]);
        assert!(locked(&std::fs::read_to_string("../Cargo.lock").unwrap()).len() > 100);
    }

    #[test]
    fn a_yanked_version_is_told_from_others() {
        let lines = b"\x03etag\x001.0.0\0{\"vers\":\"1.0.0\",\"yanked\":true}\x001.0.1\0{\"vers\":\"1.0.1\",\"yanked\":false}\0";
        assert_eq!(yanked_version(lines, "1.0.0"), Some(true));
        assert_eq!(yanked_version(lines, "1.0.1"), Some(false));
        assert_eq!(yanked_version(lines, "2.0.0"), None);
    }

    #[test]
    fn names_have_their_place_in_the_index() {
        for (name, path) in [("a", "1/a"), ("ab", "2/ab"), ("Abc", "3/a/abc"), ("serde", "se/rd/serde")] {
            assert_eq!(index_path(name), path);
        }
    }
}
