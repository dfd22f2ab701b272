//! How much disk there is, and how much the check used.

use std::process::Command;

use crate::tools::target_folder;

/// What a check takes in the target folder at most, everything built and installed, in gigabytes.
const NEEDED: f64 = 10.0;

/// Prints how much disk is free, and warns if that may not be enough.
pub(super) fn say_free() {
    let _ = std::fs::create_dir_all(target_folder());
    let free = kilobytes(Command::new("df").args(["-Pk"]).arg(target_folder()), 1, 3);
    let used = folder_size();
    let Some(free) = free else { return };
    println!("── disk: {free:.1} GB free, {used:.1} GB in target; a check takes up to {NEEDED:.0} GB");
    if free + used < NEEDED {
        println!("── disk: this may not be enough; delete target folders that you no longer need");
    }
}

/// Returns how large the target folder is now.
pub(super) fn used() -> String {
    format!("{:.1} GB in {}", folder_size(), target_folder().display())
}

fn folder_size() -> f64 {
    kilobytes(Command::new("du").arg("-sk").arg(target_folder()), 0, 0).unwrap_or_default()
}

/// Returns a number of kilobytes that a program prints, by line and column, in gigabytes.
fn kilobytes(command: &mut Command, line: usize, column: usize) -> Option<f64> {
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number: f64 = text.lines().nth(line)?.split_whitespace().nth(column)?.parse().ok()?;
    Some(number / 1e6)
}
