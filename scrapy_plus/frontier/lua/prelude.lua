-- prelude.lua: what the verbs share; it stands before the text of each of them (script.py).
-- KEYS[1] prefix: all keys of a crawl are KEYS[1] .. ':name' and share one hash tag.   ARGV is read from left to right.
-- Order of writes: a body comes before its id is seen or queued; a page's children and items before its body goes, which is
-- the commit point; leases end after that. So every prefix of a script's writes can be mended from `req` alone (repair).
-- Indexes are written many at a time, at the end: one ZADD of 100 costs a fifth of 100. No error after the first write.
local call, floor, max, min = redis.call, math.floor, math.max, math.min
local sub, byte, match, find = string.sub, string.byte, string.match, string.find
local P = KEYS[1]
local META, REQ = P .. ':meta', P .. ':req'                    -- hashes; req: id -> header .. payload, THE TRUTH
local OPEN, PACED, WAITING = P .. ':open', P .. ':paced', P .. ':waiting' -- zsets of site numbers: best score, or time
local ALONE = P .. ':alone'                                    -- zset of ids whose workers died twice
local LEASES, OWNER = P .. ':leases', P .. ':owner'            -- zset id by deadline; hash id -> slot site:worker:number
local DELAYED, DEAD, WHY = P .. ':delayed', P .. ':dead', P .. ':why' -- zset by due time; zset by time; hash
local RETRY, LOST = P .. ':retry', P .. ':lost'                -- hashes id -> count
local LAST, STARTED = P .. ':last', P .. ':started'            -- hashes worker -> what it was given / said it started
local SITES, NAMES = P .. ':sites', P .. ':names'              -- hashes name -> number, number -> name
local NODES, FACTS = P .. ':nodes', P .. ':facts'              -- zset worker by time; hash worker -> JSON
local STATS = P .. ':stats'

local known = call('HMGET', META, 'state', 'now', 'called', 'epoch', 'version', 'order', 'delay', 'limit', 'jitter',
  'lease', 'max_lost', 'grace', 'hold', 'seen', 'size', 'split', 'fill', 'items_as', 'items_key', 'slow', 'gated',
  'set_delay', 'set_limit')
if not known[1] then return redis.error_reply('NOCRAWL ' .. P) end
local STATE, EPOCH, VERSION, ORDER = known[1], known[4], known[5], known[6]
local DELAY, LIMIT = tonumber(known[22] or known[7]), tonumber(known[23] or known[8]) -- what an operator set, or the settings
local JITTER = tonumber(known[9])
local SLOW, GATED = tonumber(known[20]) or 0, known[21] or '0'
local LEASE, MAX_LOST, GRACE = tonumber(known[10]), tonumber(known[11]), tonumber(known[12])
local HOLD = tonumber(known[13]) or 0
local ITEMS = known[19] or P .. ':items' -- stream or list; readers may have asked for another key
local SIZE, SPLIT, FILL = tonumber(known[15]), tonumber(known[16]), tonumber(known[17])
local time = call('TIME') -- the server's clock, and never back: a failover or an operator may set it back
local NOW = max(time[1] * 1000 + floor(time[2] / 1000), tonumber(known[2]))
local SUSPECT, BUCKETS_A_CALL, WAKE_A_CALL = 2, 8, 1000
local at = 0

local function arg()
  at = at + 1
  return ARGV[at]
end

local function number()
  at = at + 1
  return tonumber(ARGV[at])
end

local function stamp()
  return EPOCH .. '.' .. VERSION
end

-- The first write of a verb. A full memory refuses it, before anything changed, unless the verb must pass (`passes`): then
-- a first write that frees memory opens the way, as servers refuse only scripts that have not written yet.
local function begin(passes)
  if GRACE >= 0 and NOW - tonumber(known[3]) > GRACE then -- nobody called: the store was away, and the living are not late
    HOLD = NOW + LEASE
  end
  local first = redis.pcall('HSET', META, 'now', NOW, 'called', NOW, 'hold', HOLD)
  if type(first) ~= 'table' or not first.err then return false end
  if not passes or not find(first.err, 'OOM', 1, true) then return first end
  call('HDEL', META, 'room')
  call('HSET', META, 'now', NOW, 'called', NOW, 'hold', HOLD)
  return false, true
end

local function raise_version() -- what workers believe to be seen may be so no longer
  VERSION = call('HINCRBY', META, 'version', 1)
end

local function set_state(state)
  STATE = state
  call('HSET', META, 'state', state)
end

local function drain_of(worker) -- what FACTS holds of a node that is to leave
  return 'drain:' .. worker
end

local function forget_node(worker)
  for _, key in ipairs({ FACTS, LAST, STARTED }) do call('HDEL', key, worker) end
  call('HDEL', FACTS, drain_of(worker))
  call('ZREM', NODES, worker)
end

-- sites -------------------------------------------------------------------------------------------------------------------

local numbers, states, touched = {}, {}, {}

local function site_number(name)
  local n = numbers[name] or call('HGET', SITES, name)
  if not n then
    n = string.format('%d', call('HINCRBY', META, 'sites', 1))
    call('HSET', NAMES, n, name)
    call('HSET', SITES, name, n)
  end
  numbers[name] = n
  return n
end

local function site(n)
  local s = states[n]
  if not s then
    local v = call('HMGET', P .. ':s:' .. n, 'busy', 'next', 'delay', 'limit', 'jitter', 'paused', 'slow', 'gated')
    s = { busy = tonumber(v[1]) or 0, next = tonumber(v[2]) or 0, delay = tonumber(v[3]) or DELAY,
      limit = tonumber(v[4]) or LIMIT, jitter = tonumber(v[5]) or JITTER, paused = tonumber(v[6]) or 0,
      slow = tonumber(v[7]) or SLOW }
    if (v[8] or GATED) == '1' then s.limit = 1 end -- one at a time, until its rules are known
    s.gap = max(s.delay, s.slow)
    s.paced = s.gap > 0 or s.limit > 0
    s.stored_busy, s.stored_next = s.busy, s.next
    states[n] = s
  end
  return s
end

local function opens_at(s) -- the moment from which the site may be asked; nil if only a finished request can open it
  if s.limit > 0 and s.busy >= s.limit then return nil end
  return max(s.next, s.paused)
end

local function stand(n, place, score) -- a site stands in one of the three zsets, or in none
  for _, key in ipairs({ OPEN, PACED, WAITING }) do
    if key == place then call('ZADD', key, score, n) else call('ZREM', key, n) end
  end
end

local function store_site(n, s)
  local key = P .. ':s:' .. n
  if s.busy ~= s.stored_busy then
    if s.busy > 0 then call('HSET', key, 'busy', s.busy) else call('HDEL', key, 'busy') end
    s.stored_busy = s.busy
  end
  if s.next <= NOW then s.next = 0 end -- what is over is forgotten, so that an idle site costs nothing
  if s.next ~= s.stored_next then
    if s.next > 0 then call('HSET', key, 'next', s.next) else call('HDEL', key, 'next') end
    s.stored_next = s.next
  end
end

local function place(n) -- puts a site where its queue and its pace say that it belongs
  local s = site(n)
  touched[n] = nil
  store_site(n, s)
  local best = call('ZRANGE', P .. ':q:' .. n, 0, 0, 'WITHSCORES')[2]
  local opens = opens_at(s)
  if not best or not opens then return stand(n, nil) end
  if opens > NOW then return stand(n, WAITING, opens) end
  stand(n, s.paced and PACED or OPEN, best)
end

local function take_slot(s, dice)
  s.busy = s.busy + 1
  local delay = floor(s.delay * (1 + s.jitter * (2 * dice - 1)) + 0.5)
  if s.gap > 0 then s.next = NOW + max(delay, s.slow) end -- what was learned of a site has no jitter
end

local function free_slot(n)
  local s = site(n)
  s.busy = max(0, s.busy - 1)
  touched[n] = true
end

-- seen --------------------------------------------------------------------------------------------------------------------

-- Buckets of integers, small enough to stay intsets (8 bytes a member). 4,096 by the id's first 12 bits, then, by the low
-- bits of the member, as linear hashing does it: bucket `split` is the next to split in two, so one number finds them all.
local seen_new = 0

local function hash_of(top, member)
  return top + 4096 * (tonumber(sub(member, -15)) % 32768) -- 15 decimal digits tell the 15 low bits, and are exact
end

local SEEN = P .. ':seen:' .. EPOCH .. ':'

local function bucket(id, member)
  local hash = hash_of(byte(id, 1) * 16 + floor(byte(id, 2) / 16), member)
  local n = hash % SIZE
  if n < SPLIT then n = hash % (SIZE * 2) end
  return SEEN .. n
end

local function is_seen(id, member)
  return call('SISMEMBER', bucket(id, member), member) == 1
end

local function mark_seen(key, member)
  seen_new = seen_new + call('SADD', key, member)
end

local function split_bucket()
  local from, to = SEEN .. SPLIT, SEEN .. (SPLIT + SIZE)
  local moved = {}
  for _, member in ipairs(call('SMEMBERS', from)) do
    if hash_of(SPLIT % 4096, member) % (SIZE * 2) ~= SPLIT then moved[#moved + 1] = member end
  end
  call('DEL', to)
  for _, member in ipairs(moved) do call('SADD', to, member) end
  SPLIT = SPLIT + 1
  if SPLIT == SIZE then SIZE, SPLIT = SIZE * 2, 0 end
  call('HSET', META, 'size', SIZE, 'split', SPLIT)
  for _, member in ipairs(moved) do call('SREM', from, member) end
end

-- requests ----------------------------------------------------------------------------------------------------------------

local arrivals, done_new = nil, 0
local counted, is_used = {}, {}
local queued, ended, is_ended = {}, {}, {} -- site number -> score, id, ...; ids whose leases end; the same as a set

local function header(value) -- score and site number of what `req` holds of a request
  if #value < 13 then return 0, '0' end
  local _, score, n = struct.unpack('>BdI4', value)
  return score, string.format('%d', n)
end

local function has_counts(key) -- most crawls have hardly any retries, and no losses
  if is_used[key] == nil then is_used[key] = call('HLEN', key) > 0 end
  return is_used[key]
end

local function count_of(key, id)
  return has_counts(key) and tonumber(call('HGET', key, id)) or 0
end

local function count_up(key, id)
  is_used[key] = true
  return call('HINCRBY', key, id, 1)
end

local function enqueue(id, score, n, lost)
  if lost >= SUSPECT then
    call('ZADD', ALONE, score, id)
  else
    local entries = queued[n] or {}
    entries[#entries + 1], entries[#entries + 2] = score, id
    queued[n], touched[n] = entries, true
  end
end

local function write_many(command, key, parts)
  for i = 1, #parts, 200 do call(command, key, unpack(parts, i, min(i + 199, #parts))) end
end

local function write_indexes() -- what was queued, then what is no longer leased
  for n, entries in pairs(queued) do write_many('ZADD', P .. ':q:' .. n, entries) end
  write_many('ZREM', LEASES, ended)
  write_many('HDEL', OWNER, ended)
  queued, ended, is_ended = {}, {}, {}
end

local function put_back(id) -- to the original place; what has no body is only dropped
  local value = call('HGET', REQ, id)
  if not value then return end
  local score, n = header(value)
  enqueue(id, score, n, count_of(LOST, id))
end

local function reopen()
  if STATE == 'finished' then set_state('running') end
end

local function arrive(priority)
  arrivals = arrivals or call('HINCRBY', META, 'seq', 500) - 500 -- reserved ahead: a number may be missing, never come twice
  arrivals = arrivals + 1
  if ORDER == 'lifo' then return -arrivals end
  if ORDER == 'fifo' then return arrivals end
  return (1000 - priority) * 1e12 + arrivals -- 1e12 leaves 9,000 priorities before doubles lose the order (2**53)
end

local function rise(id) -- the dead one lives again; where it stands is written at the end, as for all that is queued
  call('ZREM', DEAD, id)
  call('HDEL', WHY, id)
end

local function take_in(anew) -- one record: id member site priority payload; `anew` takes again what was done or is dead
  local id, member, name, priority, payload = arg(), arg(), arg(), number(), arg()
  local key = bucket(id, member)
  if call('SISMEMBER', key, member) == 1 then
    if not anew or (call('HEXISTS', REQ, id) == 1 and not call('ZSCORE', DEAD, id)) then return '0' end
  end
  local n, score = site_number(name), arrive(priority)
  local body = struct.pack('>BdI4', 1, score, n) .. payload
  if call('HSETNX', REQ, id, body) == 1 then
    enqueue(id, score, n, 0)
  elseif call('ZSCORE', DEAD, id) then -- given up by an earlier round, or before the crawl was cleared
    call('HSET', REQ, id, body)
    enqueue(id, score, n, 0)
    rise(id)
  end
  mark_seen(key, member)
  reopen()
  return '1'
end

local function take_in_all(anew) -- count, then as many records; answers a digit for each
  local taken = {}
  for i = 1, number() do taken[i] = take_in(anew) end
  return table.concat(taken)
end

local function holder(id, token) -- site number and whether the slot is still taken; nil if the lease is not this one
  if is_ended[id] then return nil end
  local slot, n, held = match(call('HGET', OWNER, id) or '', '^(%d)(%d+):(.*)$')
  if held ~= token then return nil end
  return n, slot == '1'
end

local function end_lease(id, n, has_slot)
  ended[#ended + 1], is_ended[id] = id, true
  if has_slot then free_slot(n) end
end

local function forget_counters(id)
  if has_counts(RETRY) then call('HDEL', RETRY, id) end
  if has_counts(LOST) then call('HDEL', LOST, id) end
end

local function bury(id, status, reason)
  call('HSET', WHY, id, (count_of(RETRY, id) + 1) .. ' ' .. count_of(LOST, id) .. ' ' .. status .. ' ' .. reason)
  call('ZADD', DEAD, NOW, id)
  forget_counters(id)
end

-- parts of a commit: each reads its arguments and answers for them ----------------------------------------------------------

local function do_fetched() -- count, then id token of each
  for _ = 1, number() do
    local id, token = arg(), arg()
    local n, has_slot = holder(id, token)
    if has_slot then
      call('HSET', OWNER, id, '0' .. n .. ':' .. token)
      free_slot(n)
    end
  end
end

local function do_retries() -- count, then id token delay_ms of each
  local answers = {}
  for i = 1, number() do
    local id, token, delay = arg(), arg(), number()
    local n, has_slot = holder(id, token)
    if n then
      count_up(RETRY, id)
      call('ZADD', DELAYED, NOW + delay, id)
      end_lease(id, n, has_slot)
    end
    answers[i] = n and '1' or '0'
  end
  return table.concat(answers)
end

local function do_releases() -- count, then id token of each
  local released = 0
  for _ = 1, number() do
    local id, token = arg(), arg()
    local n, has_slot = holder(id, token)
    if n then
      put_back(id)
      end_lease(id, n, has_slot)
      released = released + 1
    end
  end
  return released
end

local function store_item(id, token, item)
  if known[18] == 'list' then
    call('RPUSH', ITEMS, item)
  else
    call('XADD', ITEMS, '*', 'page', id .. match(token, '%d+$'), 'item', item)
  end
end

local function skip_page()
  for _, width in ipairs({ 5, 1, 2 }) do -- children, items, counters
    local count = number()
    at = at + width * count
  end
end

local function do_page() -- id token kind status reason, children, items, counters; kinds: done, dead, part
  local id, token, kind, status, reason = arg(), arg(), arg(), arg(), arg()
  local n, has_slot = holder(id, token)
  if not n then
    skip_page()
    return '-'
  end
  local taken = take_in_all()
  for _ = 1, number() do store_item(id, token, arg()) end
  for _ = 1, number() do
    local name = arg()
    counted[name] = (counted[name] or 0) + number()
  end
  if kind == 'part' then return taken end
  if kind == 'dead' then
    bury(id, status, reason)
  else
    call('HDEL', REQ, id) -- the commit point
    done_new = done_new + 1
    forget_counters(id)
  end
  end_lease(id, n, has_slot)
  return taken
end

local function do_pages() -- count, then the pages; answers for each the digits of its children, or '-' if it is refused
  local answers = {}
  for i = 1, number() do answers[i] = do_page() end
  return answers
end

-- The last writes of a verb: what was summed up, and the sites whose queue or slots have changed.
local function wrap_up()
  write_indexes()
  for n in pairs(touched) do place(n) end
  if done_new > 0 then call('HINCRBY', META, 'done', done_new) end
  for name, by in pairs(counted) do call('HINCRBY', STATS, name, by) end
  if seen_new == 0 then return end
  local seen = call('HINCRBY', META, 'seen', seen_new)
  for _ = 1, BUCKETS_A_CALL do
    if seen > FILL * (SIZE + SPLIT) then split_bucket() end
  end
end
