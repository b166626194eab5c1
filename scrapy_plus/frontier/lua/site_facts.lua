-- site_facts.lua: a site's pace, load and facts.   KEYS prefix   ARGV site   -> queued, fields of its hash, and what counts where
-- they say nothing: delay limit jitter slow gated.   Read only, O(1).
local usual = { tostring(DELAY), tostring(LIMIT), tostring(JITTER), tostring(SLOW), GATED }
local n = call('HGET', SITES, arg())
if not n then return { 0, {}, usual } end
return { call('ZCARD', P .. ':q:' .. n), call('HGETALL', P .. ':s:' .. n), usual }
