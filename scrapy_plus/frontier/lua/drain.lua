-- drain.lua: a node is to finish what it holds and to leave; its next beat is told so.
-- KEYS prefix   ARGV worker   -> stamp, 1, or 0 if it is no node (then nothing was written).   O(1), one write.
local refusal = begin(true)
if refusal then return refusal end
local worker = arg()
if not call('ZSCORE', NODES, worker) then return { stamp(), 0 } end
call('HSET', FACTS, drain_of(worker), '')
return { stamp(), 1 }
