-- lending.lua: handing out, shared by lease.lua and commit.lua; it stands between the prelude and the verb.
-- "Peek, claim, trim": a request is in the leases before it leaves its queue, so a cut between the two loses nothing.
local ALONE_A_CALL, LENT_AT_ONCE = 10, 500

local site_names = {}

local function lease_of(id, token_number, n, value)
  site_names[n] = site_names[n] or call('HGET', NAMES, n) or ''
  local is_limited = site(n).paced and 1 or 0
  return { id, token_number, sub(value, 14), site_names[n], count_of(RETRY, id), count_of(LOST, id), is_limited }
end

-- Leases for some ids of one site, with tokens from `base` on; an entry without a body, or leased already, is left out.
local function claim(ids, worker, base, n)
  local values, owners = call('HMGET', REQ, unpack(ids)), call('HMGET', OWNER, unpack(ids))
  local leases, deadlines, tokens = {}, {}, {}
  for i, id in ipairs(ids) do
    if values[i] and not owners[i] then
      local token_number = string.format('%d', base + #leases)
      leases[#leases + 1] = lease_of(id, token_number, n, values[i])
      deadlines[#deadlines + 1], deadlines[#deadlines + 2] = NOW + LEASE, id
      tokens[#tokens + 1], tokens[#tokens + 2] = id, '1' .. n .. ':' .. worker .. ':' .. token_number
    end
  end
  if #leases > 0 then
    call('ZADD', LEASES, unpack(deadlines))
    call('HSET', OWNER, unpack(tokens))
  end
  return leases
end

local function leased_again(worker, base, last) -- what the last call was given: asked again, its answer must have got lost
  local leases = {}
  for i = 0, #last / 20 - 1 do
    local id, token_number = sub(last, i * 20 + 1, i * 20 + 20), string.format('%d', base + i)
    local n, value = holder(id, worker .. ':' .. token_number), call('HGET', REQ, id)
    if n and value then leases[#leases + 1] = lease_of(id, token_number, n, value) end
  end
  return leases
end

-- A request whose workers died twice goes alone, and before all others, to a worker that holds nothing.
local function lend_alone(worker, base, limited, dice)
  local wait = nil
  local ids = call('ZRANGE', ALONE, 0, ALONE_A_CALL - 1)
  for _, id in ipairs(ids) do
    local _, n = header(call('HGET', REQ, id) or '')
    local s = site(n)
    local opens = opens_at(s)
    if opens and opens > NOW then wait = min(wait or opens, opens) end
    if opens and opens <= NOW and (limited > 0 or not s.paced) then
      local leases = claim({ id }, worker, base, n)
      if #leases > 0 then take_slot(s, dice) end
      call('ZREM', ALONE, id)
      place(n)
      if #leases > 0 then return leases end
    end
  end
  return {}, wait
end

-- Site number, its best score, and the score from which on another site is better; nil if no site may be asked.
local function best_site(limited)
  local free, paced = call('ZRANGE', OPEN, 0, 1, 'WITHSCORES'), {}
  if limited > 0 then paced = call('ZRANGE', PACED, 0, 1, 'WITHSCORES') end
  local a, b = tonumber(free[2]) or math.huge, tonumber(paced[2]) or math.huge
  if not free[1] and not paced[1] then return nil end
  if a <= b then return free[1], min(b, tonumber(free[4]) or math.huge) end
  return paced[1], min(a, tonumber(paced[4]) or math.huge)
end

local function room_of(s, count, limited)
  if not s.paced then return count end
  local room = min(count, limited)
  if s.limit > 0 then room = min(room, s.limit - s.busy) end
  if s.gap > 0 then room = min(room, 1) end
  return room
end

local function lend_from(n, rival, room, worker, base, leases, dice)
  local queue, s, ids = P .. ':q:' .. n, site(n), {}
  if room <= 0 then -- its pace was changed a moment ago, and it stands where the old one put it
    place(n)
    return 0
  end
  local entries = call('ZRANGE', queue, 0, min(room, LENT_AT_ONCE) - 1, 'WITHSCORES')
  for i = 1, #entries, 2 do
    if i > 1 and tonumber(entries[i + 1]) > rival then break end
    ids[#ids + 1] = entries[i]
  end
  local claimed = #ids > 0 and claim(ids, worker, base + #leases, n) or {}
  for _, lease in ipairs(claimed) do
    take_slot(s, (dice + 0.618034 * #leases) % 1) -- one throw of dice for the call, spread by the golden ratio
    leases[#leases + 1] = lease
  end
  if #ids > 0 then call('ZREMRANGEBYRANK', queue, 0, #ids - 1) end
  place(n)
  return #claimed
end

local function lend(worker, base, count, limited, dice)
  local leases = {}
  for _ = 1, count + ALONE_A_CALL do
    if #leases >= count then break end
    local n, rival = best_site(limited)
    if not n then break end
    local s = site(n)
    local taken = lend_from(n, rival, room_of(s, count - #leases, limited), worker, base, leases, dice)
    if s.paced then limited = limited - taken end
  end
  return leases
end

local function wake() -- what is due goes back to its queue, and sites whose time has come open
  for _, id in ipairs(call('ZRANGEBYSCORE', DELAYED, '-inf', NOW, 'LIMIT', 0, WAKE_A_CALL)) do
    put_back(id)
    call('ZREM', DELAYED, id)
  end
  write_indexes() -- what this very call gave back may be handed out again
  for n in pairs(touched) do place(n) end
  for _, n in ipairs(call('ZRANGEBYSCORE', WAITING, '-inf', NOW, 'LIMIT', 0, WAKE_A_CALL)) do place(n) end
end

local function wait_ms(other) -- until a delayed request is due or a site opens; -1: not before something moves
  local due = tonumber(call('ZRANGE', DELAYED, 0, 0, 'WITHSCORES')[2])
  local opens = tonumber(call('ZRANGE', WAITING, 0, 0, 'WITHSCORES')[2])
  local first = min(due or math.huge, opens or math.huge, other or math.huge)
  return first == math.huge and -1 or max(0, first - NOW)
end

local function remember(worker, base, leases, is_alone)
  local ids = {}
  for i, lease in ipairs(leases) do ids[i] = lease[1] end
  call('HSET', LAST, worker, (is_alone and 'a' or 'n') .. string.format('%d', base) .. ':' .. table.concat(ids))
end

-- worker base count limited holding dice -> state, wait_ms, leases
local function do_lease(is_full)
  local worker, base, count, limited, holding, dice = arg(), number(), number(), number(), number(), number()
  local kind, last_base, last = match(call('HGET', LAST, worker) or '', '^(%a)(%d+):(.*)$')
  if last_base and tonumber(last_base) == base then return { STATE, 0, leased_again(worker, base, last) } end
  if STATE ~= 'running' then return { STATE, -1, {} } end
  if is_full then return { 'full', 1000, {} } end
  if kind == 'a' and holder(last, worker .. ':' .. last_base) then return { STATE, -1, {} } end -- nothing beside that one
  wake()
  local leases, opens = {}, nil
  if holding == 0 and count > 0 then leases, opens = lend_alone(worker, base, limited, dice) end
  local is_alone = #leases > 0
  if not is_alone then leases = lend(worker, base, count, limited, dice) end
  if #leases > 0 then remember(worker, base, leases, is_alone) end
  return { STATE, #leases < count and wait_ms(opens) or -1, leases }
end
