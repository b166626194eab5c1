-- forget.lua: takes done and dead requests out of `seen`, to be crawled again when they come; pending ones stay.
-- KEYS prefix   ARGV count, id member of each   -> stamp, how many.   O(count log n).
-- A cut leaves a dead request that was never seen, or a seen one without body: repair takes the first into `seen` again.
local refusal = begin(true)
if refusal then return refusal end
raise_version()
local forgotten = 0
for _ = 1, number() do
  local id, member = arg(), arg()
  local is_dead = call('ZSCORE', DEAD, id)
  if (is_dead or call('HEXISTS', REQ, id) == 0) and call('SREM', bucket(id, member), member) == 1 then
    seen_new = seen_new - 1
    forgotten = forgotten + 1
    if is_dead then
      call('HDEL', REQ, id)
      call('ZREM', DEAD, id)
      call('HDEL', WHY, id)
    end
  end
end
wrap_up()
return { stamp(), forgotten }
