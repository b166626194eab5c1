-- beat.lua: a node says that it lives, and what there is to know of it, and hears whether it is to leave.
-- KEYS prefix   ARGV worker facts(JSON)   -> stamp, 1 if it is to leave, else 0.   O(log nodes); nodes silent for an hour are
-- forgotten, ten a call.
local refusal = begin(true)
if refusal then return refusal end
local worker = arg()
call('HSET', FACTS, worker, arg())
call('ZADD', NODES, NOW, worker)
for _, gone in ipairs(call('ZRANGEBYSCORE', NODES, '-inf', NOW - 3600000, 'LIMIT', 0, 10)) do forget_node(gone) end
return { stamp(), call('HEXISTS', FACTS, drain_of(worker)) }
