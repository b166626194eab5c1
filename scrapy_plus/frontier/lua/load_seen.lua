-- load_seen.lua: takes in what another store had seen.   KEYS prefix   ARGV count, then of each: first 2 bytes of the id, member
-- -> stamp.   O(count).   Any cut: the same call completes it.
local refusal = begin(false)
if refusal then return refusal end
for _ = 1, number() do
  local head, member = arg(), arg()
  mark_seen(bucket(head, member), member)
end
wrap_up()
return { stamp() }
