-- check.lua: which of some requests do not stand in exactly one place, as they should.
-- KEYS prefix   ARGV id member of each   -> id, what is wrong, of each that is.   Read only, O(ids log n).
local wrong = {}

local function look(id, n, score, member)
  local at_ = standing(id, n)
  local lost = count_of(LOST, id)
  local places = (at_.dead and 1 or 0) + (at_.deadline and 1 or 0) + (at_.due and 1 or 0) + (at_.queued and 1 or 0)
    + (at_.alone and 1 or 0)
  if places ~= 1 then return 'it stands in ' .. places .. ' places' end
  if not at_.deadline ~= not at_.owner then return 'its lease has no owner, or its owner no lease' end
  if not at_.dead ~= not at_.why then return 'it is dead without a reason, or has one alive' end
  if (at_.queued and lost >= SUSPECT) or (at_.alone and lost < SUSPECT) then return 'it waits in the wrong lane' end
  if (at_.queued or at_.alone) and tonumber(at_.queued or at_.alone) ~= score then return 'it is out of its place' end
  if not at_.dead and not is_seen(id, member) then return 'it was never seen' end
end

for i = 1, #ARGV, 2 do
  local value = call('HGET', REQ, ARGV[i])
  if value then
    local score, n = header(value)
    local what = look(ARGV[i], n, score, ARGV[i + 1])
    if what then wrong[#wrong + 1], wrong[#wrong + 2] = ARGV[i], what end
  end
end
return wrong
