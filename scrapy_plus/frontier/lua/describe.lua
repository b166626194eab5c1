-- describe.lua: all that is kept beside the bodies of some requests.   KEYS prefix   ARGV ids
-- -> for each: r, l, d, x or - (it is not there), when it is due or died, reason, retries, losses.   Read only, O(ids log n).
local told = {}
for _, id in ipairs(ARGV) do
  local due, died = call('ZSCORE', DELAYED, id), call('ZSCORE', DEAD, id)
  local letter = call('HEXISTS', REQ, id) == 0 and '-' or died and 'x' or call('ZSCORE', LEASES, id) and 'l' or due and 'd' or 'r'
  for _, value in ipairs({ letter, died or due or '', call('HGET', WHY, id) or '', count_of(RETRY, id), count_of(LOST, id) }) do
    told[#told + 1] = value
  end
end
return told
