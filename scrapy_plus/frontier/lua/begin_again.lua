-- begin_again.lua: a finished crawl is seeded once more, from its first seed on; what it has seen stays.
-- KEYS prefix   ARGV -   -> stamp, 1, or 0 if it is not finished.   O(1).   The state moves last: a cut repeats the call.
if STATE ~= 'finished' then return { stamp(), 0 } end
local refusal = begin(true)
if refusal then return refusal end
call('HDEL', META, 'cursor', 'seeded', 'last_seed')
call('HSET', META, 'again', 1)
set_state('running')
return { stamp(), 1 }
