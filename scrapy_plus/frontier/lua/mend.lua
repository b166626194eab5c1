-- mend.lua: requests that are in the backup stand in exactly one place, and are seen: dead before leased before delayed
-- before ready; what stands nowhere is queued in its place.
-- KEYS prefix   ARGV count, id member of each   -> stamp, how many stood nowhere.   O(count log n).   Any cut: mend again.
local refusal = begin(true)
if refusal then return refusal end
local homeless = 0

local function leave(key, id, is_there)
  if is_there then call(key == OWNER and 'HDEL' or key == WHY and 'HDEL' or 'ZREM', key, id) end
end

local function mend(id, member)
  local value = call('HGET', REQ, id)
  if not value then return end
  local score, n = header(value)
  local at_ = standing(id, n)
  local lost = count_of(LOST, id)
  local is_dead = at_.dead
  local is_leased = not is_dead and at_.deadline and at_.owner
  local is_delayed = not is_dead and not is_leased and at_.due
  local is_ready = not is_dead and not is_leased and not is_delayed
  if is_ready and not at_.queued and not at_.alone then homeless = homeless + 1 end
  if is_dead and not at_.why then call('HSET', WHY, id, '1 0 0 the reason was lost') end
  if is_ready then enqueue(id, score, n, lost) end
  if not is_dead then leave(WHY, id, at_.why) end
  if not is_leased then
    leave(LEASES, id, at_.deadline)
    leave(OWNER, id, at_.owner)
  end
  if not is_delayed then leave(DELAYED, id, at_.due) end
  if not is_ready or lost >= SUSPECT then leave(P .. ':q:' .. n, id, at_.queued) end
  if not is_ready or lost < SUSPECT then leave(ALONE, id, at_.alone) end
  if is_dead then forget_counters(id) else mark_seen(bucket(id, member), member) end
end

for _ = 1, number() do
  local id, member = arg(), arg()
  mend(id, member)
end
wrap_up()
return { stamp(), homeless }
