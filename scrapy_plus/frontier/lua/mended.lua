-- mended.lua: the crawl is whole on the server with this run id.   KEYS prefix   ARGV run id   -> stamp.   O(1), one write.
local refusal = begin(true)
if refusal then return refusal end
call('HSET', META, 'run', arg())
return { stamp() }
