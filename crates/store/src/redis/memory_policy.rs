//! Whether Redis may drop keys by itself.

use redis::{FromRedisValue, Value};

use super::RedisStore;
use crate::StoreError;

/// The policy under which a server refuses writes when its memory is full, and drops nothing.
const KEEPS: &str = "noeviction";

/// What a server does when its memory is full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisMemory {
    /// It refuses writes, or its memory has no limit.
    Keeps,
    /// It drops keys, by this policy (`maxmemory-policy`): a stopped session may continue.
    Evicts(String),
    /// It doesn't say, or the user may not ask.
    Unknown(String),
}

impl RedisStore {
    /// Asks every node what it does when its memory is full. The worst answer counts.
    ///
    /// # Errors
    /// When a node can't be reached.
    pub fn memory(&self) -> Result<RedisMemory, StoreError> {
        let mut ask = redis::cmd("INFO");
        ask.arg("memory");
        let answers = match self.link.ask_all(ask, self.until()) {
            Err(StoreError::Refused { source, .. }) => return Ok(RedisMemory::Unknown(source.to_string())),
            answers => answers?,
        };
        let mut memory = RedisMemory::Keeps;
        for answer in answers {
            match of(answer) {
                RedisMemory::Keeps => {}
                evicts @ RedisMemory::Evicts(_) => return Ok(evicts),
                unknown @ RedisMemory::Unknown(_) => memory = unknown,
            }
        }
        Ok(memory)
    }
}

fn of(answer: Value) -> RedisMemory {
    let info = match answer {
        // RESP3 names the format of a text.
        Value::VerbatimString { text, .. } => text,
        answer => String::from_redis_value(answer).unwrap_or_default(),
    };
    let field = |name: &str| {
        info.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':')).map(str::to_owned)
    };
    match (field("maxmemory"), field("maxmemory_policy")) {
        (Some(limit), _) if limit == "0" => RedisMemory::Keeps,
        (_, Some(policy)) if policy == KEEPS => RedisMemory::Keeps,
        (_, Some(policy)) => RedisMemory::Evicts(policy),
        (_, None) => RedisMemory::Unknown("INFO memory doesn't show maxmemory_policy".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_dropped_only_below_a_limit_and_with_a_policy() {
        let memory = |text: &str| of(Value::BulkString(text.as_bytes().to_vec()));
        let evicts = RedisMemory::Evicts("allkeys-lru".to_owned());
        assert_eq!(memory("maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n"), evicts);
        assert_eq!(memory("maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"), RedisMemory::Keeps);
        assert_eq!(memory("maxmemory:100\r\nmaxmemory_policy:noeviction\r\n"), RedisMemory::Keeps);
        assert_eq!(memory("maxmemory_policy:allkeys-lru\r\n"), evicts, "a managed server may hide its limit");
        assert!(matches!(memory("used_memory:7\r\n"), RedisMemory::Unknown(_)));
    }
}
