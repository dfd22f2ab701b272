//! Two servers over one Redis.

use deloop_engine::Session;
use deloop_store::{RedisOptions, RedisStore, Store};

use super::redis_server::RedisServer;
use super::wait::wait_for;
use super::*;

fn server(redis: &RedisServer, block: &BudgetsBlock) -> Money {
    let options = RedisOptions { prefix: "money-test".to_owned(), ..RedisOptions::default() };
    let store = RedisStore::open(&redis.url(), options).unwrap();
    wait_for("Redis answers", || Store::<Session>::swarms(&store).is_ok());
    Money::new(Arc::new(store.records()), BudgetLimits::new(block).unwrap(), noon())
}

/// While Redis hangs, steps continue and spend is kept. What Redis got but didn't answer is counted once.
#[test]
#[ignore = "needs redis-server"]
fn servers_agree_also_after_redis_hung() {
    let redis = RedisServer::start();
    let block = budgets(None, Some(0.50), None);
    let (one, other) = (server(&redis, &block), server(&redis, &block));
    for second in 0..10 {
        let announced =
            [cent(&one, "a", "s1", later(second * 1000)), cent(&other, "a", "s2", later(second * 1000))];
        assert_eq!(announced, [vec![], vec![]]);
        one.exchange(later(second * 1000));
        other.exchange(later(second * 1000));
    }
    one.exchange(later(10_000));
    assert_eq!(
        one.spent(&SpendScope::Project(project("a"), UtcDay::of(noon())), later(10_000)),
        Some(200_000)
    );

    redis.signal("STOP");
    for second in 11..14 {
        (0..5).for_each(|_| drop(cent(&one, "a", "s1", later(second * 1000))));
        one.exchange(later(second * 1000));
        assert!(!is_stopped(&one, "a", "s1", later(second * 1000 + 1)));
    }
    redis.signal("CONT");
    for second in 20..22 {
        one.exchange(later(second * 1000));
        other.exchange(later(second * 1000));
    }
    assert_eq!(one.backlog(), (0, 0));
    let report = reports::daily(one.records(), None, UtcDay::of(noon()), later(22_000)).unwrap();
    assert_eq!((report.total.requests, report.total.cost_usd), (35, 0.35), "{report:?}");
    let mut announced = Vec::new();
    for _ in 0..15 {
        announced.extend(cent(&other, "a", "s2", later(22_000)));
    }
    assert_eq!(announced, [BudgetLevel::Warning, BudgetLevel::Exceeded]);
    other.exchange(later(23_000));
    one.exchange(later(23_000));
    assert_eq!(cent(&one, "a", "s1", later(23_000)), [], "announced by the other");
    assert!(is_stopped(&one, "a", "s1", later(23_000)) && is_stopped(&other, "a", "s1", later(23_000)));
}
