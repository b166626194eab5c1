-- load_begin.lua: closes a crawl that is empty to everybody but who loads it: no other can open it meanwhile.
-- KEYS prefix   ARGV name of what is loaded, order, items as, takes over(0|1)
-- -> stamp, fresh | again (the same was cut short) | full | nodes | other (another was cut short).   O(1).   Any cut: again.
local mine, order, items_as, takes_over = 'loading ' .. arg(), arg(), arg(), arg()
local schema = call('HGET', META, 'schema')
if schema == mine then return { stamp(), 'again' } end
if call('ZCOUNT', NODES, NOW - LEASE, '+inf') > 0 then return { stamp(), 'nodes' } end
if takes_over ~= '1' then
  if schema ~= '1' then return { stamp(), 'other' } end
  local cursor, seen = call('HGET', META, 'cursor') or '0', call('HGET', META, 'seen') or '0'
  if call('HLEN', REQ) > 0 or cursor ~= '0' or seen ~= '0' or call('EXISTS', ITEMS) == 1 then return { stamp(), 'full' } end
end
local refusal = begin(false)
if refusal then return refusal end
set_state('stopped') -- for who opened it before
call('HSET', META, 'order', order, 'items_as', items_as, 'schema', mine)
return { stamp(), 'fresh' }
