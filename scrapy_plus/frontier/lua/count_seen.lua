-- count_seen.lua: how many members the buckets `from` to `to` have.   KEYS prefix   ARGV from to   -> members.
-- Read only, O(buckets).
local members = 0
for n = number(), min(number(), SIZE + SPLIT - 1) do members = members + call('SCARD', SEEN .. n) end
return members
