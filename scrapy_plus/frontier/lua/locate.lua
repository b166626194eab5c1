-- locate.lua: where a request stands.   KEYS prefix   ARGV id member   -> state, at_ms, worker, attempt, lost, reason, site.
-- Read only, O(log n).
local id, member = arg(), arg()
local value = call('HGET', REQ, id)
if not value then return { is_seen(id, member) and 'done' or 'new', 0, '', 0, 0, '', '' } end
local _, n = header(value)
local name, attempt, lost = call('HGET', NAMES, n) or '', count_of(RETRY, id), count_of(LOST, id)
local deadline, due, died = call('ZSCORE', LEASES, id), call('ZSCORE', DELAYED, id), call('ZSCORE', DEAD, id)
if deadline then
  return { 'leased', deadline, match(call('HGET', OWNER, id) or '', '^%d+:(.*):%d+$') or '', attempt, lost, '', name }
end
if due then return { 'delayed', due, '', attempt, lost, '', name } end
if died then
  local attempts, losses, _, reason = match(call('HGET', WHY, id) or '1 0 0 ', '^(%d+) (%d+) (%d+) (.*)$')
  return { 'dead', died, '', attempts - 1, tonumber(losses), reason, name }
end
return { 'ready', 0, '', attempt, lost, '', name }
