-- load_end.lua: what was loaded is whole, and anybody may open it.   O(facts).   Any cut: again.
-- KEYS prefix   ARGV state, count of facts, name value of each, count of statistics, name value of each   -> stamp
local refusal = begin(false)
if refusal then return refusal end
local state = arg()
for _, key in ipairs({ META, STATS }) do
  for _ = 1, number() do
    local name, value = arg(), arg()
    call('HSET', key, name, value)
  end
end
set_state(state)
call('HSET', META, 'schema', 1)
return { stamp() }
