-- places.lua: the state of each of some requests.   KEYS prefix   ARGV ids   -> r, l, d or x for each.   Read only, O(log n).
local letters = {}
for i, id in ipairs(ARGV) do
  letters[i] = call('ZSCORE', LEASES, id) and 'l' or call('ZSCORE', DELAYED, id) and 'd' or call('ZSCORE', DEAD, id) and 'x' or 'r'
end
return table.concat(letters)
