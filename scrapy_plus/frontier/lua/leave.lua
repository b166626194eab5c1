-- leave.lua: a worker is gone: it is no node any more, and nothing of it is remembered.   KEYS prefix   ARGV worker   -> stamp.
-- O(log nodes).
local refusal = begin(true)
if refusal then return refusal end
forget_node(arg())
return { stamp() }
