-- flush.lua: empties everything and starts a new epoch; a site's keys and the `seen` buckets are left to sweep.lua.
-- KEYS prefix   ARGV force(0|1)   -> stamp, leased, nodes; the last two are zero when it was done.   O(keys of fixed name).
-- The epoch moves first: buckets bear it and site numbers never come again, so nothing old can be mistaken for new.
local force = arg()
local leased, nodes = call('ZCARD', LEASES), call('ZCOUNT', NODES, NOW - LEASE, '+inf')
if force ~= '1' and leased + nodes > 0 then return { stamp(), leased, nodes } end
local refusal = begin(true)
if refusal then return refusal end
local old = EPOCH
EPOCH = call('HINCRBY', META, 'epoch', 1)
local trash = call('HGET', META, 'trash') or ''
call('HSET', META, 'trash', trash .. old .. ' ' .. (SIZE + SPLIT) .. ' ' .. (call('HGET', META, 'sites') or '0') .. ';')
for _, key in ipairs({ REQ, OPEN, PACED, WAITING, ALONE, LEASES, OWNER, DELAYED, DEAD, WHY, RETRY, LOST, LAST, STARTED,
  SITES, NAMES, NODES, FACTS, STATS, ITEMS }) do call('UNLINK', key) end
call('HDEL', META, 'seq', 'seen', 'done', 'cursor', 'seeded', 'last_seed', 'again', 'keeps_items', 'set_delay', 'set_limit')
call('HSET', META, 'size', 4096, 'split', 0, 'state', 'running')
return { stamp(), 0, 0 }
