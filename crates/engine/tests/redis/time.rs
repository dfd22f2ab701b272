//! Lets time pass in a Redis server, whose clock can't be set.

use std::time::Duration;

/// A score from here on is a time in milliseconds.
const TIMES: f64 = 1e12;

/// Moves everything that has a time back: keys have less time left, and so have entries that are ordered by time.
pub(crate) fn pass(url: &str, time: Duration) {
    let mut server = redis::Client::open(url).unwrap().get_connection().unwrap();
    let passed = i64::try_from(time.as_millis()).unwrap();
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut server).unwrap();
    for key in &keys {
        let kind: String = redis::cmd("TYPE").arg(key).query(&mut server).unwrap();
        if kind == "zset" {
            let mut dated = redis::cmd("ZRANGEBYSCORE");
            let dated: Vec<Vec<u8>> = dated.arg(key).arg(TIMES).arg("+inf").query(&mut server).unwrap();
            for member in dated {
                redis::cmd("ZINCRBY").arg(key).arg(-passed).arg(member).exec(&mut server).unwrap();
            }
        }
        let left: i64 = redis::cmd("PTTL").arg(key).query(&mut server).unwrap();
        if left >= 0 {
            // A key without time left is deleted.
            redis::cmd("PEXPIRE").arg(key).arg(left - passed).exec(&mut server).unwrap();
        }
    }
}
