mod over_redis;
#[path = "../../../../engine/tests/redis/server.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod redis_server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deloop_policy::{BudgetsBlock, WhenUnknown};
use deloop_store::{AddedOnce, EventCursor, MemoryRecords, RecordName, SharedRecords, StoreError};
use deloop_types::{Millis, SessionId};
use proptest::prelude::*;

use super::grants::GrantError;
use super::*;
use crate::project::Project;
use crate::{reports, wait};

/// Records that fail while they are away: after the change was made, as over a network that loses answers.
#[derive(Default)]
struct LossyRecords {
    inner: MemoryRecords,
    is_away: AtomicBool,
    /// Whether the answer is lost, rather than the question.
    loses_answers: AtomicBool,
}

impl LossyRecords {
    fn ask<R>(&self, work: impl FnOnce(&MemoryRecords) -> Result<R, StoreError>) -> Result<R, StoreError> {
        let is_away = self.is_away.load(Ordering::Relaxed);
        let answer = (!is_away || self.loses_answers.load(Ordering::Relaxed)).then(|| work(&self.inner));
        answer.filter(|_| !is_away).unwrap_or_else(|| Err(StoreError::decode("away")))
    }
}

impl SharedRecords for LossyRecords {
    fn claim(&self, name: RecordName<'_>, ttl: Duration, now: Millis) -> Result<bool, StoreError> {
        self.ask(|inner| inner.claim(name, ttl, now))
    }

    fn release(&self, name: RecordName<'_>) -> Result<(), StoreError> {
        self.ask(|inner| inner.release(name))
    }

    fn add(
        &self,
        table: RecordName<'_>,
        amounts: &[(&str, i64)],
        ttl: Duration,
        now: Millis,
    ) -> Result<Vec<i64>, StoreError> {
        self.ask(|inner| inner.add(table, amounts, ttl, now))
    }

    fn add_once(
        &self,
        table: RecordName<'_>,
        mark: &str,
        amounts: &[(&str, i64)],
        ttl: Duration,
        now: Millis,
    ) -> Result<AddedOnce, StoreError> {
        self.ask(|inner| inner.add_once(table, mark, amounts, ttl, now))
    }

    fn totals(&self, table: RecordName<'_>, now: Millis) -> Result<Vec<(String, i64)>, StoreError> {
        self.ask(|inner| inner.totals(table, now))
    }

    fn forget(&self, table: RecordName<'_>) -> Result<(), StoreError> {
        self.ask(|inner| inner.forget(table))
    }

    fn push(
        &self,
        list: RecordName<'_>,
        text: &str,
        most: usize,
        ttl: Duration,
        now: Millis,
    ) -> Result<(), StoreError> {
        self.ask(|inner| inner.push(list, text, most, ttl, now))
    }

    fn take(&self, list: RecordName<'_>, now: Millis) -> Result<Vec<String>, StoreError> {
        self.ask(|inner| inner.take(list, now))
    }

    fn list(&self, list: RecordName<'_>, now: Millis) -> Result<Vec<String>, StoreError> {
        self.ask(|inner| inner.list(list, now))
    }

    fn put(&self, name: RecordName<'_>, text: &str, ttl: Duration, now: Millis) -> Result<(), StoreError> {
        self.ask(|inner| inner.put(name, text, ttl, now))
    }

    fn get(&self, name: RecordName<'_>, now: Millis) -> Result<Option<String>, StoreError> {
        self.ask(|inner| inner.get(name, now))
    }

    fn remove(&self, name: RecordName<'_>) -> Result<(), StoreError> {
        self.ask(|inner| inner.remove(name))
    }

    fn scan(
        &self,
        group: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<String>, StoreError> {
        self.ask(|inner| inner.scan(group, prefix, after, limit, now))
    }

    fn publish(&self, text: &str) -> Result<(), StoreError> {
        self.ask(|inner| inner.publish(text))
    }

    fn follow(
        &self,
        after: Option<EventCursor>,
        most: usize,
        wait: Duration,
    ) -> Result<(EventCursor, Vec<String>), StoreError> {
        self.ask(|inner| inner.follow(after, most, wait))
    }
}

const HOUR: i64 = 3_600_000;

fn noon() -> Millis {
    Millis::parse("2026-11-15T12:00:00Z").unwrap()
}

fn later(millis: i64) -> Millis {
    Millis(noon().0 + millis)
}

fn project(name: &str) -> Project {
    Project::parse(name).unwrap()
}

fn session(name: &str) -> SessionId {
    SessionId::from(name)
}

fn budgets(session: Option<f64>, project: Option<f64>, day: Option<f64>) -> BudgetsBlock {
    BudgetsBlock { session_usd: session, project_usd: project, day_usd: day, ..BudgetsBlock::default() }
}

fn money(records: &Arc<LossyRecords>, block: &BudgetsBlock) -> Money {
    let records: Arc<dyn SharedRecords> = Arc::<LossyRecords>::clone(records);
    Money::new(records, BudgetLimits::new(block).unwrap(), noon())
}

fn cost(micros: i64) -> SessionTally {
    SessionTally { requests: 1, tokens: 10, cost: micros, ..SessionTally::default() }
}

/// Charges a cent of a session. Returns the levels that are new.
fn cent(money: &Money, of: &str, in_session: &str, now: Millis) -> Vec<BudgetLevel> {
    let verdicts = money.record(&project(of), &session(in_session), &cost(10_000), now);
    verdicts.into_iter().map(|verdict| verdict.level).collect()
}

fn is_stopped(money: &Money, of: &str, in_session: &str, now: Millis) -> bool {
    money.standing(&project(of), &session(in_session), now).is_some()
}

fn request(usd: f64, until: &str, in_session: Option<&str>) -> OverrideRequest {
    OverrideRequest {
        project: None,
        session: in_session.map(str::to_owned),
        usd,
        until: until.to_owned(),
        reason: "a release".to_owned(),
    }
}

#[test]
fn a_budget_warns_then_stops_once_each_until_the_day_ends() {
    let money = money(&Arc::default(), &budgets(None, Some(0.10), None));
    for n in 1..=12 {
        let expected: &[BudgetLevel] = match n {
            8 => &[BudgetLevel::Warning],
            10 => &[BudgetLevel::Exceeded],
            _ => &[],
        };
        assert_eq!(cent(&money, "a", "s1", noon()), expected, "cent {n}");
        assert_eq!(is_stopped(&money, "a", "another session", noon()), n >= 10, "cent {n}");
    }
    assert!(!is_stopped(&money, "b", "s1", noon()));
    let verdict = money.standing(&project("a"), &session("s1"), noon()).unwrap();
    assert_eq!((verdict.budget, verdict.spent_usd, verdict.limit_usd), (BudgetKind::Project, 0.12, 0.1));
    let expected = "[deloop] The budget of project a on 2026-11-15 (UTC) is used up: $0.120 of $0.100. Sessions are \
                    stopped until 2026-11-16. An operator can lift it with `deloop budget override --project a --usd \
                    AMOUNT --until 2h --reason TEXT`.";
    assert_eq!(verdict.message, expected);
    assert!(is_stopped(&money, "a", "s1", later(12 * HOUR - 1)));
    assert!(!is_stopped(&money, "a", "s1", later(12 * HOUR)), "the next day");
    assert_eq!(cent(&money, "a", "s1", later(12 * HOUR)), []);
}

#[test]
fn servers_share_totals_and_announce_once() {
    let records: Arc<LossyRecords> = Arc::default();
    let block = budgets(Some(0.04), Some(0.10), Some(0.15));
    let (one, other) = (money(&records, &block), money(&records, &block));
    for n in 0..3 {
        assert_eq!(cent(&one, "a", &format!("s{n}"), noon()), []);
        assert_eq!(cent(&other, "a", &format!("s{n}"), noon()), []);
    }
    one.exchange(noon());
    other.exchange(noon());
    one.exchange(later(1000));
    assert_eq!(cent(&one, "a", "s8", later(1000)), [], "7 cents");
    assert_eq!(cent(&one, "a", "s9", later(1000)), [BudgetLevel::Warning], "8 cents of 10");
    one.exchange(later(1000));
    other.exchange(later(1000));
    assert_eq!(cent(&other, "a", "s9", later(1000)), [], "the other server announced it");
    assert_eq!(cent(&other, "a", "s9", later(1000)), [BudgetLevel::Exceeded], "10 cents of 10");
    other.exchange(later(2000));
    one.exchange(later(2000));
    assert!(is_stopped(&one, "a", "s1", later(2000)) && is_stopped(&other, "a", "s1", later(2000)));
    assert_eq!(cent(&one, "a", "s0", later(2000)), [], "the other server announced it");
    // The session has spent 3 of 4 cents, over both servers. The day has 12 of 15: 10 of project a, which is its budget, and 2.
    assert_eq!(cent(&one, "b", "s0", later(2000)), []);
    assert_eq!(cent(&one, "b", "s0", later(2000)), [BudgetLevel::Warning], "the day's");
    let verdict = one.standing(&project("a"), &session("s0"), later(2000)).unwrap();
    assert_eq!((verdict.budget, verdict.spent_usd), (BudgetKind::Project, 0.11));
    assert_eq!(cent(&one, "a", "s0", later(2000)), [BudgetLevel::Exceeded], "the session's");
    let verdict = one.standing(&project("a"), &session("s0"), later(2000)).unwrap();
    assert_eq!((verdict.budget, verdict.spent_usd), (BudgetKind::Session, 0.04));
}

/// Each server counts a part of what the projects spend, and none of them knows the order.
#[test]
fn a_project_counts_for_the_day_up_to_its_share_on_every_server() {
    let records = Arc::default();
    let block = budgets(None, None, Some(0.40));
    let (one, other) = (money(&records, &block), money(&records, &block));
    let today = |money: &Money, of: &str| {
        money.spent(&SpendScope::Day(UtcDay::of(noon()), of.to_owned()), later(3_000)).unwrap()
    };
    for _ in 0..30 {
        cent(&one, "runaway", "s1", noon());
        cent(&other, "runaway", "s1", noon());
    }
    cent(&other, "web", "s1", noon());
    for server in [&one, &other, &one] {
        server.exchange(later(1_000));
    }
    for server in [&one, &other] {
        assert_eq!((today(server, "runaway"), today(server, "web")), (610_000, 110_000));
        assert!(is_stopped(server, "runaway", "s1", later(3_000)), "by what it spent itself");
        assert!(!is_stopped(server, "web", "s1", later(3_000)));
    }
    let third = money(&records, &block);
    assert_eq!(
        (today(&third, "runaway"), today(&third, "web"), today(&third, "")),
        (610_000, 110_000, 110_000)
    );
}

#[test]
fn an_override_lifts_a_stop_until_it_is_used_up_ends_or_is_revoked() {
    let records: Arc<LossyRecords> = Arc::default();
    let block = budgets(Some(0.02), Some(0.05), None);
    let (money, other) = (money(&records, &block), self::money(&records, &block));
    let actor: Arc<str> = Arc::from("ann");
    (0..5).for_each(|_| drop(cent(&money, "a", "s1", noon())));
    assert!(is_stopped(&money, "a", "s1", noon()) && is_stopped(&money, "a", "s2", noon()));
    money.exchange(noon());

    let grant = |usd, until: &str, of| money.grant(&request(usd, until, of), &project("a"), &actor, noon());
    let (granted, change) = grant(0.02, "2h", None).unwrap();
    assert_eq!((change.action, &*change.actor), ("budget.override", "ann"));
    assert_eq!(
        (change.detail["usd"].as_f64(), change.detail["reason"].as_str()),
        (Some(0.02), Some("a release"))
    );
    other.exchange(noon());
    for server in [&money, &other] {
        assert!(!is_stopped(server, "a", "s1", noon()) && !is_stopped(server, "a", "s2", noon()));
        assert!(!is_stopped(server, "a", "s2", later(2 * HOUR - 1)));
        assert!(is_stopped(server, "a", "s2", later(2 * HOUR)), "it has ended");
    }
    assert_eq!(cent(&money, "a", "s2", noon()), []);
    assert!(!is_stopped(&money, "a", "s2", noon()));
    assert!(cent(&money, "a", "s2", noon()).contains(&BudgetLevel::Exceeded), "announced again");
    assert!(is_stopped(&money, "a", "s2", noon()), "it is used up");

    let (of_session, _) = grant(1.0, "1h", Some("s1")).unwrap();
    assert!(!is_stopped(&money, "a", "s1", noon()));
    assert!(is_stopped(&money, "a", "s2", noon()), "it is for another session");
    assert_eq!(
        money.revoke(&of_session.id, &project("b"), &actor, noon()).unwrap(),
        None,
        "not this project's"
    );
    let change = money.revoke(&of_session.id, &project("a"), &actor, noon()).unwrap().unwrap();
    assert_eq!((change.action, change.session), ("budget.revoke", Some(session("s1"))));
    assert!(is_stopped(&money, "a", "s1", noon()));
    assert_eq!(money.revoke(&of_session.id, &project("a"), &actor, noon()).unwrap(), None);
    let report = money.report(Some(&project("a")), None, noon()).unwrap();
    assert_eq!((report.overrides.len(), report.overrides[0]["id"].as_str()), (1, Some(granted.id.as_str())));
    assert_eq!((report.projects[0].spent_usd, report.projects[0].limit_usd), (0.07, Some(0.05)));
    for (usd, until, reason) in [(0.0, "1h", "r"), (f64::NAN, "1h", "r"), (1.0, "8d", "r"), (1.0, "1h", " ")]
    {
        let request = OverrideRequest { reason: reason.to_owned(), ..request(usd, until, None) };
        let refused = money.grant(&request, &project("a"), &actor, noon());
        assert!(matches!(refused, Err(GrantError::Wrong(_))), "{request:?}");
    }
}

#[test]
fn spend_that_cannot_be_sent_is_sent_later_once() {
    for loses_answers in [false, true] {
        let records: Arc<LossyRecords> = Arc::default();
        let money = money(&records, &budgets(None, Some(1.0), None));
        cent(&money, "a", "s", noon());
        records.loses_answers.store(loses_answers, Ordering::Relaxed);
        records.is_away.store(true, Ordering::Relaxed);
        for second in 1..60 {
            money.exchange(later(second * 1000));
            cent(&money, "a", "s", later(second * 1000));
        }
        assert!(money.backlog().0 < 12, "what waits is added up: {:?}", money.backlog());
        records.is_away.store(false, Ordering::Relaxed);
        money.exchange(later(60_000));
        money.exchange(later(61_000));
        let report = reports::daily(&records.inner, None, UtcDay::of(noon()), later(61_000)).unwrap();
        assert_eq!(
            (report.total.requests, report.total.cost_usd),
            (60, 0.6),
            "answers lost: {loses_answers}"
        );
        assert_eq!(
            self::money(&records, &budgets(None, Some(0.6), None))
                .report(None, None, later(61_000))
                .unwrap()
                .projects[0]
                .spent_usd,
            0.6
        );
        assert_eq!(money.backlog(), (0, 0));
    }
}

#[test]
fn unknown_spend_stops_only_if_it_is_configured() {
    for (when_unknown, stops) in [(WhenUnknown::Continue, false), (WhenUnknown::Stop, true)] {
        let records: Arc<LossyRecords> = Arc::default();
        let money = money(&records, &BudgetsBlock { when_unknown, ..budgets(None, Some(0.02), None) });
        records.is_away.store(true, Ordering::Relaxed);
        assert!(!is_stopped(&money, "a", "s", noon()));
        assert!(!is_stopped(&money, "a", "s", later(4_999)), "a short failure is ignored");
        assert_eq!(is_stopped(&money, "a", "s", later(6_000)), stops);
        if stops {
            let verdict = money.standing(&project("a"), &session("s"), later(6_000)).unwrap();
            assert_eq!(verdict.level, BudgetLevel::Unknown);
            assert!(verdict.message.contains("is unknown"), "{}", verdict.message);
        }
        records.is_away.store(false, Ordering::Relaxed);
        money.exchange(later(7_000));
        assert!(!is_stopped(&money, "a", "s", later(7_000)));
        assert_eq!(
            (cent(&money, "a", "s", later(7_000)), cent(&money, "a", "s", later(7_000))),
            (vec![], vec![BudgetLevel::Exceeded])
        );
    }
}

#[test]
fn names_are_bounded_over_restarts() {
    let records: Arc<LossyRecords> = Arc::default();
    for start in 0..3 {
        let money = money(&records, &BudgetsBlock::default());
        for n in 0..150 {
            let model = format!("model\t{start}-{n}\u{1b}[2J{}", "x".repeat(300));
            let tally = SessionTally { model: Some(model), ..cost(1) };
            money.record(&project("a"), &session("s"), &tally, noon());
        }
        money.exchange(noon());
    }
    let report = reports::daily(&records.inner, None, UtcDay::of(noon()), noon()).unwrap();
    let rows = &report.projects[0].rows;
    assert_eq!((rows.len(), report.total.requests), (201, 450));
    assert!(rows.iter().all(|row| row.model.chars().count() <= 80 && !row.model.contains(char::is_control)));
    assert_eq!(rows.iter().find(|row| row.model == "other").unwrap().figures.requests, 250);
}

#[test]
fn the_report_of_a_day_is_due_once_at_five_past_midnight() {
    let records: Arc<LossyRecords> = Arc::default();
    let money = money(&records, &BudgetsBlock::default());
    cent(&money, "a", "s", noon());
    money.exchange(noon());
    let due = |now: &str| reports::due(&records.inner, Millis::parse(now).unwrap()).unwrap();
    assert_eq!(due("2026-11-15T12:30:00Z"), None, "nothing happened the day before");
    assert_eq!(due("2026-11-16T00:04:59Z"), None);
    let report = due("2026-11-16T00:05:00Z").unwrap();
    assert_eq!((report.date.as_str(), report.total.cost_usd), ("2026-11-15", 0.01));
    assert_eq!(due("2026-11-16T00:05:00Z"), None, "another server has it");
    assert_eq!(due("2026-11-17T00:05:00Z"), None, "nothing happened on the 16th");
}

#[test]
fn a_rise_is_raised_once() {
    let records: Arc<LossyRecords> = Arc::default();
    let money = money(&records, &BudgetsBlock::default());
    let week = 7 * 24 * HOUR;
    let tally =
        |loops| SessionTally { sessions: 1, loops, model: Some("m".to_owned()), ..SessionTally::default() };
    for (weeks_ago, sessions, loops) in [(3, 20, 1), (2, 20, 0), (1, 20, 1), (0, 20, 8)] {
        for n in 0..sessions {
            let tally = tally(i64::from(n < loops));
            money.record(&project("a"), &session("s"), &tally, later(-weeks_ago * week));
        }
    }
    money.exchange(noon());
    let rises = reports::rises(&records.inner, noon()).unwrap();
    assert_eq!(rises.len(), 1, "{rises:?}");
    let rise = &rises[0];
    assert_eq!((rise.agent.as_str(), rise.model.as_str(), rise.week.as_str()), ("main", "m", "2026-11-09"));
    assert_eq!((rise.loops, rise.sessions, rise.per_100), (8, 20, 40.0));
    assert!((rise.per_100_before - 100.0 * 2.0 / 60.0).abs() < 1e-9 && rise.chance < 0.01);
    assert_eq!(reports::rises(&records.inner, later(HOUR)).unwrap(), []);
    let report = reports::weekly(&records.inner, None, 8, noon()).unwrap();
    assert_eq!(report.weeks.last().map(String::as_str), Some("2026-11-09"));
    assert_eq!(report.groups[0].loops, [0, 0, 0, 0, 1, 0, 1, 8]);
    assert_eq!(report.groups[0].sessions, [0, 0, 0, 0, 20, 20, 20, 20]);
    assert_eq!(report.groups[0].per_100, Some(12.5));
    assert_eq!(report.groups[0].rise.as_ref(), Some(rise));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the servers count, in which order they send it and what is lost on the way: the report is the sum.
    #[test]
    fn a_report_is_the_sum_of_what_was_counted(
        steps in prop::collection::vec((0..2_usize, 0..3_usize, 0..3_usize, 0..1_000_000_i64, 0..6_u8), 1..80),
    ) {
        let records: Arc<LossyRecords> = Arc::default();
        let servers = [money(&records, &budgets(Some(1.0), None, None)), money(&records, &BudgetsBlock::default())];
        let mut expected: BTreeMap<(String, String), (u64, i64)> = BTreeMap::new();
        let mut total = 0;
        for (server, of, model, amount, also) in steps {
            let (of, model) = (format!("p{of}"), format!("m{model}"));
            let tally = SessionTally { model: Some(model.clone()), waste: amount / 2, ..cost(amount) };
            servers[server].record(&project(&of), &session("s"), &tally, noon());
            let sum = expected.entry((of, model)).or_default();
            *sum = (sum.0 + 1, sum.1 + amount);
            total += amount;
            records.is_away.store(also == 0, Ordering::Relaxed);
            records.loses_answers.store(amount % 2 == 0, Ordering::Relaxed);
            if also < 3 {
                servers[server].exchange(noon());
            }
        }
        records.is_away.store(false, Ordering::Relaxed);
        servers.iter().chain(&servers).for_each(|server| server.exchange(noon()));
        let report = reports::daily(&records.inner, None, UtcDay::of(noon()), noon()).unwrap();
        let mut found = BTreeMap::new();
        for of in &report.projects {
            for row in &of.rows {
                let cost = (row.figures.cost_usd * 1e6).round() as i64;
                found.insert((of.project.clone(), row.model.clone()), (row.figures.requests, cost));
                prop_assert!(row.figures.loop_waste_usd <= row.figures.cost_usd);
            }
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!((report.total.cost_usd * 1e6).round() as i64, total);
        let day = servers[0].report(None, None, noon()).unwrap().day_spent_usd;
        prop_assert_eq!((day.unwrap() * 1e6).round() as i64, total);
    }
}
