-- set_site.lua: changes what is given of a site's pace and facts, at once and for everybody.
-- KEYS prefix   ARGV site, then field value pairs (delay limit jitter paused slow gated, fact:NAME; times in ms)   -> stamp.   O(log n).
-- A value that is empty takes its field away.
-- A cut leaves the site where its old pace had put it, until its next request moves; repair places it.
local refusal = begin(true)
if refusal then return refusal end
local n = site_number(arg())
for i = 2, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    call('HDEL', P .. ':s:' .. n, ARGV[i])
  else
    call('HSET', P .. ':s:' .. n, ARGV[i], ARGV[i + 1])
  end
end
place(n)
return { stamp() }
