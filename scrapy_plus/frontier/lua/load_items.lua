-- load_items.lua: items in their order, each once: a stream keeps their names, a list their positions.
-- KEYS prefix   ARGV position of the first, count, then name page item of each   -> stamp.   O(count).   Any cut: again.
local refusal = begin(false)
if refusal then return refusal end
local position = number()
for _ = 1, number() do
  local name, page, item = arg(), arg(), arg()
  if known[18] ~= 'list' then
    redis.pcall('XADD', ITEMS, name, 'page', page, 'item', item) -- refused if it is there: names only grow
  elseif call('LLEN', ITEMS) == position then
    call('RPUSH', ITEMS, item)
  end
  position = position + 1
end
return { stamp() }
