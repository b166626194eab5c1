-- replace.lua: the payload of a request becomes another; its place, its counters and its lease stay as they are.
-- KEYS prefix   ARGV id payload   -> stamp, 1, or 0 if it is not there.
-- Writes meta req.   O(1).   One field is written, so a cut leaves the old payload or the new one.
local refusal = begin(false)
if refusal then return refusal end
local id, payload = arg(), arg()
local value = call('HGET', REQ, id)
if not value then return { stamp(), 0 } end
local score, n = header(value)
call('HSET', REQ, id, struct.pack('>BdI4', 1, score, n) .. payload)
return { stamp(), 1 }
