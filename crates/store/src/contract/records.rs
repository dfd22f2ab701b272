use std::collections::BTreeSet;
use std::time::Duration;

use deloop_types::Millis;

use crate::{Addition, EventCursor, RecordName, SharedRecords};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long records with a short life live in the suite: longer than the suite takes.
const SHORT: Duration = Duration::from_secs(3600);
const NOW: Millis = Millis(1_800_000_000_000);
/// Names that could leave their key, their group or their quotes.
const NAMES: [&str; 8] = ["", "a", "a:b", "}{x}", "100%", "*?[a]\\", "\0\r\n$3\r\n", "\u{1f600}'\"]"];

/// Runs the suite on shared records. `pass` lets that much time pass in a backend with a clock of its own.
///
/// # Panics
/// When the backend breaks the contract.
pub fn check_records(records: &dyn SharedRecords, pass: &dyn Fn(Duration)) {
    claims(records);
    tables(records);
    lists(records);
    texts(records);
    scans(records);
    events(records);
    short_lives(records, pass);
    many_at_once(records);
}

fn name(name: &str) -> RecordName<'_> {
    RecordName::new("g", name)
}

fn claims(records: &dyn SharedRecords) {
    let claim = |name| records.claim(name, DAY, NOW).expect("claim");
    for text in NAMES {
        assert!(claim(name(text)), "{text:?} is free");
        assert!(!claim(name(text)), "{text:?} is claimed once");
    }
    assert!(claim(RecordName::new("h", "a")), "groups share nothing");
    assert!(claim(RecordName::new("g:a", "b")), "a group and a name aren't simply joined");
    records.release(name("a")).expect("release");
    records.release(name("a")).expect("releasing what nobody claimed");
    assert_eq!((claim(name("a")), claim(name("a"))), (true, false), "it can be claimed again");
}

fn tables(records: &dyn SharedRecords) {
    let add = |table, amounts: &[(&str, i64)]| records.add(table, amounts, DAY, NOW).expect("add");
    let totals = |table| records.totals(table, NOW).expect("totals");
    let total = |field: &str, total| (field.to_owned(), total);
    assert_eq!(totals(name("t")), [], "looking makes nothing");
    assert_eq!(add(name("t"), &[("tokens", 5), ("cost", -2)]), [5, -2]);
    assert_eq!(add(name("t"), &[("cost", 3), ("tokens", 5), ("cost", 1)]), [2, 10, 2], "a field twice");
    assert_eq!(add(name("u"), &[("", 1), ("a:b\0\u{e9}", 1)]), [1, 1], "fields are any text");
    assert_eq!(add(name("t"), &[]), [] as [i64; 0]);
    assert_eq!(totals(name("t")), [total("cost", 2), total("tokens", 10)]);
    assert_eq!(totals(name("u")), [total("", 1), total("a:b\0\u{e9}", 1)]);
    assert_eq!(add(name("big"), &[("n", i64::MAX - 1), ("m", i64::MIN)]), [i64::MAX - 1, i64::MIN], "exact");
    assert_eq!(add(name("big"), &[("n", 2), ("m", -1), ("k", 1)]), [i64::MAX, i64::MIN, 1], "no overflow");
    records.forget(name("t")).expect("forget");
    records.forget(name("t")).expect("forgetting what is not there");
    assert_eq!(totals(name("t")), []);

    let once = |table, mark: &str, amounts: &[(&str, i64)]| {
        let added = records.add_once(table, mark, amounts, DAY, NOW).expect("add once");
        (added.is_new, added.totals)
    };
    for mark in NAMES {
        assert!(once(name("v"), mark, &[("n", 1)]).0, "{mark:?} is new");
    }
    for mark in NAMES {
        assert_eq!(once(name("v"), mark, &[("n", 1), ("m", 1)]), (false, vec![NAMES.len() as i64, 0]));
    }
    assert_eq!(once(name("w"), "a", &[("n", 7)]), (true, vec![7]), "each table has marks of its own");
    let addition = |table, mark, n: &'static [(&'static str, i64)]| Addition {
        table: name(table),
        mark,
        amounts: n,
        ttl: DAY,
    };
    let many = [
        addition("w", Some("b"), &[("n", 1)]),
        addition("w", Some("a"), &[("n", 1)]),
        addition("x", None, &[("n", 4), ("m", 1)]),
        addition("x", None, &[("n", 4)]),
    ];
    let added = records.add_many(&many, NOW).into_iter().map(|added| added.expect("add many"));
    let added: Vec<_> = added.map(|added| (added.is_new, added.totals)).collect();
    assert_eq!(added, [(true, vec![8]), (false, vec![8]), (true, vec![4, 1]), (true, vec![8])]);
    records.forget(name("w")).expect("forget");
    assert_eq!(once(name("w"), "a", &[("n", 7)]), (false, vec![0]), "marks outlive their table");
}

fn lists(records: &dyn SharedRecords) {
    let push = |text: &str, most| records.push(name("a"), text, most, DAY, NOW).expect("push");
    let take = || records.take(name("a"), NOW).expect("take");
    let list = || records.list(name("a"), NOW).expect("list");
    assert_eq!((take(), list()), (vec![], vec![]), "looking makes nothing");
    for text in ["1", "", "\0\r\n\u{e9}", "1"] {
        push(text, 3);
    }
    assert_eq!(list(), ["", "\0\r\n\u{e9}", "1"], "the oldest is dropped");
    assert_eq!(list(), take(), "listing leaves them there");
    assert_eq!(take(), [] as [String; 0], "taking doesn't");
    push("x", 9);
    push("y", 0);
    assert_eq!(take(), ["y"], "at least one is kept");
    push("z", 1);
    let lists = [name("a"), name("none"), name("a")];
    let taken = records.take_many(&lists, NOW).into_iter().map(|texts| texts.expect("take many"));
    assert_eq!(taken.collect::<Vec<_>>(), [vec!["z".to_owned()], vec![], vec![]]);
}

fn texts(records: &dyn SharedRecords) {
    let put = |name, text: &str| records.put(name, text, DAY, NOW).expect("put");
    let get = |name| records.get(name, NOW).expect("get");
    assert_eq!(get(name("a")), None);
    for text in NAMES {
        put(name(text), "old");
        put(name(text), text);
    }
    put(RecordName::new("h", "a"), "other");
    for text in NAMES {
        assert_eq!(get(name(text)).as_deref(), Some(text));
        records.remove(name(text)).expect("remove");
        records.remove(name(text)).expect("removing what is not there");
        assert_eq!(get(name(text)), None);
    }
    assert_eq!(get(RecordName::new("h", "a")).as_deref(), Some("other"), "groups share nothing");
}

fn scans(records: &dyn SharedRecords) {
    for text in ["p/b", "p/a", "p/c", "p", "p/\u{e9}", "p0", "", "p/B", "p\u{ff}", "q"] {
        records.put(RecordName::new("scan", text), "x", DAY, NOW).expect("put");
    }
    records.put(RecordName::new("scan2", "p/x"), "x", DAY, NOW).expect("put");
    let scan = |prefix, after, limit| records.scan("scan", prefix, after, limit, NOW).expect("scan");
    assert_eq!(scan("p/", None, 10), ["p/B", "p/a", "p/b", "p/c", "p/\u{e9}"]);
    assert_eq!(scan("p/", Some("p/B"), 2), ["p/a", "p/b"]);
    assert_eq!(scan("p/", Some("p/\u{e9}"), 2), [] as [String; 0]);
    assert_eq!(scan("p/", Some("a"), 1), ["p/B"], "what comes before the prefix is no place to stop");
    assert_eq!(scan("p/", Some("z"), 9), [] as [String; 0]);
    assert_eq!(scan("", None, 100).len(), 10);
    assert_eq!(scan("", None, 0), [] as [String; 0]);
    records.remove(RecordName::new("scan", "p/a")).expect("remove");
    assert_eq!(scan("p/", None, 2), ["p/B", "p/b"]);
    assert_eq!(records.scan("nothing", "", None, 5, NOW).expect("scan"), [] as [String; 0]);
}

fn events(records: &dyn SharedRecords) {
    let follow = |after, most, wait| records.follow(after, most, wait).expect("follow");
    let (start, none) = follow(None, 9, Duration::ZERO);
    assert_eq!(none, [] as [String; 0]);
    for text in ["1", "", "\0\u{e9}"] {
        records.publish(text).expect("publish");
    }
    let (second, two) = follow(Some(start), 2, Duration::ZERO);
    assert_eq!(two, ["1", ""]);
    let (third, rest) = follow(Some(second), 2, Duration::ZERO);
    assert_eq!(rest, ["\0\u{e9}"]);
    assert_eq!(follow(Some(third), 2, Duration::from_millis(5)), (third, vec![]), "nothing new");
    assert_eq!(follow(None, 2, Duration::ZERO).0, third, "the latest");
    assert!(start < second && second < third);
    let all = follow(Some(EventCursor::START), 100, Duration::ZERO).1;
    assert_eq!(all[all.len() - 3..], ["1", "", "\0\u{e9}"]);

    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || follow(Some(third), 9, Duration::from_secs(60)).1);
        records.publish("later").expect("publish");
        assert_eq!(waiting.join().expect("no panic"), ["later"], "who waits gets it as soon as it is there");
    });
}

fn short_lives(records: &dyn SharedRecords, pass: &dyn Fn(Duration)) {
    let (gone, kept) = (RecordName::new("short", "gone"), RecordName::new("short", "kept"));
    let claim = |now| {
        [gone, kept]
            .map(|name| records.claim(name, if name == gone { SHORT } else { DAY }, now).expect("claim"))
    };
    assert_eq!(claim(NOW), [true, true]);
    for (name, ttl) in [(gone, SHORT), (kept, SHORT), (kept, DAY)] {
        records.add(name, &[("n", 1)], ttl, NOW).expect("add");
        records.push(name, "x", 9, ttl, NOW).expect("push");
        records.put(name, "x", ttl, NOW).expect("put");
    }
    pass(SHORT * 2);
    let now = Millis(NOW.0 + 2 * 3_600_000);
    assert_eq!(claim(now), [true, false]);
    let totals = |name| records.totals(name, now).expect("totals").len();
    assert_eq!((totals(gone), totals(kept)), (0, 1));
    let list = |name| records.list(name, now).expect("list").len();
    assert_eq!((list(gone), list(kept)), (0, 2), "a push renews the list");
    assert_eq!(records.get(gone, now).expect("get"), None);
    assert_eq!(records.get(kept, now).expect("get").as_deref(), Some("x"), "a put renews the text");
    assert_eq!(records.scan("short", "", None, 9, now).expect("scan"), ["kept"]);
    assert_eq!(records.take(gone, now).expect("take"), [] as [String; 0]);
    assert_eq!(records.add(gone, &[("n", 5)], DAY, now).expect("add"), [5], "an expired table starts anew");
    records.push(gone, "y", 9, DAY, now).expect("push");
    assert_eq!(records.take(gone, now).expect("take"), ["y"], "so does an expired list");
}

fn many_at_once(records: &dyn SharedRecords) {
    const THREADS: usize = 8;
    const ROUNDS: usize = 40;
    let worked: Vec<(usize, Vec<String>)> = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let (mut won, mut taken) = (0, Vec::new());
            for n in 0..ROUNDS {
                let claimed = format!("claim {n}");
                won +=
                    usize::from(records.claim(RecordName::new("many", &claimed), DAY, NOW).expect("claim"));
                let table = RecordName::new("many", "table");
                records.add(table, &[("each", 1), ("sum", n as i64)], DAY, NOW).expect("add");
                records.add_once(table, &n.to_string(), &[("once", 1)], DAY, NOW).expect("add once");
                let list = RecordName::new("many", "list");
                records.push(list, &format!("{thread}/{n}"), 100_000, DAY, NOW).expect("push");
                if n % 5 == thread % 5 {
                    taken.extend(records.take(list, NOW).expect("take"));
                }
            }
            (won, taken)
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(worked.iter().map(|(won, _)| won).sum::<usize>(), ROUNDS, "each claim is won once");
    let (each, sum) = ((THREADS * ROUNDS) as i64, (THREADS * ROUNDS * (ROUNDS - 1) / 2) as i64);
    let expected = [("each", each), ("once", ROUNDS as i64), ("sum", sum)].map(|(f, n)| (f.to_owned(), n));
    assert_eq!(records.totals(RecordName::new("many", "table"), NOW).expect("totals"), expected);
    let mut taken: Vec<String> = worked.into_iter().flat_map(|(_, taken)| taken).collect();
    taken.extend(records.take(RecordName::new("many", "list"), NOW).expect("take"));
    let all = taken.len();
    let taken: BTreeSet<String> = taken.into_iter().collect();
    assert_eq!((all, taken.len()), (THREADS * ROUNDS, THREADS * ROUNDS), "each text is taken once");
}
