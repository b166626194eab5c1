-- seed.lua: takes in seeds and moves the cursor from `from` to `to`, once; the very same call answers the same again.
-- KEYS prefix   ARGV from to finished(0|1), count, records as for offer   -> stamp, cursor, digits (or false: cursor elsewhere)
-- After begin_again what was done or is dead is taken in again.
-- O(count log n).   The cursor moves last: a cut before it repeats the call, and `seen` answers for what was taken.
local from, to, finished = arg(), arg(), arg()
local cursor = call('HGET', META, 'cursor') or '0'
local ids = {}
for i = 5, #ARGV, 5 do ids[#ids + 1] = ARGV[i] end
local call_id = from .. ' ' .. to .. ' ' .. redis.sha1hex(table.concat(ids))
local last_id, last_answer = match(call('HGET', META, 'last_seed') or '', '^(%d+ %d+ %x+) (%d*)$')
if cursor ~= from then
  if last_id == call_id then return { stamp(), cursor, last_answer } end
  return { stamp(), cursor, false }
end
local refusal = begin(false)
if refusal then return refusal end
local taken = take_in_all(call('HEXISTS', META, 'again') == 1)
if finished == '1' then call('HSET', META, 'seeded', 1) end
call('HSET', META, 'cursor', to, 'last_seed', call_id .. ' ' .. taken)
wrap_up()
return { stamp(), to, taken }
