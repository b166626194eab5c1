-- mend_seen.lua: the bucket that split last has nothing left of what had moved; with a total, that is what the crawl has seen.
-- KEYS prefix   ARGV total seen, 'count' to find it out here, or '-'   -> stamp.   O(a bucket), or O(buckets).   Any cut: again.
local refusal = begin(true)
if refusal then return refusal end
local total = arg()
if SIZE + SPLIT > 4096 then
  local last, round = SPLIT - 1, SIZE * 2
  if SPLIT == 0 then last, round = SIZE / 2 - 1, SIZE end
  local key = SEEN .. last
  for _, member in ipairs(call('SMEMBERS', key)) do
    if hash_of(last % 4096, member) % round ~= last then call('SREM', key, member) end
  end
end
if total == 'count' then -- in this very step: what others take in meanwhile would be missing
  total = 0
  for n = 0, SIZE + SPLIT - 1 do total = total + call('SCARD', SEEN .. n) end
end
if total ~= '-' then
  call('HSET', META, 'seen', total)
  -- A torn ack may have ended pages that it did not come to count: what was seen and has no body is done.
  local done = tonumber(call('HGET', META, 'done')) or 0
  call('HSET', META, 'done', max(done, tonumber(total) - call('HLEN', REQ)))
end
raise_version()
return { stamp() }
