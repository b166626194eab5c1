-- check_sites.lua: which of the sites `from` to `to` do not stand where they should, and how many requests they have.
-- KEYS prefix   ARGV from to   -> requests, what is wrong of each site that is.   Read only, O(sites + leases).
local queued, wrong, busy = 0, {}, slots_in_use()

local function stands(n)
  local open, paced, waiting = call('ZSCORE', OPEN, n), call('ZSCORE', PACED, n), call('ZSCORE', WAITING, n)
  return (open and 'open' or '') .. (paced and 'paced' or '') .. (waiting and 'waiting' or ''), open or paced or waiting
end

local function look(n)
  local s, size = site(n), call('ZCARD', P .. ':q:' .. n)
  queued = queued + size
  if s.busy ~= (busy[n] or 0) then return 'has ' .. s.busy .. ' slots in use, but ' .. (busy[n] or 0) .. ' leases' end
  local place_, score = stands(n)
  local opens = opens_at(s)
  if size == 0 or not opens then return place_ ~= '' and 'stands in ' .. place_ .. ', but cannot be asked' end
  local due = place_ == 'waiting' and opens <= tonumber(score) -- it wakes when somebody asks
  local should = (opens > NOW or due) and 'waiting' or s.paced and 'paced' or 'open'
  if place_ ~= should then return 'stands in "' .. place_ .. '" instead of ' .. should end
  local best = call('ZRANGE', P .. ':q:' .. n, 0, 0, 'WITHSCORES')[2]
  if should ~= 'waiting' and tonumber(best) ~= tonumber(score) then return 'does not stand by its best request' end
end

for i = number(), number() do
  local n = string.format('%d', i)
  local what = look(n)
  if what then wrong[#wrong + 1] = (call('HGET', NAMES, n) or n) .. ' ' .. what end
end
return { queued, wrong }
