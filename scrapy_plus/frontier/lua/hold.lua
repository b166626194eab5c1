-- hold_seeding.lua: one worker at a time is the one that seeds; asked again by it, its time is renewed; 0 ms lets go.
-- KEYS prefix   ARGV worker ms   -> stamp, 1 or 0.   O(1), one write.
local refusal = begin(true)
if refusal then return refusal end
local worker, ms = arg(), number()
local held = call('HMGET', META, 'seeder', 'seeder_until')
if held[1] and held[1] ~= worker and tonumber(held[2]) > NOW then return { stamp(), 0 } end
call('HSET', META, 'seeder', worker, 'seeder_until', NOW + ms)
return { stamp(), 1 }
