-- beat.lua: a node says that it lives, and what there is to know of it.
-- KEYS prefix   ARGV worker facts(JSON)   -> stamp.   O(log nodes); nodes silent for an hour are forgotten, ten a call.
local refusal = begin(true)
if refusal then return refusal end
local worker = arg()
call('HSET', FACTS, worker, arg())
call('ZADD', NODES, NOW, worker)
for _, gone in ipairs(call('ZRANGEBYSCORE', NODES, '-inf', NOW - 3600000, 'LIMIT', 0, 10)) do
  for _, key in ipairs({ FACTS, LAST, STARTED }) do call('HDEL', key, gone) end
  call('ZREM', NODES, gone)
end
return { stamp() }
