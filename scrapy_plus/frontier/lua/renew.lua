-- renew.lua: moves the deadlines of leases still held; notes which of their requests have been started.
-- KEYS prefix   ARGV worker started(its highest token number ':' ids, or '-' if it does not say), count, id token of each
-- -> stamp, ids that are lost.
-- Writes meta started leases.   O(count log n).   Any cut is safe: a deadline that was not moved is only earlier.
local refusal = begin(true)
if refusal then return refusal end
local worker, started, lost = arg(), arg(), {}
if started ~= '-' then call('HSET', STARTED, worker, started) end
for _ = 1, number() do
  local id, token = arg(), arg()
  if holder(id, token) then
    call('ZADD', LEASES, 'XX', NOW + LEASE, id)
  else
    lost[#lost + 1] = id
  end
end
return { stamp(), lost }
