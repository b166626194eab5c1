-- commit.lua: what a worker process has ready, and the next lease with it, in one step.
-- KEYS prefix   ARGV stamp, fetched, retries, releases, pages, '1' and a lease or '0'   -> stamp, retried, released, pages, lease
-- A stamp that is not the store's refuses the call before any write: its sender left out children that were seen then.
-- O(children + items + leases), each log n.   Each page is whole or not at all but for a torn log: its children and items
-- are stored before the deletion of its body, which commits it; repair drops the items of a page that is still leased.
local expected = arg()
if expected ~= '' and expected ~= stamp() then return { stamp() } end
local refusal, is_full = begin(true)
if refusal then return refusal end
do_fetched()
local retried, released, pages = do_retries(), do_releases(), do_pages()
local lease = arg() == '1' and do_lease(is_full) or false
wrap_up()
return { stamp(), retried, released, pages, lease }
