-- discard.lua: a request that nobody works on goes out of the backup and of every index, and is done; `seen` keeps it out.
-- KEYS prefix   ARGV id   -> stamp, 1, 0 if it is not there, or -1 if it is leased (then nothing was changed).
-- Writes meta req q:* alone delayed dead why retry lost open.   O(log n).
-- The body goes first: what a cut leaves of its indexes belongs to no request, and repair drops it.
local refusal = begin(true)
if refusal then return refusal end
local id = arg()
local value = call('HGET', REQ, id)
if not value then return { stamp(), 0 } end
if call('ZSCORE', LEASES, id) then return { stamp(), -1 } end
local _, n = header(value)
call('HDEL', REQ, id) -- the commit point
done_new = 1 -- what was seen and has no body is done, as repair counts it
for _, key in ipairs({ P .. ':q:' .. n, ALONE, DELAYED, DEAD }) do call('ZREM', key, id) end
for _, key in ipairs({ WHY, RETRY, LOST }) do call('HDEL', key, id) end
touched[n] = true
wrap_up()
return { stamp(), 1 }
