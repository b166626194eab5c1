-- reap.lua: leases past their deadline, or those named, go back to the original place; whose worker died too often is dead.
-- KEYS prefix   ARGV limit started(ids that are blamed, or '-': what each worker reported), count, id token of each named
-- -> stamp, ids that are ready, ids that are dead.   O(limit log n).
-- Each prefix is safe: the loss is counted and the id queued (or dead) before it leaves the leases; the queue's entry of a
-- leased id is dropped when met.
local refusal = begin(true)
if refusal then return refusal end
local limit, blamed, count = number(), arg(), number()
local ready, dead = {}, {}

local function contains(ids, id)
  for i = 1, #ids, 20 do
    if sub(ids, i, i + 19) == id then return true end
  end
  return false
end

-- Blamed is what had started, and what its worker was given after its last report: a page that kills at once is in none.
-- So a worker that never said what it started is blamed for all. What was alone had started.
local function is_blamed(id, worker, token_number)
  local started = blamed
  if started == '-' then
    local last, ids = match(call('HGET', STARTED, worker) or '', '^(%d+):(.*)$')
    if not last or tonumber(token_number) > tonumber(last) then return true end
    started = ids
  end
  return contains(started, id) or count_of(LOST, id) >= SUSPECT
end

local function take_back(id, n, has_slot, worker, token_number)
  local lost = count_of(LOST, id)
  if is_blamed(id, worker, token_number) then lost = count_up(LOST, id) end
  if lost > MAX_LOST then
    bury(id, 0, 'its worker died ' .. lost .. ' times')
    dead[#dead + 1] = id
  else
    put_back(id)
    ready[#ready + 1] = id
  end
  end_lease(id, n, has_slot)
end

local function look_at(id, named)
  local slot, n, worker, number_ = match(call('HGET', OWNER, id) or '', '^(%d)(%d+):(.*):(%d+)$')
  if named and named ~= (worker or '') .. ':' .. (number_ or '') then return end
  if not n or call('HEXISTS', REQ, id) == 0 then
    call('ZREM', LEASES, id) -- a torn lease: repair finds the request by its body
    call('HDEL', OWNER, id)
  else
    take_back(id, n, slot == '1', worker, number_)
  end
end

for _ = 1, count do
  local id, token = arg(), arg()
  look_at(id, token)
end
if count == 0 and NOW >= HOLD then
  for _, id in ipairs(call('ZRANGEBYSCORE', LEASES, '-inf', NOW, 'LIMIT', 0, limit)) do look_at(id) end
end
wrap_up()
return { stamp(), ready, dead }
