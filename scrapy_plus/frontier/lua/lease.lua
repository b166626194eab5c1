-- lease.lua: hands out the best ready requests whose site may be asked now; asked again with the same base, the same again.
-- KEYS prefix   ARGV worker base count limited holding dice   -> stamp, {state, wait_ms, {id number payload site attempt lost limited}*}
-- Reads and writes meta last alone delayed waiting open paced q:* s:* leases owner.   O(count log n).
-- A cut leaves requests leased that nobody was told of (given back by reap), or leased and queued (dropped when met).
local refusal, is_full = begin(true)
if refusal then return refusal end
local answer = do_lease(is_full)
return { stamp(), answer }
