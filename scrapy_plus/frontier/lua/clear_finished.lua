-- clear_finished.lua: what a finished crawl kept for going on is taken away, when its last node is gone: what it has seen,
-- its queues and sites. Its items and its dead letters stay. `seen` and old sites are left to sweep.lua, as by flush.lua.
-- KEYS prefix   ARGV reopens(0|1): a new crawl begins   -> stamp, 1 or 0.   O(keys of fixed name).
-- The epoch moves first, as buckets bear it; sites of dead letters keep their numbers, as these name them.
local reopens = arg() == '1'
if STATE ~= 'finished' or call('ZCOUNT', NODES, NOW - LEASE, '+inf') > 0 then return { stamp(), 0 } end
local refusal = begin(true)
if refusal then return refusal end
local has_dead = call('HLEN', REQ) > 0
local old = EPOCH
EPOCH = call('HINCRBY', META, 'epoch', 1)
local trash = call('HGET', META, 'trash') or ''
local last_site = has_dead and '0' or call('HGET', META, 'sites') or '0'
call('HSET', META, 'trash', trash .. old .. ' ' .. (SIZE + SPLIT) .. ' ' .. last_site .. ';')
for _, key in ipairs({ OPEN, PACED, WAITING, ALONE, LEASES, OWNER, DELAYED, RETRY, LOST, LAST, STARTED, NODES, FACTS }) do
  call('UNLINK', key)
end
if not has_dead then call('UNLINK', SITES, NAMES) end
call('HDEL', META, 'seen', 'cursor', 'seeded', 'last_seed', 'again', 'keeps_items')
call('HSET', META, 'size', 4096, 'split', 0)
if reopens then -- until then the sums of the last crawl can be looked at
  call('UNLINK', STATS)
  call('HDEL', META, 'done')
  set_state('running')
end
return { stamp(), 1 }
