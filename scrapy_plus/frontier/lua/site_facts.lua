-- site_facts.lua: a site's pace, load and facts.   KEYS prefix   ARGV site   -> queued, fields of its hash.   Read only, O(1).
local n = call('HGET', SITES, arg())
if not n then return { 0, {} } end
return { call('ZCARD', P .. ':q:' .. n), call('HGETALL', P .. ':s:' .. n) }
