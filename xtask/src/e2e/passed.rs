//! The list of cases that passed, for whoever checks that a documented case really ran.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::place;
use super::table::Row;

/// Updates the list: the cases of this run are replaced, the others stay.
pub(super) fn write(path: &Path, rows: &[Row]) -> io::Result<()> {
    let before = fs::read_to_string(path).unwrap_or_default();
    let mut names: BTreeSet<String> = before.lines().map(str::to_owned).collect();
    for (name, passed) in rows.iter().flat_map(Row::results) {
        if passed {
            names.insert(name);
        } else {
            names.remove(&name);
        }
    }
    place::write(path, &names.iter().map(|name| format!("{name}\n")).collect::<String>())
}
