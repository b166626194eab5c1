-- mend_items.lua: items of a page that is not settled, and still leased as it was, are half of a torn ack: it will come again.
-- KEYS prefix   ARGV how many of the latest items are looked at   -> stamp.   O(items).   Any cut: again.
local refusal = begin(true)
if refusal then return refusal end
if call('TYPE', ITEMS).ok ~= 'stream' then return { stamp() } end
for _, entry in ipairs(call('XREVRANGE', ITEMS, '+', '-', 'COUNT', number())) do
  local page = entry[2][2]
  local held = match(call('HGET', OWNER, sub(page, 1, 20)) or '', ':(%d+)$')
  local is_settled = call('HEXISTS', REQ, sub(page, 1, 20)) == 0 or call('ZSCORE', DEAD, sub(page, 1, 20))
  if held and held == sub(page, 21) and not is_settled then call('XDEL', ITEMS, entry[1]) end
end
return { stamp() }
