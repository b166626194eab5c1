-- set_state.lua: running, paused or stopped, for the whole crawl.   KEYS prefix   ARGV state   -> stamp.   O(1), one write.
local refusal = begin(true)
if refusal then return refusal end
set_state(arg())
return { stamp() }
