//! A session in which nothing is wrong although much repeats: tests between edits, a poll that ends, a parallel batch.

use std::fs;
use std::path::Path;

use super::model::script::{Act, Script, Turn};
use super::place::Place;

/// How often each command of the work folder runs.
const RUNS: [(&str, usize); 5] = [("look", 1), ("left", 1), ("right", 1), ("test", 4), ("poll", 4)];

/// The session, with its files in this folder.
pub(super) fn script(work: &Path) -> Script {
    let file = |name: &str| work.join(name).to_string_lossy().into_owned();
    let shell = |command: &str| Act::Shell(command.to_owned());
    let edit = |old: &str, new: &str| Act::Edit {
        path: file("value.txt"),
        old: old.to_owned(),
        new: new.to_owned(),
    };
    let mut turns = vec![
        vec![shell("sh note.sh look")],
        vec![Act::Write { path: file("value.txt"), content: "0\n".to_owned() }],
        vec![shell("sh note.sh left"), shell("sh note.sh right"), Act::Read { path: file("notes.txt") }],
        vec![Act::Read { path: file("value.txt") }],
    ];
    for (old, new) in [("0", "1"), ("1", "2"), ("2", "3")] {
        turns.extend([vec![shell("sh test.sh")], vec![edit(old, new)]]);
    }
    turns.push(vec![shell("sh test.sh")]);
    turns.extend((0..4).map(|_| vec![shell("sh poll.sh")]));
    Script::Turns(turns.into_iter().map(Turn::Acts).collect())
}

/// Whether all of it was really done.
pub(super) fn check(place: &Place) -> Result<(), String> {
    for (name, wanted) in RUNS {
        let ran = place.ran(name);
        if ran != wanted {
            return Err(format!("`{name}` ran {ran} times, not {wanted}"));
        }
    }
    let value = fs::read_to_string(place.work.join("value.txt")).unwrap_or_default();
    if value.trim() == "3" { Ok(()) } else { Err(format!("the value is {value:?}, not 3")) }
}
