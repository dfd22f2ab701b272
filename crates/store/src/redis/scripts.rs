//! What runs in the server, each script atomically. A script sees only the keys of one session, one swarm or one
//! listing, and can run twice without harm.

use redis::Cmd;

/// Stores a session if its version is still ARGV[1]; else returns its version, time and state.
pub(super) const STORE_SESSION: &str = "
local version = redis.call('HGET', KEYS[1], 'version')
if version ~= ARGV[2] then
  if (version or '') ~= ARGV[1] then return redis.call('HMGET', KEYS[1], 'version', 'ts', 'state') end
  redis.call('HSET', KEYS[1], 'version', ARGV[2], 'ts', ARGV[3], 'state', ARGV[4])
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return {}";

/// Deletes a session (KEYS[1]) and remembers its version (KEYS[2]).
pub(super) const DELETE_SESSION: &str = "
local version = redis.call('HGET', KEYS[1], 'version')
if version then
  redis.call('SET', KEYS[2], version, 'PX', ARGV[1])
  redis.call('DEL', KEYS[1])
end
return 0";

/// Returns the version of a session, or the one it had when it was deleted.
pub(super) const SESSION_VERSION: &str =
    "return redis.call('HGET', KEYS[1], 'version') or redis.call('GET', KEYS[2]) or ''";

/// Adds calls to a swarm.
pub(super) const TALLY: &str = include_str!("swarm.lua");

/// Returns the parts of a swarm.
pub(super) const READ_SWARM: &str = "
return {redis.call('HGETALL', KEYS[1]), redis.call('LRANGE', KEYS[2], 0, -1),
  redis.call('LRANGE', KEYS[4], 0, -1), redis.call('ZRANGE', KEYS[7], 0, -1)}";

/// Stores the failures of a project if they are still ARGV[1]. Returns whether it did.
pub(super) const STORE_FAILURES: &str = "
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1";

/// Lists names. KEYS: the names in order, and by when they were listed. ARGV: for how long they are, and the names. Drops
/// up to 100 names that weren't listed again in time.
pub(super) const LIST: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[1], 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[1], gone)
  redis.call('ZREM', KEYS[2], gone)
end
for at = 2, #ARGV do
  redis.call('ZADD', KEYS[1], 0, ARGV[at])
  redis.call('ZADD', KEYS[2], now, ARGV[at])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 0";

/// Ends the listing of the name ARGV[1]; KEYS as for `LIST`.
pub(super) const UNLIST: &str = "
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 0";

/// Returns how many names are listed; KEYS and ARGV[1] as for `LIST`.
pub(super) const COUNT_LISTED: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZCOUNT', KEYS[2], now - ARGV[1], '+inf')";

/// Returns the command that runs a script on keys.
pub(super) fn eval(script: &str, keys: &[String]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(keys.len()).arg(keys);
    command
}
