-- places.lua: where each of some requests stands, and how often it was retried.   KEYS prefix   ARGV ids
-- -> r, l, d, x or - (it is not there) for each, the retries of each.   Read only, O(ids log n).
local letters, attempts = {}, {}
for i, id in ipairs(ARGV) do
  letters[i] = call('HEXISTS', REQ, id) == 0 and '-' or call('ZSCORE', LEASES, id) and 'l' or call('ZSCORE', DELAYED, id) and 'd'
    or call('ZSCORE', DEAD, id) and 'x' or 'r'
  attempts[i] = count_of(RETRY, id)
end
return { table.concat(letters), attempts }
