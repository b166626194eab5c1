-- set_pace.lua: the pace of all sites that have none of their own, above what the nodes' settings say, until it is taken away.
-- KEYS prefix   ARGV field value pairs (set_delay in ms, set_limit); an empty value takes it away   -> stamp, sites.   O(1).
-- The sites stand where the old pace put them: mend_sites goes through them afterwards.
local refusal = begin(true)
if refusal then return refusal end
for i = 1, #ARGV, 2 do
  if ARGV[i + 1] == '' then call('HDEL', META, ARGV[i]) else call('HSET', META, ARGV[i], ARGV[i + 1]) end
end
return { stamp(), call('HGET', META, 'sites') or '0' }
