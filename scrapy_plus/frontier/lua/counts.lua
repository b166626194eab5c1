-- counts.lua: how many requests stand where.   KEYS prefix   ARGV -   -> bodies leased delayed dead seen done.   Read only, O(1).
local meta = call('HMGET', META, 'seen', 'done')
return { call('HLEN', REQ), call('ZCARD', LEASES), call('ZCARD', DELAYED), call('ZCARD', DEAD), tonumber(meta[1]) or 0,
  tonumber(meta[2]) or 0 }
