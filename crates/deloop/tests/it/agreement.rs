//! Every output of `scan` and `show` gives the same turns, actions and sums.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::{deloop, run, said};
use crate::parallel::in_parallel;

type Actions = Vec<(u64, String)>;

/// A folder of recorded sessions, a profile, and how many sessions are shown one by one.
type Set = (PathBuf, &'static str, usize);

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name).canonicalize().unwrap()
}

fn printed(home: &Path, arguments: &[&str], columns: &str) -> String {
    let output = run(deloop(home).args(arguments).env("COLUMNS", columns), b"");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("a list: {value}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number: {value}"))
}

fn turns(value: &Value) -> BTreeSet<u64> {
    list(value).iter().map(number).collect()
}

fn actions(value: &Value) -> Actions {
    let action = |a: &Value| (number(&a["turn"]), a["action"].as_str().unwrap().to_owned());
    list(value).iter().map(action).collect()
}

fn tokens(spend: &Value) -> u64 {
    let kinds = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"];
    kinds.iter().map(|kind| number(&spend[kind])).sum()
}

/// Whether `77.7k`, `1.2M` or `–` stands for this number.
fn is_count(text: &str, number: u64) -> bool {
    let (digits, unit) = text.split_at(text.trim_end_matches(['k', 'M', 'B']).len());
    let unit = match unit {
        "k" => 1e3,
        "M" => 1e6,
        "B" => 1e9,
        _ => return text == number.to_string() || text == "–" && number == 0,
    };
    let half = if digits.contains('.') { 0.051 } else { 0.51 };
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let off = (digits.parse::<f64>().unwrap() - number as f64 / unit).abs();
    off <= half
}

/// Whether `$0.04`, `<$0.01`, `–` or `price unknown` stands for this.
fn is_cost(text: &str, spend: &Value) -> bool {
    let usd = spend["usd"].as_f64().unwrap();
    match text.strip_suffix(" + price unknown").unwrap_or(text) {
        "–" => tokens(spend) == 0,
        "price unknown" => usd == 0.0 && number(&spend["unpriced_tokens"]) > 0,
        "<$0.01" => usd < 0.005,
        text => (text.strip_prefix('$').unwrap().parse::<f64>().unwrap() - usd).abs() <= 0.00501,
    }
}

/// Checks "6 turns repeated, 66.6k tokens, $0.04, 6 min".
#[track_caller]
fn check_spent(text: &str, repeated: u64, spend: &Value) {
    let parts: Vec<&str> = text.split(", ").collect();
    let turns = parts[0].trim_end_matches(" repeated").trim_end_matches('s').trim_end_matches(" turn");
    assert!(is_count(turns, repeated), "{text}: {repeated} turns");
    assert!(is_count(parts[1].trim_end_matches(" tokens"), tokens(spend)), "{text}: {spend}");
    assert!(is_cost(parts[2], spend), "{text}: {spend}");
}

/// Checks "turns 2 to 8 of 9; nudge at turns 4, 6; block at 9 turns, 7, 8, 9, … 20".
#[track_caller]
fn check_place(text: &str, one: &Value) {
    let mut parts = text.split("; ");
    let place = parts.next().unwrap();
    let (first, last, of) = (&one["first_turn"], &one["last_turn"], &one["of_turns"]);
    let expected = if first == last {
        format!("turn {first} of {of}")
    } else {
        format!("turns {first} to {last} of {of}")
    };
    assert_eq!(place, expected);
    let mut by_kind: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (turn, action) in actions(&one["actions"]) {
        by_kind.entry(action).or_default().insert(turn);
    }
    for part in parts {
        let (action, at) = part.split_once(" at ").unwrap();
        let turns = by_kind.remove(action).unwrap_or_else(|| panic!("{text}: no {action} in {one}"));
        let (how_many, listed) = match at.split_once(" turns, ") {
            Some((how_many, listed)) => (how_many.parse().unwrap(), listed),
            None => (turns.len(), at.trim_start_matches("turns ").trim_start_matches("turn ")),
        };
        assert_eq!(how_many, turns.len(), "{text}");
        let listed: BTreeSet<u64> = listed.split([',', ' ']).filter_map(|word| word.parse().ok()).collect();
        assert!(listed.is_subset(&turns) && listed.contains(turns.last().unwrap()), "{text}: {turns:?}");
        assert!(listed.len() == turns.len() || turns.len() > 8, "{text}: {turns:?}");
    }
    assert!(by_kind.is_empty(), "{text} lacks {by_kind:?}");
}

fn csv(text: &str) -> Vec<BTreeMap<String, String>> {
    let row = |line: &str| -> Vec<String> {
        let (mut cells, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                c => cells.last_mut().unwrap().push(c),
            }
        }
        cells
    };
    let mut lines = text.lines();
    let names = row(lines.next().unwrap());
    lines.map(|line| names.iter().cloned().zip(row(line)).collect()).collect()
}

/// The number of the turn that begins with this line of `show`, and whether it is marked as repeated.
fn turn_head(line: &str) -> Option<(u64, bool)> {
    let repeats = line.starts_with(" ⟲ ");
    let body = line.strip_prefix(" ⟲ ").or_else(|| line.strip_prefix("   "))?;
    let mut words = body.strip_prefix("turn ")?.split_whitespace();
    let turn = words.next()?.parse().ok()?;
    // The line below the head of a loop: "turn 3 of 9; nudge at turn 3".
    (words.next() != Some("of")).then_some((turn, repeats))
}

/// The turns that `show` marks as repeated, and what it says deloop would have done at which turn.
fn marks(shown: &str) -> (BTreeSet<u64>, Actions) {
    let (mut repeated, mut acted, mut current) = (BTreeSet::new(), Vec::new(), 0);
    for line in shown.lines() {
        if let Some((turn, repeats)) = turn_head(line) {
            current = turn;
            repeated.extend(repeats.then_some(turn));
        }
        let mark = line.trim_start().strip_prefix("▲ deloop: ");
        if let Some((action, turn)) = mark.and_then(|mark| mark.split_once(" (level ")) {
            let turn: u64 = turn.rsplit(' ').next().unwrap().parse().unwrap();
            assert_eq!(turn, current, "the mark stands at its turn: {line}");
            acted.push((turn, action.to_owned()));
        }
    }
    (repeated, acted)
}

/// One folder, scanned once in each form.
struct Scanned {
    report: Value,
    loops: BTreeMap<(String, String, u64), Value>,
}

impl Scanned {
    fn new(home: &Path, folder: &str, profile: &str) -> Self {
        let report: Value =
            serde_json::from_str(&printed(home, &["scan", folder, "-p", profile, "--json"], "132")).unwrap();
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        let key = |l: &Value| (text(&l["file"]), text(&l["session"]), number(&l["step"]));
        let loops = list(&report["loops"]).iter().map(|l| (key(l), l.clone())).collect();
        Self { report, loops }
    }

    /// The loops of a session's row.
    fn of<'a>(&'a self, row: &'a Value) -> impl Iterator<Item = &'a Value> {
        let same = |l: &&Value| l["session"] == row["session"] && l["file"] == row["file"];
        list(&self.report["loops"]).iter().filter(same)
    }

    /// The sums of the report follow from its rows.
    fn check_sums(&self) {
        let (mut repeated, mut usd, mut used) = (0, 0.0, 0);
        for row in list(&self.report["sessions"]) {
            let union: BTreeSet<u64> = self.of(row).flat_map(|l| turns(&l["repeated"])).collect();
            assert_eq!(number(&row["repeated_turns"]), union.len() as u64, "{row}");
            assert!(union.iter().all(|turn| (1..=number(&row["turns"])).contains(turn)), "{row}");
            let of_loops: u64 = self.of(row).map(|l| tokens(&l["spend"])).sum();
            assert_eq!(tokens(&row["loop_spend"]), of_loops, "loops have no turn in common: {row}");
            let about: Actions = self.of(row).flat_map(|l| actions(&l["actions"])).collect();
            let all = actions(&row["actions"]);
            assert!(about.iter().all(|a| all.contains(a)), "{about:?} in {all:?}");
            repeated += union.len() as u64;
            usd += row["loop_spend"]["usd"].as_f64().unwrap();
            used += tokens(&row["loop_spend"]);
        }
        let totals = &self.report["totals"];
        assert_eq!((number(&totals["repeated_turns"]), tokens(&totals["loop_spend"])), (repeated, used));
        assert!((totals["loop_spend"]["usd"].as_f64().unwrap() - usd).abs() < 1e-9);
    }

    fn check_csv(&self, text: &str) {
        let rows = csv(text);
        assert_eq!(rows.len(), self.loops.len());
        for row in rows {
            let one =
                &self.loops[&(row["file"].clone(), row["session"].clone(), row["step"].parse().unwrap())];
            for name in ["first_turn", "last_turn", "level", "count"] {
                assert_eq!(row[name], one[name].to_string(), "{name}: {row:?}");
            }
            assert_eq!(row["repeated_turns"], list(&one["repeated"]).len().to_string());
            let expected: Vec<String> =
                actions(&one["actions"]).iter().map(|(turn, action)| format!("{action}@{turn}")).collect();
            assert_eq!(row["actions"], expected.join(" "));
            assert_eq!(row["tokens"], tokens(&one["spend"]).to_string());
            assert_eq!(row["usd"], format!("{:.6}", one["spend"]["usd"].as_f64().unwrap()));
        }
    }

    /// A narrow screen gets a list, a wide one a table; both end with the totals.
    fn check_text(&self, narrow: &str, wide: &str) {
        let mut lines = narrow.lines();
        for one in list(&self.report["loops"]) {
            assert_eq!(lines.next(), one["pattern"].as_str());
            check_spent(lines.next().unwrap().trim(), list(&one["repeated"]).len() as u64, &one["spend"]);
            check_place(lines.next().unwrap().trim(), one);
            assert_eq!(lines.by_ref().find(|line| line.is_empty()), Some(""));
        }
        let mut cells = wide.lines().filter_map(|line| {
            let mut words: Vec<&str> = line.split("  ").map(str::trim).filter(|w| !w.is_empty()).collect();
            let cost = words.pop()?;
            let (used, repeated) = (words.pop()?, words.pop()?);
            Some((repeated.parse::<u64>().ok()?, used.to_owned(), cost.to_owned()))
        });
        for one in list(&self.report["loops"]) {
            let (repeated, used, cost) = cells.next().expect("a row for each loop");
            assert_eq!(repeated, list(&one["repeated"]).len() as u64, "{one}");
            assert!(
                is_count(&used, tokens(&one["spend"])) && is_cost(&cost, &one["spend"]),
                "{used} {cost} {one}"
            );
        }
        let totals = &self.report["totals"];
        let line = wide.lines().find(|line| line.contains(" loops in ")).unwrap();
        let (_, sums) = line.split_once(": ").unwrap();
        let repeated = sums.split(' ').next().unwrap();
        assert!(is_count(repeated, number(&totals["repeated_turns"])), "{line}");
        let used = sums.split(", ").find_map(|part| part.strip_suffix(" tokens")).unwrap();
        assert!(is_count(used, tokens(&totals["loop_spend"])), "{line}");
    }

    /// The page shows the costliest sessions, with their steps as data.
    fn check_page(&self, page: &str) {
        let (_, data) = page.split_once("id=\"data\">").unwrap();
        let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
        let cards: Vec<&str> = page.split("<article class=\"session\"").skip(1).collect();
        assert_eq!(cards.len(), list(&data).len());
        let mut seen: Vec<&Value> = Vec::new();
        for one in list(&self.report["loops"]) {
            let is_it = |s: &&Value| s["session"] == one["session"] && s["file"] == one["file"];
            let row = list(&self.report["sessions"]).iter().find(is_it).unwrap();
            if !seen.contains(&row) {
                seen.push(row);
            }
        }
        for ((row, steps), card) in seen.into_iter().zip(list(&data)).zip(cards) {
            let repeats = |s: &&Value| s["kind"] == "turn" && s["repeats"] == true;
            let repeated: BTreeSet<u64> =
                list(steps).iter().filter(repeats).map(|s| number(&s["turn"])).collect();
            let expected: BTreeSet<u64> = self.of(row).flat_map(|l| turns(&l["repeated"])).collect();
            assert_eq!(repeated, expected, "{row}");
            let acted: Actions = list(steps)
                .iter()
                .filter(|s| s["action"].is_object())
                .map(|s| (number(&s["action"]["turn"]), s["action"]["action"].as_str().unwrap().to_owned()))
                .collect();
            assert_eq!(acted, actions(&row["actions"]), "{row}");
            let figures: Vec<&str> =
                card.split("<dd>").skip(1).map(|dd| dd.split_once("</dd>").unwrap().0).collect();
            assert!(is_cost(&figures[0].replace("&lt;", "<"), &row["loop_spend"]), "{figures:?} {row}");
            assert_eq!(figures[1], format!("{} of {}", row["repeated_turns"], row["turns"]));
            assert!(is_count(figures[2], tokens(&row["loop_spend"])), "{figures:?} {row}");
        }
    }

    fn check_show(&self, row: &Value, some: &str, all: &str) {
        let expected: BTreeSet<u64> = self.of(row).flat_map(|l| turns(&l["repeated"])).collect();
        for shown in [some, all] {
            let (repeated, acted) = marks(shown);
            assert_eq!(repeated, expected, "{row}\n{shown}");
            assert_eq!(acted, actions(&row["actions"]), "{row}\n{shown}");
            let mut loops: Vec<&Value> = self.of(row).collect();
            loops.sort_by_key(|l| number(&l["step"]));
            let mut lines = shown.lines().skip_while(|line| !line.starts_with("── Loop"));
            for one in loops {
                let head = lines.find(|line| line.starts_with("── Loop")).unwrap();
                assert!(head.ends_with(one["pattern"].as_str().unwrap()), "{head}: {one}");
                check_place(lines.next().unwrap().trim(), one);
                let spent = lines.next().unwrap().trim().split("; found by").next().unwrap().to_owned();
                check_spent(&spent, list(&one["repeated"]).len() as u64, &one["spend"]);
            }
        }
        let heads = all.lines().filter_map(turn_head).count() as u64;
        assert_eq!(heads, number(&row["turns"]), "every turn is shown: {row}");
    }
}

#[test]
fn all_outputs_give_the_same_turns_actions_and_sums() {
    let own = folder("corpus");
    let others = ["behavioral", "signature", "doom-loop", "turn-similarity", "turn-hash"];
    let mut sets = vec![(own.clone(), "default", 15)];
    sets.extend(others.map(|profile| (own.clone(), profile, 3)));
    check_all(sets);
}

#[test]
#[ignore = "needs shared sessions"]
fn all_outputs_agree_on_the_shared_sessions() {
    check_all(vec![(folder("../shared/corpus"), "default", 15)]);
}

fn check_all(sets: Vec<Set>) {
    let sessions = in_parallel(sets, |(folder, profile, take)| {
        let mut sessions = 0;
        let home = tempfile::tempdir().unwrap();
        let path = folder.to_str().unwrap();
        let scan = |more: &[&str], columns: &str| {
            printed(home.path(), &[&["scan", path, "-p", profile], more].concat(), columns)
        };
        let scanned = Scanned::new(home.path(), path, profile);
        scanned.check_sums();
        scanned.check_csv(&scan(&["--csv"], "132"));
        scanned.check_text(&scan(&["--top", "0"], "60"), &scan(&["--top", "0"], "160"));
        scan(&["--html", "r.html"], "132");
        scanned.check_page(&std::fs::read_to_string(home.path().join("r.html")).unwrap());
        // Files with one session, those with a loop first: a file is then what `show` shows.
        let rows = list(&scanned.report["sessions"]);
        let alone = |row: &&Value| rows.iter().filter(|r| r["file"] == row["file"]).count() == 1;
        let mut rows: Vec<&Value> = rows.iter().filter(alone).collect();
        rows.sort_by_key(|row| row["loops"] == 0);
        for row in rows.into_iter().take(take) {
            let show = ["show", row["file"].as_str().unwrap(), "-p", profile, "--all"];
            scanned.check_show(
                row,
                &printed(home.path(), &show[..4], "160"),
                &printed(home.path(), &show, "160"),
            );
            sessions += 1;
        }
        sessions
    });
    let sessions: usize = sessions.into_iter().sum();
    assert!(sessions >= 15, "{sessions} sessions");
}
