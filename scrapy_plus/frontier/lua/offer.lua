-- offer.lua: takes in the records that were never seen.
-- KEYS prefix   ARGV stamp, count, then id member site priority payload of each   -> stamp, a digit for each: 1 was taken
-- Writes meta sites names req q:* open seen:*.   O(count log n).   Payload, index, filter: a cut leaves what repair mends.
local expected = arg()
if expected ~= '' and expected ~= stamp() then return { stamp() } end
local refusal = begin(false)
if refusal then return refusal end
local taken = take_in_all()
wrap_up()
return { stamp(), taken }
