//! What runs in the server for shared records, each script atomically and on the keys of one group. A command may be sent
//! twice when a connection breaks, so each carries a text of its own that shows whether it ran before.

/// Claims KEYS[1] for the caller ARGV[1], for ARGV[2] milliseconds.
pub(super) const CLAIM: &str = "
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0";

/// Adds amounts to a table (KEYS[1]) unless its mark (KEYS[2]) is set. ARGV: the caller, for how long the mark and the
/// table are kept, then fields and amounts. Returns whether the caller's amounts were added, and the totals.
pub(super) const ADD: &str = "
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then
  for at = 4, #ARGV, 2 do
    local total = redis.pcall('HINCRBY', KEYS[1], ARGV[at], ARGV[at + 1])
    if type(total) == 'table' and total.err then
      local negative = string.sub(ARGV[at + 1], 1, 1) == '-'
      redis.call('HSET', KEYS[1], ARGV[at], negative and '-9223372036854775808' or '9223372036854775807')
    end
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
local answer = {redis.call('GET', KEYS[2]) == ARGV[1] and '1' or '0'}
for at = 4, #ARGV, 2 do table.insert(answer, redis.call('HGET', KEYS[1], ARGV[at]) or '0') end
return answer";

/// Appends a text to a list (KEYS[1]) unless its mark (KEYS[2]) is set. ARGV: for how long the mark is kept, the text, how
/// many texts and for how long they are kept.
pub(super) const PUSH: &str = "
if redis.call('SET', KEYS[2], '1', 'NX', 'PX', ARGV[1]) then
  redis.call('RPUSH', KEYS[1], ARGV[2])
  redis.call('LTRIM', KEYS[1], -ARGV[3], -1)
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return 0";

/// Moves a list (KEYS[1]) to a key of the caller (KEYS[2]), for ARGV[1] milliseconds, and returns its texts.
pub(super) const TAKE: &str = "
if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('RENAME', KEYS[1], KEYS[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[1])
end
return redis.call('LRANGE', KEYS[2], 0, -1)";

/// Stores a text. KEYS: the texts of the group by name, their names in order, their names by expiry. ARGV: its name, the
/// text, for how long it is kept. Drops up to 100 texts that have expired.
pub(super) const PUT: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('HDEL', KEYS[1], gone)
  redis.call('ZREM', KEYS[2], gone)
  redis.call('ZREM', KEYS[3], gone)
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], now + ARGV[3], ARGV[1])
for _, key in ipairs(KEYS) do
  if redis.call('PTTL', key) < tonumber(ARGV[3]) then redis.call('PEXPIRE', key, ARGV[3]) end
end
return 0";

/// Returns the text with the name ARGV[1]; KEYS as for `PUT`.
pub(super) const GET: &str = "
local time = redis.call('TIME')
local until_ms = redis.call('ZSCORE', KEYS[3], ARGV[1])
if not until_ms or tonumber(until_ms) <= time[1] * 1000 + math.floor(time[2] / 1000) then return false end
return redis.call('HGET', KEYS[1], ARGV[1])";

/// Deletes the text with the name ARGV[1]; KEYS as for `PUT`.
pub(super) const REMOVE: &str = "
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 0";

/// Returns up to ARGV[3] names that start with ARGV[1], from the bound ARGV[2] on; KEYS as for `PUT`.
pub(super) const SCAN: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local names, from, most = {}, ARGV[2], tonumber(ARGV[3])
while #names < most do
  local found = redis.call('ZRANGEBYLEX', KEYS[2], from, '+', 'LIMIT', 0, 200)
  for _, name in ipairs(found) do
    if string.sub(name, 1, #ARGV[1]) ~= ARGV[1] or #names >= most then return names end
    if tonumber(redis.call('ZSCORE', KEYS[3], name) or 0) > now then table.insert(names, name) end
    from = '(' .. name
  end
  if #found < 200 then break end
end
return names";

/// Appends an event to the log (KEYS[1]) unless its mark (KEYS[2]) is set. ARGV: for how long the mark is kept, the text,
/// how many events and for how long they are kept.
pub(super) const PUBLISH: &str = "
if redis.call('SET', KEYS[2], '1', 'NX', 'PX', ARGV[1]) then
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', 'text', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return 0";
