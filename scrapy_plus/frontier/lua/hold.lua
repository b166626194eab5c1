-- hold.lua: one worker at a time has a task (to seed, to mend); asked again by it, its time is renewed; 0 ms lets go.
-- KEYS prefix   ARGV task worker ms   -> stamp, 1 or 0.   O(1), one write.
local refusal = begin(true)
if refusal then return refusal end
local task, worker, ms = arg(), arg(), number()
local held = call('HMGET', META, task, task .. '_until')
if held[1] and held[1] ~= worker and tonumber(held[2]) > NOW then return { stamp(), 0 } end
call('HSET', META, task, worker, task .. '_until', NOW + ms)
return { stamp(), 1 }
