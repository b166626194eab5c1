-- drop.lua: entries of an index whose request is not in the backup go.
-- KEYS prefix, the index (zset or hash)   ARGV ids   -> stamp.   O(ids log n).   Any cut: drop again.
local refusal = begin(true)
if refusal then return refusal end
local command = call('TYPE', KEYS[2]).ok == 'hash' and 'HDEL' or 'ZREM'
for _, id in ipairs(ARGV) do
  if call('HEXISTS', REQ, id) == 0 then call(command, KEYS[2], id) end
end
return { stamp() }
