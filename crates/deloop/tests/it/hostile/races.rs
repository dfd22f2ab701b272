//! Commands that change the same file at the same time.

use std::process::{Child, Stdio};

use super::World;
use crate::binary::said;

/// Starts all of these commands, then waits for all of them to succeed.
fn together(world: &World, commands: &[Vec<&str>]) {
    let start = |arguments: &Vec<&str>| -> Child {
        let mut command = world.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = commands.iter().map(start).collect();
    for (arguments, child) in commands.iter().zip(children) {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    }
}

/// A revoked key never comes back, and no added one is lost, however commands overlap.
#[test]
fn keys_that_are_added_and_revoked_at_once_are_all_right() {
    for round in 0..15 {
        let world = World::new();
        for name in ["old-a", "old-b"] {
            assert_eq!(world.run(&["keys", "add", name, "--scope", "read"], "").status.code(), Some(0));
        }
        let add = |name| vec!["keys", "add", name, "--scope", "ingest"];
        let revoke = |name| vec!["keys", "revoke", name];
        together(&world, &[add("new-a"), revoke("old-a"), add("new-b"), revoke("old-b"), add("new-c")]);
        let listed = world.text(&["keys", "list"]);
        let mut names: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
        names.sort_unstable();
        assert_eq!(names, ["new-a", "new-b", "new-c"], "round {round}: {listed}");
    }
}

/// The same for what is trusted.
#[test]
fn trust_that_is_given_and_removed_at_once_is_all_right() {
    for round in 0..15 {
        let world = World::new();
        for name in ["a", "b", "c", "d"] {
            world.put(&format!("repo/{name}/deloop.toml"), "attended = true\n");
        }
        for name in ["a", "b"] {
            assert_eq!(world.run(&["trust", name], "").status.code(), Some(0));
        }
        together(
            &world,
            &[
                vec!["trust", "c"],
                vec!["trust", "--remove", "a"],
                vec!["trust", "d"],
                vec!["trust", "--remove", "b"],
            ],
        );
        let listed = world.text(&["trust", "--list"]);
        let has = |name: &str| listed.contains(&format!("repo/{name}/deloop.toml  trusted"));
        assert_eq!(["a", "b", "c", "d"].map(has), [false, false, true, true], "round {round}: {listed}");
        assert_eq!(listed.lines().count(), 2, "round {round}: {listed}");
    }
}
