-- mend_sites.lua: the slots in use of sites `from` to `to` are those of the leases, and each site stands where it should.
-- KEYS prefix   ARGV from to   -> stamp.   O(sites + leases).   Any cut: mend again.
local refusal = begin(true)
if refusal then return refusal end
local busy = slots_in_use()
for i = number(), number() do
  local n = string.format('%d', i)
  site(n).busy = busy[n] or 0
  place(n)
end
return { stamp() }
