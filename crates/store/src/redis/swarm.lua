-- The same as `Swarm` in crates/detect, call by call: nothing here takes longer in a larger swarm.
--
-- swarm          version of all of this; worker of each slot (`s`SLOT), slot of each worker (`i`ID), short form of each call shown (`x`TARGET)
-- calls, in_vain the recent calls, oldest first: fingerprint and slot
-- *_counts       calls per fingerprint (`c`), per fingerprint and slot (`p`), per slot (`s`); slots per fingerprint (`d`)
-- free           slots whose worker has no recent call
-- shown          fingerprints whose calls are shown, by their latest call
-- seen           calls that were counted a short time ago, by when that is forgotten
local swarm, calls, calls_counts, in_vain, in_vain_counts, free, shown, seen = unpack(KEYS)
local task, ttl, seen_ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local least, per_worker, most_workers, most_shown =
  tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local worker, name = ARGV[8], ARGV[9]
local VERSION = tonumber(ARGV[10])
local FIRST = 11

-- A swarm without a version has the first. What a later release wrote is left alone.
local version = redis.call('HGET', swarm, 'version')
if not version then
  redis.call('HSET', swarm, 'version', VERSION)
elseif tonumber(version) > VERSION then
  return redis.error_reply('LATER ' .. version)
end

local function number(key, field)
  return tonumber(redis.call('HGET', key, field) or 0)
end

local function decrement(key, field)
  local rest = redis.call('HINCRBY', key, field, -1)
  if rest <= 0 then redis.call('HDEL', key, field) end
  return rest
end

local function slot_of_worker()
  local slot = redis.call('HGET', swarm, 'i' .. worker)
  if slot then return slot end
  slot = redis.call('ZRANGE', free, 0, 0)[1]
  if slot then
    redis.call('ZREM', free, slot)
  else
    slot = tostring(redis.call('HINCRBY', swarm, 'slots', 1) - 1)
  end
  redis.call('HSET', swarm, 'i' .. worker, slot, 's' .. slot, worker .. name)
  return slot
end

local function free_slot(slot)
  local held = redis.call('HGET', swarm, 's' .. slot)
  if held then redis.call('HDEL', swarm, 's' .. slot, 'i' .. string.sub(held, 1, 16)) end
  redis.call('ZADD', free, slot, slot)
end

local function push(ring, counts, other_counts, about)
  local slot = slot_of_worker()
  redis.call('RPUSH', ring, about .. slot)
  redis.call('HINCRBY', counts, 'c' .. about, 1)
  if redis.call('HINCRBY', counts, 'p' .. about .. slot, 1) == 1 then
    redis.call('HINCRBY', counts, 'd' .. about, 1)
  end
  if redis.call('HINCRBY', counts, 's' .. slot, 1) == 1 then redis.call('HINCRBY', counts, 'workers', 1) end

  local length = redis.call('LLEN', ring)
  while length > least
    and length > math.max(least, per_worker * math.min(number(counts, 'workers'), most_workers)) do
    local oldest = redis.call('LPOP', ring)
    length = length - 1
    local old, old_slot = string.sub(oldest, 1, 16), string.sub(oldest, 17)
    if decrement(counts, 'p' .. oldest) == 0 then decrement(counts, 'd' .. old) end
    if decrement(counts, 'c' .. old) == 0 and ring == calls then
      redis.call('ZREM', shown, old)
      redis.call('HDEL', swarm, 'x' .. old)
    end
    if decrement(counts, 's' .. old_slot) == 0 then
      decrement(counts, 'workers')
      if redis.call('HEXISTS', other_counts, 's' .. old_slot) == 0 then free_slot(old_slot) end
    end
  end
end

-- Notes the short form of a call, unless there are enough that were made more often.
local function show(target, short)
  if not redis.call('ZSCORE', shown, target) then
    if redis.call('ZCARD', shown) >= most_shown then
      local rarest, rarest_count
      for _, other in ipairs(redis.call('ZRANGE', shown, 0, -1)) do
        local count = number(calls_counts, 'c' .. other)
        if not rarest or count < rarest_count then rarest, rarest_count = other, count end
      end
      if rarest_count > number(calls_counts, 'c' .. target) then return end
      redis.call('ZREM', shown, rarest)
      redis.call('HDEL', swarm, 'x' .. rarest)
    end
    redis.call('HSET', swarm, 'x' .. target, short)
  end
  redis.call('ZADD', shown, redis.call('HINCRBY', swarm, 'shown', 1), target)
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', seen, '-inf', now)
local function is_new(mark)
  return redis.call('ZADD', seen, 'NX', now + seen_ttl, mark) == 1
end

local answer = {}
if task == 'in_vain' then
  if is_new(ARGV[FIRST]) then push(in_vain, in_vain_counts, calls_counts, ARGV[FIRST + 1]) end
else
  for at = FIRST, #ARGV, 4 do
    local mark, target, signature, short = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    if is_new(mark) then
      push(calls, calls_counts, in_vain_counts, target)
      show(target, short)
    end
    table.insert(answer, number(calls_counts, 'c' .. target))
    table.insert(answer, number(calls_counts, 'd' .. target))
    table.insert(answer, number(in_vain_counts, 'c' .. signature))
    table.insert(answer, number(in_vain_counts, 'd' .. signature))
  end
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ttl) end
return answer
