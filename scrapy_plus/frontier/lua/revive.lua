-- revive.lua: dead requests are ready again, with fresh counters (bury took them away).
-- KEYS prefix   ARGV count, id member of each   -> stamp, how many there were.   O(count log n).
-- Each prefix is safe: what stands nowhere after a cut is queued by repair.
local refusal = begin(true)
if refusal then return refusal end
local revived = 0
for _ = 1, number() do
  local id, member = arg(), arg()
  if call('ZSCORE', DEAD, id) then
    put_back(id)
    rise(id)
    mark_seen(bucket(id, member), member) -- it may have been cleared away
    revived = revived + 1
  end
end
if revived > 0 then
  raise_version()
  reopen()
end
wrap_up()
return { stamp(), revived }
