//! What runs in the server, each script atomically. A script sees only the keys of one session or one swarm, and can run
//! twice without harm.

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

/// Returns the command that runs a script on keys.
pub(super) fn eval(script: &str, keys: &[String]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(keys.len()).arg(keys);
    command
}
