-- mending.lua: where requests and sites stand and where they should; it stands between the prelude and mend, check and theirs.
local function standing(id, n)
  return {
    dead = call('ZSCORE', DEAD, id), why = call('HGET', WHY, id), deadline = call('ZSCORE', LEASES, id),
    owner = match(call('HGET', OWNER, id) or '', '^%d%d+:.*:%d+$'), due = call('ZSCORE', DELAYED, id),
    queued = call('ZSCORE', P .. ':q:' .. n, id), alone = call('ZSCORE', ALONE, id),
  }
end

local function slots_in_use() -- site number -> leases whose body is not read yet; as many leases as there is work
  local busy = {}
  for _, value in ipairs(call('HVALS', OWNER)) do
    local slot, n = match(value, '^(%d)(%d+):')
    if slot == '1' then busy[n] = (busy[n] or 0) + 1 end
  end
  return busy
end
