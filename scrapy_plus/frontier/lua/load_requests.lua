-- load_requests.lua: puts requests where they stood in another store.   O(count log n).   Any cut: the same call completes it.
-- KEYS prefix   ARGV count, then of each: id member site score(8 bytes) payload, r|d|x, when due or dead, reason, retries, losses
-- -> stamp
local refusal = begin(false)
if refusal then return refusal end
for _ = 1, number() do
  local id, member, name, place_in_queue, payload = arg(), arg(), arg(), arg(), arg()
  local letter, moment, reason, retries, losses = arg(), arg(), arg(), number(), number()
  local n = site_number(name)
  local body = struct.pack('>B', 1) .. place_in_queue .. struct.pack('>I4', n) .. payload
  call('HSETNX', REQ, id, body)
  if retries > 0 then call('HSET', RETRY, id, retries) end
  if losses > 0 then call('HSET', LOST, id, losses) end
  if letter == 'x' then
    call('HSET', WHY, id, reason)
    call('ZADD', DEAD, moment, id)
  else
    if letter == 'd' then call('ZADD', DELAYED, moment, id) else enqueue(id, (header(body)), n, losses) end
    mark_seen(bucket(id, member), member)
  end
end
wrap_up()
return { stamp() }
