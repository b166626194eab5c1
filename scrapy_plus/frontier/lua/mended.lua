-- mended.lua: the crawl is whole on the server with this run id; the living are not late, who could not renew until now.
-- KEYS prefix   ARGV run id   -> stamp.   O(1).
if GRACE >= 0 then HOLD = NOW + LEASE end
local refusal = begin(true)
if refusal then return refusal end
call('HSET', META, 'run', arg())
return { stamp() }
